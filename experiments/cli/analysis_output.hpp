// How `moeline analyze` says what it found.
#pragma once

#include <optional>
#include <string>

#include "experiments/cli/shapes.hpp"
#include "hardware/profile.hpp"
#include "measured/analysis.hpp"

namespace moeline {

/// Spans of replays with one thing changed, of the first rank.
struct Counterfactuals {
  Time replay{};            ///< as it was
  Time no_communication{};  ///< transfers, barriers and collectives take no time
  Time no_gaps{};           ///< nothing between a kernel and what it waited for
  double transfer_knee =
      0;  ///< barriers aside, transfers may take this many times as long before the span grows by 1 %
};

struct AnalysisReport {
  std::string file;
  const Measured* measured = nullptr;
  Analysis analysis;
  std::optional<HardwareProfile> machine;  ///< of the trace's device, where there is a profile
  std::vector<ClassShapes> shapes;         ///< of a scenario; empty: none given
  std::optional<Counterfactuals> counterfactuals;
};

[[nodiscard]] std::string to_json(const AnalysisReport& report);
[[nodiscard]] std::string to_table(const AnalysisReport& report);

/// What limits the run, with its evidence, in one paragraph.
[[nodiscard]] std::string limits_of(const AnalysisReport& report, const RankAnalysis& rank);

}  // namespace moeline
