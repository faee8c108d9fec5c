#include "experiments/cli/output/sweep_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "experiments/report/json.hpp"

namespace moeline {
namespace {

// What the table has: metrics that any point has, and reasons where any failed.
struct Columns {
  std::vector<std::size_t> metrics;  // of the study's
  bool failure = false;
};

Columns columns_of(const Study& study, const std::vector<PointResult>& results) {
  Columns columns;
  for (std::size_t i = 0; i < study.metrics.size(); ++i) {
    const bool any = std::any_of(results.begin(), results.end(), [&](const PointResult& result) {
      return i < result.metrics.size() && !std::isnan(result.metrics[i]);
    });
    if (any) columns.metrics.push_back(i);
  }
  columns.failure =
      std::any_of(results.begin(), results.end(), [](const PointResult& r) { return !r.failure.empty(); });
  return columns;
}

using Cells = std::vector<std::string>;

// Head, and a row for each point.
std::vector<Cells> rows_of(const Study& study, const std::vector<PointResult>& results, const Columns& columns,
                           int digits) {
  Cells head = study.keys;
  for (const std::size_t metric : columns.metrics) head.push_back(study.metrics[metric]);
  if (columns.failure) head.emplace_back("failure");
  std::vector<Cells> rows = {head};
  for (const PointResult& result : results) {
    Cells& row = rows.emplace_back(study.points[result.id]);
    for (const std::size_t metric : columns.metrics) {
      const double value = result.metrics[metric];
      row.push_back(std::isnan(value) ? "" : fmt::format("{:.{}g}", value, digits));
    }
    if (columns.failure) row.push_back(result.failure);
  }
  return rows;
}

std::string csv_cell(const std::string& text) {
  return text.find_first_of(",\"\n") == std::string::npos ? text : in_quotes(text);
}

std::string csv_line(const Cells& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + csv_cell(cell);
  return line + "\n";
}

}  // namespace

std::string sweep_table(const Study& study, const std::vector<PointResult>& results) {
  constexpr int kDigits = 6;
  const Columns columns = columns_of(study, results);
  const std::vector<Cells> rows = rows_of(study, results, columns, kDigits);
  std::string alignment(rows.front().size(), 'r');
  if (columns.failure) alignment.back() = 'l';
  TextTable table(alignment);
  for (const Cells& row : rows) table.row(row);
  return table.text();
}

std::string sweep_csv(const Study& study, const std::vector<PointResult>& results) {
  constexpr int kDigits = 9;
  std::string text;
  for (const Cells& row : rows_of(study, results, columns_of(study, results), kDigits)) text += csv_line(row);
  return text;
}

std::string sweep_json(const Study& study, const std::vector<PointResult>& results) {
  Json json;
  json.open().add("schema_version", 1).add("study", study.file.string()).open_list("points");
  const Columns columns = columns_of(study, results);
  for (const PointResult& result : results) {
    json.open().add("id", result.id).open("axes");
    for (std::size_t i = 0; i < study.keys.size(); ++i) json.add(study.keys[i], study.points[result.id][i]);
    json.close().open("metrics");
    for (const std::size_t metric : columns.metrics) {
      if (!std::isnan(result.metrics[metric])) json.add(study.metrics[metric], result.metrics[metric], 6);
    }
    json.close();
    if (!result.failure.empty()) json.add("failure", result.failure);
    json.close();
  }
  return json.close_list().close().text();
}

}  // namespace moeline
