// Which of several settings wins where along an axis, and where that turns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "experiments/decide/axis.hpp"
#include "experiments/run/metrics.hpp"
#include "experiments/run/run_metrics.hpp"

namespace moeline {

/// A part of the time that a setting takes.
struct TimePart {
  std::string what;
  double us = 0;
};

/// What one setting comes to at one point.
struct SettingOutcome {
  double value = 0;                         ///< of the metric; where it is not refused
  std::string refused{};                    ///< why it cannot be simulated; ""
  std::string against{};                    ///< why it cannot win though it has a value: memory, a limit; ""
  std::vector<TimePart> parts{};            ///< sum to the time that the value stands for
  KnownTime known{};                        ///< how its kernels' times are known
  std::vector<std::string> extrapolated{};  ///< kernels whose times are not measured where they lie, the longest first
  bool of_requests = false;                 ///< of a run of them, not of a step
  std::vector<std::string> in_vain{};       ///< changes that do not apply to it

  [[nodiscard]] bool is_simulated() const { return refused.empty(); }
  [[nodiscard]] bool may_win() const { return refused.empty() && against.empty(); }
};

/// Of a point: who wins, and by how much.
struct Winner {
  std::optional<std::size_t> setting;   ///< none: a tie, or no setting may win
  std::optional<std::size_t> second{};  ///< the best of the others that may win
  bool is_tie = false;
  /// How much better it is than the second: 1.1 is a tenth. None: there is no second, or one of both is 0.
  std::optional<double> ratio{};

  bool operator==(const Winner& other) const { return setting == other.setting && is_tie == other.is_tie; }
};

/// REQUIRES: `better` is not Better::neither. Values within 1e-9 of each other are alike.
[[nodiscard]] Winner winner_of(const std::vector<SettingOutcome>& outcomes, Better better);

struct DecidePoint {
  std::string at;                          ///< the axis' value
  std::string beside{};                    ///< the second axis'
  bool is_asked = true;                    ///< one of the axis' own values; others were tried to find a turn
  std::vector<SettingOutcome> outcomes{};  ///< by setting
  Winner winner{};
};

/// From one point to the next that was tried another setting wins.
struct Turn {
  std::size_t before = 0, at = 0;  ///< of the points
  bool is_exact = true;            ///< of all whole numbers between them none can be simulated
};

/// Along the axis, for one value of a second one.
struct DecideCourse {
  std::vector<DecidePoint> points;  ///< in the axis' order
  std::vector<Turn> turns;
};

/// A setting at a value of the axis. Called on several threads.
using Evaluate = std::function<SettingOutcome(std::size_t setting, const std::string& at)>;

/// All settings at the axis' values, on all cores; then, where neighbours have different winners, by bisection. A
/// middle at which a setting cannot be simulated that can be on both sides (what does not divide, an odd batch) gives
/// way to the nearest multiple of a divisor that both sides share, the largest divisor first, and to sixteen numbers to
/// either side. What crosses twice between neighbours is not seen.
[[nodiscard]] DecideCourse decide_along(const DecideAxis& axis, std::size_t settings, Better better,
                                        const Evaluate& evaluate, const Progress& progress = {});

}  // namespace moeline
