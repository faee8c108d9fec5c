#include "experiments/decide/decide.hpp"

#include <fmt/format.h>

#include <algorithm>

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

  // A setting that cannot be simulated anywhere loses to those that can; one that is misspelt is bad input, and so is a
  // question whose settings are all refused.
  void check_any_simulated() const {
    std::size_t refused = 0;
    std::string first;
    for (std::size_t setting = 0; setting < question().settings.size(); ++setting) {
      std::string why = refused_everywhere(setting);
      if (why.empty()) continue;
      ++refused;
      why = fmt::format("'{}': {}", decision_.name_of_setting(setting), why);
      if (is_misspelt(why)) throw SpecError(question().settings[setting].file, 0, why);
      if (first.empty()) first = why;
    }
    if (refused < question().settings.size()) return;
    throw SpecError(question().settings.front().file, 0,
                    fmt::format("none of the settings can be simulated at any point: {}", first));
  }

  // By the words of base/names.hpp.
  [[nodiscard]] static bool is_misspelt(const std::string& why) { return why.find("unknown ") != std::string::npos; }

  // The reason at the first point; "" where it is simulated at some.
  [[nodiscard]] std::string refused_everywhere(std::size_t setting) const {
    std::string first;
    for (const DecideCourse& course : decision_.courses) {
      for (const DecidePoint& point : course.points) {
        const SettingOutcome& outcome = point.outcomes[setting];
        if (outcome.is_simulated()) return "";
        if (first.empty()) first = outcome.refused;
      }
    }
    return first;
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
      if (!reason.parts.empty()) reason.band = band_at(reason);
      one_more();
    }
  }

  [[nodiscard]] Band band_at(const WinReason& reason) const {
    const DecidePoint& point = decision_.point_of(reason);
    const auto drawn = [&](std::size_t setting) {
      return drawn_values(question().settings[setting], changes_at(point.at, point.beside), decision_.by,
                          question().samples);
    };
    const std::vector<double> from = drawn(reason.from), to = drawn(reason.to);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < from.size(); ++i) {
      ratios.push_back(decision_.by.better == Better::lower ? from[i] / to[i] : to[i] / from[i]);
    }
    return band_of(std::move(ratios));
  }

  Decision& decision_;
  Terms terms_;
};

// The usual one of all settings.
std::string measure_of(const DecideQuestion& question) {
  const std::string usual = usual_measure(question.settings.front());
  for (const DecideSetting& setting : question.settings) {
    const std::string other = usual_measure(setting);
    if (other == usual) continue;
    throw SpecError(setting.file, 0,
                    fmt::format("is asked for {}, and {} for {}: --by says what they are compared by", other,
                                question.settings.front().file, usual));
  }
  return usual;
}

}  // namespace

PairErrors Decision::errors_at(const DecidePoint& point) const {
  MOELINE_CHECK(point.winner.setting && point.winner.second, point.at);
  return errors_between(question.settings[*point.winner.setting], question.settings[*point.winner.second]);
}

bool Decision::is_sure(const DecidePoint& point) const {
  if (!point.winner.setting) return false;
  return !point.winner.second || point.winner.ratio - 1 > errors_at(point).median_abs_error;
}

Decision decide(DecideQuestion question, const Progress& progress) {
  Decision decision{.question = std::move(question)};
  const std::string& by = decision.question.by;
  decision.by = measure_named(by.empty() ? measure_of(decision.question) : by);
  Decider(decision).run(progress);
  return decision;
}

}  // namespace moeline
