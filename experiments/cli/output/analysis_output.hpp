// How `moeline analyze` says what it found.
#pragma once

#include <optional>
#include <string>

#include "experiments/report/fields.hpp"
#include "experiments/run/shapes.hpp"
#include "hardware/profile.hpp"
#include "measured/analysis.hpp"
#include "measured/named_kernels.hpp"
#include "measured/names.hpp"
#include "measured/several_ranks.hpp"

namespace moeline {

struct AnalysisReport {
  std::string file;
  const Measured* measured = nullptr;
  Analysis analysis;
  std::optional<HardwareProfile> machine;  ///< of the trace's device, where there is a profile
  std::optional<Shapes> shapes;            ///< of a scenario, for the first rank
  std::optional<Counterfactuals> counterfactuals;
  std::optional<std::vector<NamedKernel>> kernels;  ///< where they are asked for
};

[[nodiscard]] std::string to_json(const AnalysisReport& report);
[[nodiscard]] std::string to_table(const AnalysisReport& report);

[[nodiscard]] std::string analyze_schema();

/// What limits the run, with its evidence, in one paragraph.
[[nodiscard]] std::string limits_of(const AnalysisReport& report, const RankAnalysis& rank);

/// Achieved rates of a class, and their share of what the machine allows. 0: not known.
struct Rates {
  double tflops = 0;
  double share_of_peak = 0;   ///< time that the FLOPs take at the machine's peaks, over the time they took
  double tflops_of_time = 0;  ///< share of the class's time that the kernels with known FLOPs take
  double GBps = 0;
  double share_of_memory = 0;
  double GBps_of_time = 0;  ///< share of the class's time that the kernels with known bytes take
};
[[nodiscard]] Rates rates_of(const AnalysisReport& report, const ClassUse& use);

/// Achieved rate of copies, and its share of what the memory or link that they pass through allows. 0: not known.
struct CopyRate {
  double GBps = 0;
  double share_of_peak = 0;
};
[[nodiscard]] CopyRate rate_of(const AnalysisReport& report, const CopyUse& use);

/// From the file's first GPU event, as --from and --to count.
[[nodiscard]] Time since_first(const AnalysisReport& report, Time time);

/// Of a transfer: by the bytes that the trace states, else by the scenario's to other nodes. 0: not known.
[[nodiscard]] double bandwidth_GBps(const AnalysisReport& report, const RankAnalysis& rank, const Transfer& transfer);

// How it says what it found in traces of several ranks.

[[nodiscard]] std::string to_table(const SeveralRanks& ranks);
[[nodiscard]] std::string to_json(const SeveralRanks& ranks);
[[nodiscard]] Fields<SeveralRanks> several_ranks_fields();

inline constexpr const char* kRanksHelp =
    R"(Several traces, one of each rank: what the ranks of a group do together are kernels of communication that each of them runs
at the same place of the group's sequence and that they leave at the same time, as barriers and collectives. Groups are those
that the traces state (PyTorch's "Process Group Name" and "Process Group Ranks" of NCCL's kernels); where they state none, as
few as make number and sizes of the kernels agree. skew: last arrival less the first one. A rank waits from its own arrival to
the last one's; keeps waiting: that of the others, on average over them, where it came last; last: in how many of all that it
takes part in. Clocks are set by the ends of what a group leaves together, messages and broadcasts not among it, from group to
group: clock is what a rank's differs from the first one's, +- how far ends then still scatter, ends apart the same of all ranks
of a group. An offset within that is 0. Where ranks leave nothing together their clocks cannot be told, unless all traces count
from 0. Who came last is meant among the traces that are given.)";

}  // namespace moeline
