#include "experiments/cli/output/decide_texts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

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
  std::string text = fmt::format("{}", fmt::join(stretches, ", "));
  for (const Turn& turn : course.turns) {
    if (turn.is_exact || d.question.along->kind != DecideAxis::Kind::whole) continue;
    text += fmt::format("; between {} and {} nothing was found that all can be simulated at",
                        course.points[turn.before].at, course.points[turn.at].at);
  }
  return text;
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

std::string band_line(const Decision& d, const WinReason& reason) {
  if (!reason.no_band.empty()) return "no draws: " + reason.no_band;
  if (!reason.band) return "";
  return fmt::format(
      "over {} equal draws of all ranks of both it is {:+.1f} % ahead, 5 to 95 % of them {:+.1f} to {:+.1f} %",
      d.question.samples, 100 * (reason.band->median - 1), 100 * (reason.band->p5 - 1), 100 * (reason.band->p95 - 1));
}

std::vector<std::string> sure_lines(const Decision& d) {
  if (!d.has_errors()) return {fmt::format("of {} nobody published pairs: how sure this is, is not known", d.by.name)};
  std::vector<std::string> lines;
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) {
      if (!point.winner.setting || !point.winner.second) continue;
      const PairErrors errors = d.errors_at(point);
      std::string line = fmt::format(
          "of {} the faster is named in {}, and the ratio is {:.1f} % off in the median: what is ahead by less is too "
          "close to call",
          of_kind(errors), errors.right, 100 * errors.median_abs_error);
      if (d.doubt_at(point) > errors.median_abs_error) {
        line += fmt::format("; with another machine's kernels steps have been {:.0f} % off, and that counts",
                            100 * d.doubt_at(point));
      }
      if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::vector<std::string> refusal_lines(const Decision& d) {
  std::vector<std::string> lines;
  std::set<std::pair<std::size_t, std::string>> told;
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) {
      for (std::size_t i = 0; i < point.outcomes.size(); ++i) {
        const SettingOutcome& outcome = point.outcomes[i];
        const std::string& why = outcome.is_simulated() ? outcome.against : outcome.refused;
        if (why.empty()) continue;
        // One that says other numbers at another point is the same.
        const std::string kind = outcome.is_simulated() ? why.substr(0, why.find_first_of("0123456789")) : why;
        if (!told.emplace(i, kind).second) continue;
        lines.push_back(fmt::format("{}: {} {}{}", place_of(d, point), d.name_of_setting(i),
                                    outcome.is_simulated() ? "cannot win (!): " : "is refused: ", why));
      }
    }
  }
  return lines;
}

std::vector<std::string> extrapolation_lines(const Decision& d) {
  constexpr double kLittle = 5e-4;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < d.question.settings.size(); ++i) {
    const DecidePoint* most = most_extrapolated(d, i);
    if (most == nullptr || most->outcomes[i].known.share(0) < kLittle) continue;
    const SettingOutcome& outcome = most->outcomes[i];
    const std::string names =
        outcome.extrapolated.empty() ? "" : fmt::format(" ({})", fmt::join(outcome.extrapolated, ", "));
    lines.push_back(fmt::format("{}: {:.1f} % of its kernels' time is extrapolated {}{}", d.name_of_setting(i),
                                100 * outcome.known.share(0), place_of(d, *most), names));
  }
  return lines;
}

}  // namespace moeline
