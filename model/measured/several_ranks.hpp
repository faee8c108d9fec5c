// Traces of several ranks of one run: how far apart they reach what they do together, who comes last, who waits for
// whom.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "measured/breakdown.hpp"

namespace moeline {

/// A kernel of communication that all ranks have equally often, the k-th of each being the k-th of the others, and that
/// they leave together, as barriers and collectives are.
struct JointKernel {
  std::string kernel;
  std::size_t count = 0;
  Time median_skew{}, p95_skew{};  ///< last arrival less the first one
  Time end_spread{};               ///< median of last end less the first one: what the clocks leave unexplained
};

/// A kernel of communication that ranks do not do together, and why.
struct SeparateKernel {
  std::string kernel;
  std::string why;
};

struct RankOfSeveral {
  std::string file;
  std::uint32_t rank = 0;
  Breakdown times;
  Time clock_offset{};   ///< its clock less that of the first rank, by the ends of what they do together
  Time waited{};         ///< for the last of these ranks to come
  Time kept_waiting{};   ///< what the others waited for it, on average over them, where it came last
  std::size_t last = 0;  ///< times that it came last, and not with all the others
};

struct SeveralRanks {
  std::vector<RankOfSeveral> ranks;  ///< by rank
  std::vector<JointKernel> joint;    ///< by what is waited in them, most first
  std::vector<SeparateKernel> separate;
  std::size_t met = 0;                   ///< times that all ranks met
  std::vector<std::vector<Time>> waits;  ///< by rank, by the rank that came last: positions in `ranks`
};

/// One trace of the run, of one GPU.
struct RankTrace {
  std::string file;
  Trace trace;
  std::vector<KernelClass> classes;  ///< by event
};

/// Each GPU of a trace as a trace of its own.
[[nodiscard]] std::vector<RankTrace> ranks_in(const std::string& file, const Trace& trace, const KernelMap& map);

/// Clocks of nodes differ by more than ranks do: each rank's is set by the median of what the ends of common kernels of
/// communication differ from the first rank's. A kernel whose ends then lie further apart than half its median length
/// is none of them. Throws SpecError where two traces are of one rank, or where ranks do nothing together.
[[nodiscard]] SeveralRanks analyze_several(std::vector<RankTrace> traces);

}  // namespace moeline
