// How `moeline analyze` says what it found.
#pragma once

#include <optional>
#include <string>

#include "experiments/run/shapes.hpp"
#include "hardware/profile.hpp"
#include "measured/analysis.hpp"
#include "measured/names.hpp"

namespace moeline {

struct AnalysisReport {
  std::string file;
  const Measured* measured = nullptr;
  Analysis analysis;
  std::optional<HardwareProfile> machine;  ///< of the trace's device, where there is a profile
  std::optional<Shapes> shapes;            ///< of a scenario, for the first rank
  std::optional<Counterfactuals> counterfactuals;
};

[[nodiscard]] std::string to_json(const AnalysisReport& report);
[[nodiscard]] std::string to_table(const AnalysisReport& report);

[[nodiscard]] std::string analyze_schema();

/// What limits the run, with its evidence, in one paragraph.
[[nodiscard]] std::string limits_of(const AnalysisReport& report, const RankAnalysis& rank);

/// Achieved rates of a class, and their share of what the machine allows. 0: not known.
struct Rates {
  double tflops = 0;
  double share_of_peak = 0;  ///< time that the FLOPs take at the machine's peaks, over the time they took
  double GBps = 0;
  double share_of_memory = 0;
};
[[nodiscard]] Rates rates_of(const AnalysisReport& report, const ClassUse& use);
/// Of a transfer: by the bytes that the trace states, else by the scenario's to other nodes. 0: not known.
[[nodiscard]] double bandwidth_GBps(const AnalysisReport& report, const RankAnalysis& rank, const Transfer& transfer);

}  // namespace moeline
