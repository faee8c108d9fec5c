// The answer to "A or B, and where does it turn": settings compared along an axis, with the reasons.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/decide/axis.hpp"
#include "experiments/decide/outcome.hpp"
#include "experiments/decide/sure.hpp"
#include "experiments/decide/why.hpp"
#include "experiments/run/samples.hpp"

namespace moeline {

struct DecideQuestion {
  std::vector<DecideSetting> settings;  ///< two or more
  std::optional<DecideAxis> along{};    ///< none: one point, the scenarios as they are
  std::optional<DecideAxis> beside{};   ///< each of its values has a course of its own
  std::string by{};                     ///< empty: usual_measure()
  std::vector<Condition> limits{};
  int samples = 1;  ///< above 1: of the ratio a band, at the points that have a reason
};

/// At an end of a course or at a turn: the winner over the best of the others, or over the one that won before.
struct WinReason {
  std::size_t course = 0, point = 0;
  std::size_t from = 0, to = 0;         ///< settings: `to` wins
  std::vector<PartDifference> parts{};  ///< of `to` and `from`; empty where `from` is refused
  std::string because{};                ///< what `from` is refused with, or what is against it; ""
  std::optional<Band> band{};           ///< of how much better `to` is, where there are draws of both: 1.1 is a tenth
  std::string no_band{};                ///< why there are none though they were asked for; ""
};

struct Decision {
  DecideQuestion question;
  Measure by{};
  std::vector<DecideCourse> courses{};  ///< by value of `beside`
  std::vector<WinReason> reasons{};

  [[nodiscard]] const DecidePoint& point_of(const WinReason& reason) const {
    return courses[reason.course].points[reason.point];
  }
  [[nodiscard]] const std::string& name_of_setting(std::size_t setting) const {
    return question.settings[setting].name;
  }
  /// Whether its settings serve requests.
  [[nodiscard]] bool serves_requests() const;
  /// Published pairs are of throughput and the time of steps: of other metrics nothing is known.
  [[nodiscard]] bool has_errors() const { return time_of(by, serves_requests()) == TimeOf::all; }
  /// Comparisons of the winner and the second of a point. REQUIRES: it has both.
  [[nodiscard]] PairErrors errors_at(const DecidePoint& point) const;
  /// Up to which ratio, less 1, the point is too close to call: the median error of such pairs, or of steps of machines
  /// that were derived, where one of both has another machine's kernels. REQUIRES: as errors_at.
  [[nodiscard]] double doubt_at(const DecidePoint& point) const;
  /// Whether the winner is ahead by more than that; nobody is left to be faster where there is no second.
  [[nodiscard]] bool is_sure(const DecidePoint& point) const;
};

/// Throws SpecError: of a metric that has no direction, of a key that is asked along and set, or along twice, or that
/// applies to no setting; where not one setting can be simulated at any point, or something in one is misspelt.
[[nodiscard]] Decision decide(DecideQuestion question, const Progress& progress = {});

}  // namespace moeline
