#include "experiments/cli/output/decide_texts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace moeline {
namespace {

std::string who(const Decision& d, const Winner& winner) {
  if (winner.setting) return d.name_of_setting(*winner.setting) + " wins";
  return winner.is_tie ? "they tie" : "none may win";
}

std::string stretch(const std::string& from, const std::string& to) {
  return from == to ? "at " + from : fmt::format("from {} to {}", from, to);
}

// "from 8 to 88 tp 8 wins, from 96 to 512 ep 8 wins"
std::string course_line(const Decision& d, const DecideCourse& course) {
  std::vector<std::string> stretches;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= course.turns.size(); ++i) {
    const bool last = i == course.turns.size();
    const std::size_t end = last ? course.points.size() - 1 : course.turns[i].before;
    stretches.push_back(fmt::format("{} {}", stretch(course.points[begin].at, course.points[end].at),
                                    who(d, course.points[end].winner)));
    if (!last) begin = course.turns[i].at;
  }
  return fmt::format("{}", fmt::join(stretches, ", "));
}

std::string of_kind(const PairErrors& errors) {
  return errors.kind ? fmt::format("{} published pairs that differ in {}", errors.pairs, name_of(*errors.kind))
                     : fmt::format("all {} published pairs", errors.pairs);
}

}  // namespace

const DecidePoint* most_extrapolated(const Decision& d, std::size_t setting) {
  const DecidePoint* most = nullptr;
  const auto share = [&](const DecidePoint& point) { return point.outcomes[setting].known.share(0); };
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) {
      if (!point.is_asked || !point.outcomes[setting].is_simulated()) continue;
      if (most == nullptr || share(point) > share(*most)) most = &point;
    }
  }
  return most;
}

std::string title_of(const Decision& d) {
  std::string text =
      fmt::format("by {} ({}, {} wins)", d.by.name, d.by.unit, d.by.better == Better::lower ? "lower" : "higher");
  if (d.question.along) text += ", along " + d.question.along->key;
  if (d.question.beside) text += " and " + d.question.beside->key;
  for (const Condition& limit : d.question.limits) text += ", where " + limit.text();
  return text;
}

std::string place_of(const Decision& d, const DecidePoint& point) {
  if (!d.question.along) return "here";
  std::string text = fmt::format("at {} {}", d.question.along->key, point.at);
  if (d.question.beside) text += fmt::format(", {} {}", d.question.beside->key, point.beside);
  return text;
}

std::vector<std::string> turn_lines(const Decision& d) {
  if (!d.question.along) return {who(d, d.courses.front().points.front().winner)};
  std::vector<std::string> lines;
  for (const DecideCourse& course : d.courses) {
    const std::string head = d.question.beside ? fmt::format("{} {}", d.question.beside->key, course.points[0].beside)
                                               : d.question.along->key;
    lines.push_back(fmt::format("{}: {}", head, course_line(d, course)));
  }
  return lines;
}

std::string reason_line(const Decision& d, const WinReason& reason) {
  const std::string from = d.name_of_setting(reason.from), to = d.name_of_setting(reason.to);
  const std::string place = place_of(d, d.point_of(reason));
  std::string text;
  if (!reason.because.empty()) text = fmt::format("{} wins as {}: {}", to, from, reason.because);
  if (reason.parts.empty()) return fmt::format("{}, {}", place, text);
  const std::string parts = saves_and_pays(reason.parts);
  return text.empty() ? fmt::format("{}, {} over {}: it {}", place, to, from, parts)
                      : fmt::format("{}, {}; it {}", place, text, parts);
}

std::string band_line(const Band& band, int samples) {
  return fmt::format("over {} equal draws of both it is {:+.1f} % ahead, 5 to 95 % of them {:+.1f} to {:+.1f} %",
                     samples, 100 * (band.median - 1), 100 * (band.p5 - 1), 100 * (band.p95 - 1));
}

std::vector<std::string> sure_lines(const Decision& d) {
  std::vector<std::string> lines;
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) {
      if (!point.winner.setting || !point.winner.second) continue;
      const PairErrors errors = d.errors_at(point);
      std::string line = fmt::format(
          "of {} the faster is named in {}, and the ratio is {:.1f} % off in the median: what is ahead by less is too "
          "close to call",
          of_kind(errors), errors.right, 100 * errors.median_abs_error);
      if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
    }
  }
  return lines;
}

}  // namespace moeline
