#include "experiments/cli/output/decide_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "experiments/cli/output/csv_line.hpp"
#include "experiments/cli/output/decide_texts.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
namespace {

constexpr const char *kTie = "a tie", *kNobody = "none";

std::string winner_text(const Decision& d, const Winner& winner) {
  if (winner.setting) return d.name_of_setting(*winner.setting);
  return winner.is_tie ? kTie : kNobody;
}

std::string ahead(const DecidePoint& point) {
  const Winner& winner = point.winner;
  return winner.ratio && !winner.is_tie ? fmt::format("{:.1f} %", 100 * (*winner.ratio - 1)) : "-";
}

std::string remark(const Decision& d, const DecidePoint& point) {
  return point.winner.setting && point.winner.ratio && d.has_errors() && !d.is_sure(point) ? "too close to call" : "";
}

std::string value_cell(const SettingOutcome& outcome) {
  if (!outcome.is_simulated()) return "refused";
  return fmt::format("{:.5g}{}", outcome.value, outcome.against.empty() ? "" : " (!)");
}

std::string points_table(const Decision& d) {
  const DecideQuestion& q = d.question;
  TextTable table(std::string(q.beside ? 1 : 0, 'r') + "r" + std::string(q.settings.size(), 'r') + "lrl");
  std::vector<std::string> head;
  if (q.beside) head.push_back(q.beside->key);
  head.push_back(q.along ? q.along->key : "");
  for (const DecideSetting& setting : q.settings) head.push_back(setting.name);
  head.insert(head.end(), {"winner", "ahead by", ""});
  table.row(head);
  for (const DecideCourse& course : d.courses) {
    for (std::size_t i = 0; i < course.points.size(); ++i) {
      const DecidePoint& point = course.points[i];
      const auto is_there = [&](const Turn& turn) { return turn.at == i || turn.before == i; };
      if (!point.is_asked && std::ranges::none_of(course.turns, is_there)) continue;
      std::vector<std::string> row;
      if (q.beside) row.push_back(point.beside);
      row.push_back(point.at);
      for (const SettingOutcome& outcome : point.outcomes) row.push_back(value_cell(outcome));
      row.insert(row.end(), {winner_text(d, point.winner), ahead(point), remark(d, point)});
      table.row(std::move(row));
    }
  }
  return table.text("  ");
}

std::string part_table(const Decision& d, const WinReason& reason) {
  TextTable table("lrrr");
  table.row({time_unit_of(d.by, d.serves_requests()), d.name_of_setting(reason.from), d.name_of_setting(reason.to),
             "difference"});
  double from = 0, to = 0;
  for (const PartDifference& part : reason.parts) {
    table.row({part.what, fmt::format("{:.2f}", part.from_us), fmt::format("{:.2f}", part.to_us),
               fmt::format("{:+.2f}", part.us())});
    from += part.from_us;
    to += part.to_us;
  }
  table.row({"all", fmt::format("{:.2f}", from), fmt::format("{:.2f}", to), fmt::format("{:+.2f}", to - from)});
  return table.text("    ");
}

std::string reasons(const Decision& d) {
  if (d.reasons.empty()) return "";
  std::string text = "\nwhy\n";
  for (const WinReason& reason : d.reasons) {
    text += "  " + reason_line(d, reason) + "\n";
    if (const std::string band = band_line(d, reason); !band.empty()) text += "    " + band + "\n";
    if (!reason.parts.empty()) text += part_table(d, reason);
  }
  return text;
}

// Each on a line of its own, indented.
std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

// "tp8: does not fit memory: 148.4 GiB; ..."
std::string against_of(const Decision& d, const DecidePoint& point) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < point.outcomes.size(); ++i) {
    const SettingOutcome& outcome = point.outcomes[i];
    if (!outcome.may_win()) {
      texts.push_back(d.name_of_setting(i) + ": " + (outcome.is_simulated() ? outcome.against : outcome.refused));
    }
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string decide_table(const Decision& d) {
  std::string text = title_of(d) + "\n\n" + points_table(d) + "\n";
  for (const std::string& line : turn_lines(d)) text += line + "\n";
  const std::vector<std::string> refused = refusal_lines(d);
  if (!refused.empty()) text += "\nwhat is not among the winners, where that was seen first\n" + lines_of(refused);
  return text + reasons(d) + "\nhow sure\n" + lines_of(sure_lines(d)) + lines_of(extrapolation_lines(d));
}

std::string decide_csv(const Decision& d) {
  const DecideQuestion& q = d.question;
  std::vector<std::string> head;
  if (q.beside) head.push_back(q.beside->key);
  if (q.along) head.push_back(q.along->key);
  for (const DecideSetting& setting : q.settings) head.push_back(setting.name);
  head.insert(head.end(), {"winner", "ratio", "sure", "asked", "not_winning"});
  std::string text = csv_line(head);
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) {
      std::vector<std::string> row;
      if (q.beside) row.push_back(point.beside);
      if (q.along) row.push_back(point.at);
      for (const SettingOutcome& o : point.outcomes)
        row.push_back(o.is_simulated() ? fmt::format("{:.9g}", o.value) : "");
      row.insert(row.end(),
                 {point.winner.setting ? winner_text(d, point.winner) : "",
                  point.winner.ratio ? fmt::format("{:.6g}", *point.winner.ratio) : "",
                  d.is_sure(point) ? "true" : "false", point.is_asked ? "true" : "false", against_of(d, point)});
      text += csv_line(row);
    }
  }
  return text;
}

}  // namespace moeline
