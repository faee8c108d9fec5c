#include "experiments/decide/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"

namespace moeline {
namespace {

const DecideAxis kNoAxis = {.values = {""}};

std::string assigned(const DecideAxis& axis, const std::string& value) { return fmt::format("{}={}", axis.key, value); }

class Decider {
 public:
  explicit Decider(Decision& decision) : decision_(decision), terms_{decision.by, decision.question.limits} {}

  void run(const Progress& progress) {
    for (const std::string& beside : beside_axis().values) {
      const auto evaluate = [&](std::size_t setting, const std::string& at) {
        return outcome_of(question().settings[setting], changes_at(at, beside), terms_);
      };
      DecideCourse& course = decision_.courses.emplace_back(
          decide_along(along_axis(), question().settings.size(), decision_.by.better, evaluate, progress));
      for (DecidePoint& point : course.points) point.beside = beside;
    }
    check_any_simulated();
    check_axes_apply();
    for (std::size_t i = 0; i < decision_.courses.size(); ++i) add_reasons(i);
    if (question().samples > 1) draw_bands(progress);
  }

 private:
  [[nodiscard]] const DecideQuestion& question() const { return decision_.question; }
  [[nodiscard]] const DecideAxis& along_axis() const { return question().along ? *question().along : kNoAxis; }
  [[nodiscard]] const DecideAxis& beside_axis() const { return question().beside ? *question().beside : kNoAxis; }

  [[nodiscard]] std::vector<std::string> changes_at(const std::string& at, const std::string& beside) const {
    std::vector<std::string> changes;
    if (question().along) changes.push_back(assigned(*question().along, at));
    if (question().beside) changes.push_back(assigned(*question().beside, beside));
    return changes;
  }

  // A setting that cannot be simulated loses to those that can; one that is misspelt is bad input, and so is a question
  // whose settings are all refused.
  void check_any_simulated() const {
    bool any = false;
    std::string first;
    for (const DecideCourse& course : decision_.courses) {
      for (const DecidePoint& point : course.points) {
        for (std::size_t setting = 0; setting < point.outcomes.size(); ++setting) {
          const SettingOutcome& outcome = point.outcomes[setting];
          any = any || outcome.is_simulated();
          if (outcome.is_simulated()) continue;
          const std::string why = fmt::format("'{}': {}", decision_.name_of_setting(setting), outcome.refused);
          if (is_misspelt(why)) throw SpecError(question().settings[setting].file, 0, why);
          if (first.empty()) first = why;
        }
      }
    }
    if (any) return;
    throw SpecError(question().settings.front().file, 0,
                    fmt::format("none of the settings can be simulated at any point: {}", first));
  }

  // By the words in which all readers refuse what has the wrong type, or is no name.
  [[nodiscard]] static bool is_misspelt(const std::string& why) {
    constexpr std::array kWords = {"unknown ",          "must be a whole number", "must be a number",
                                   "must be a mapping", "must be a list",         "must be true or false",
                                   "no such file",      "must be one word",       "must be a word"};
    return std::ranges::any_of(kWords, [&](const char* words) { return why.find(words) != std::string::npos; });
  }

  // An axis that leaves every setting as it is.
  void check_axes_apply() const {
    for (const auto& axis : {question().along, question().beside}) {
      if (!axis) continue;
      const std::string prefix = axis->key + "=";
      const auto in_vain = [&](const SettingOutcome& outcome) {
        return std::ranges::any_of(outcome.in_vain, [&](const std::string& c) { return c.starts_with(prefix); });
      };
      bool applies = false;
      for (const DecideCourse& course : decision_.courses) {
        for (const DecidePoint& point : course.points) {
          applies = applies || !std::ranges::all_of(point.outcomes, in_vain);
        }
      }
      if (!applies) throw SpecError(fmt::format("--along: {} does not apply to any of the settings", axis->key));
    }
  }

  void add_reasons(std::size_t at) {
    const DecideCourse& course = decision_.courses[at];
    add_reason(at, 0, course.points.front().winner.second);
    for (const Turn& turn : course.turns) add_reason(at, turn.at, course.points[turn.before].winner.setting);
    const bool ends_at_turn = !course.turns.empty() && course.turns.back().at + 1 == course.points.size();
    if (course.points.size() > 1 && !ends_at_turn) {
      add_reason(at, course.points.size() - 1, course.points.back().winner.second);
    }
  }

  void add_reason(std::size_t course, std::size_t at, std::optional<std::size_t> from) {
    const DecidePoint& point = decision_.courses[course].points[at];
    const std::optional<std::size_t> to = point.winner.setting;
    if (!to) return;
    if (!from || from == to) from = best_other(point, *to);
    const SettingOutcome& loser = point.outcomes[*from];
    WinReason reason{.course = course, .point = at, .from = *from, .to = *to};
    reason.because = loser.is_simulated() ? loser.against : loser.refused;
    if (loser.is_simulated()) reason.parts = differences(loser.parts, point.outcomes[*to].parts);
    decision_.reasons.push_back(std::move(reason));
  }

  // Where no other may win: the first that has a value, or the first.
  [[nodiscard]] static std::size_t best_other(const DecidePoint& point, std::size_t winner) {
    if (point.winner.second) return *point.winner.second;
    for (std::size_t i = 0; i < point.outcomes.size(); ++i) {
      if (i != winner && point.outcomes[i].is_simulated()) return i;
    }
    return winner == 0 ? 1 : 0;
  }

  void draw_bands(const Progress& progress) {
    ProgressCount one_more(progress, "draws", decision_.reasons.size());
    for (WinReason& reason : decision_.reasons) {
      if (!reason.parts.empty()) draw_band(reason);
      one_more();
    }
  }

  void draw_band(WinReason& reason) const {
    const DecidePoint& point = decision_.point_of(reason);
    const auto drawn = [&](std::size_t setting) {
      return drawn_values(question().settings[setting], changes_at(point.at, point.beside), decision_.by,
                          question().samples);
    };
    try {
      const std::vector<double> from = drawn(reason.from), to = drawn(reason.to);
      std::vector<double> ratios;
      for (std::size_t i = 0; i < from.size(); ++i) {
        ratios.push_back(decision_.by.better == Better::lower ? from[i] / to[i] : to[i] / from[i]);
      }
      const bool finite = std::ranges::all_of(ratios, [](double ratio) { return std::isfinite(ratio); });
      if (finite) {
        reason.band = band_of(std::move(ratios));
      } else {
        reason.no_band = "some draws are 0";
      }
    } catch (const SpecError& error) {
      reason.no_band = error.reason();
    }
  }

  Decision& decision_;
  Terms terms_;
};

// A key that stands in two places would be simulated by one of them and named by the other.
void check_keys_once(const DecideQuestion& question) {
  if (question.along && question.beside && question.along->key == question.beside->key) {
    throw SpecError(fmt::format("--along: {} is asked along twice", question.along->key));
  }
  for (const auto& axis : {question.along, question.beside}) {
    if (!axis) continue;
    for (const DecideSetting& setting : question.settings) {
      for (const std::string& assignment : setting.assignments) {
        const std::string key = assignment.substr(0, assignment.find('='));
        if (key != axis->key && !key.starts_with(axis->key + ".")) continue;
        throw SpecError(fmt::format("--along: {} is set by {}, too", axis->key, assignment));
      }
    }
  }
}

// The usual one of all settings.
std::string measure_of(const DecideQuestion& question) {
  const std::string usual = usual_measure(question.settings.front());
  for (const DecideSetting& setting : question.settings) {
    const std::string other = usual_measure(setting);
    if (other == usual) continue;
    throw SpecError(fmt::format("'{}' is asked for {}, and '{}' for {}: --by says what they are compared by",
                                setting.name, other, question.settings.front().name, usual));
  }
  return usual;
}

}  // namespace

bool Decision::serves_requests() const {
  return std::ranges::any_of(courses.front().points, [](const DecidePoint& point) {
    return std::ranges::any_of(point.outcomes, &SettingOutcome::of_requests);
  });
}

PairErrors Decision::errors_at(const DecidePoint& point) const {
  MOELINE_CHECK(point.winner.setting && point.winner.second, point.at);
  return errors_between(question.settings[*point.winner.setting], question.settings[*point.winner.second]);
}

double Decision::doubt_at(const DecidePoint& point) const {
  double doubt = errors_at(point).median_abs_error;
  for (const std::size_t setting : {*point.winner.setting, *point.winner.second}) {
    const auto& carried = point.outcomes[setting].known.carried;
    if (carried && carried->error) doubt = std::max(doubt, carried->error->median_abs_error);
  }
  return doubt;
}

bool Decision::is_sure(const DecidePoint& point) const {
  if (!point.winner.setting) return false;
  if (!point.winner.second) return true;
  return has_errors() && point.winner.ratio && *point.winner.ratio - 1 > doubt_at(point);
}

Decision decide(DecideQuestion question, const Progress& progress) {
  check_keys_once(question);
  Decision decision{.question = std::move(question)};
  const std::string& by = decision.question.by;
  decision.by = measure_named(by.empty() ? measure_of(decision.question) : by);
  Decider(decision).run(progress);
  return decision;
}

}  // namespace moeline
