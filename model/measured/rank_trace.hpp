// The trace of one rank, among those of other ranks of the same run.
#pragma once

#include <string>
#include <vector>

#include "trace/interpret.hpp"

namespace moeline {

/// One trace of the run, of one GPU.
struct RankTrace {
  std::string file;
  Trace trace;
  std::vector<KernelClass> classes;  ///< by event
};

[[nodiscard]] inline std::uint32_t rank_of(const RankTrace& trace) { return trace.trace.gpus.front().rank; }

/// Each GPU of a trace as a trace of its own.
[[nodiscard]] std::vector<RankTrace> ranks_in(const std::string& file, const Trace& trace, const KernelMap& map);

}  // namespace moeline
