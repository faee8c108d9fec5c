#include "experiments/cli/sweep_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/cli/json.hpp"
#include "experiments/cli/text_table.hpp"

namespace moeline {
namespace {

// Of the study's metrics those that any point has.
std::vector<std::size_t> present_metrics(const Study& study, const std::vector<PointResult>& results) {
  std::vector<std::size_t> present;
  for (std::size_t i = 0; i < study.metrics.size(); ++i) {
    const bool any = std::any_of(results.begin(), results.end(), [&](const PointResult& result) {
      return i < result.metrics.size() && !std::isnan(result.metrics[i]);
    });
    if (any) present.push_back(i);
  }
  return present;
}

bool any_failed(const std::vector<PointResult>& results) {
  return std::any_of(results.begin(), results.end(), [](const PointResult& r) { return !r.failure.empty(); });
}

std::string shown(double value, const char* format) {
  return std::isnan(value) ? "" : fmt::format(fmt::runtime(format), value);
}

std::vector<std::string> heads(const Study& study, const std::vector<PointResult>& results) {
  std::vector<std::string> cells = study.keys;
  for (const std::size_t metric : present_metrics(study, results)) cells.push_back(study.metrics[metric]);
  if (any_failed(results)) cells.emplace_back("failure");
  return cells;
}

std::vector<std::string> cells_of(const Study& study, const std::vector<PointResult>& results,
                                  const PointResult& result, const char* format) {
  std::vector<std::string> cells = study.points[result.id];
  for (const std::size_t metric : present_metrics(study, results))
    cells.push_back(shown(result.metrics[metric], format));
  if (any_failed(results)) cells.push_back(result.failure);
  return cells;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + csv_cell(cell);
  return line + "\n";
}

}  // namespace

std::string sweep_table(const Study& study, const std::vector<PointResult>& results) {
  std::string alignment(heads(study, results).size(), 'r');
  if (any_failed(results)) alignment.back() = 'l';
  TextTable table(alignment);
  table.row(heads(study, results));
  for (const PointResult& result : results) table.row(cells_of(study, results, result, "{:.6g}"));
  return table.text();
}

std::string sweep_csv(const Study& study, const std::vector<PointResult>& results) {
  std::string text = csv_line(heads(study, results));
  for (const PointResult& result : results) text += csv_line(cells_of(study, results, result, "{:.9g}"));
  return text;
}

std::string sweep_json(const Study& study, const std::vector<PointResult>& results) {
  Json json;
  json.open().add("schema_version", 1).add("study", study.file.string()).open_list("points");
  const std::vector<std::size_t> present = present_metrics(study, results);
  for (const PointResult& result : results) {
    json.open().add("id", result.id).open("axes");
    for (std::size_t i = 0; i < study.keys.size(); ++i) json.add(study.keys[i], study.points[result.id][i]);
    json.close().open("metrics");
    for (const std::size_t metric : present) {
      if (!std::isnan(result.metrics[metric])) json.add(study.metrics[metric], result.metrics[metric], 6);
    }
    json.close();
    if (!result.failure.empty()) json.add("failure", result.failure);
    json.close();
  }
  return json.close_list().close().text();
}

}  // namespace moeline
