// Pages and pictures of timelines: what of a run, a trace or a comparison stands in them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "experiments/cli/output/compare_output.hpp"
#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/page.hpp"
#include "experiments/timeline_page/phase_lanes.hpp"
#include "experiments/timeline_page/svg.hpp"

namespace moeline {

/// `result`: what the command prints, or empty. `ranks`: empty: those that matter most.
[[nodiscard]] TimelinePage run_page(const Run& run, const Explanation& explanation,
                                    const std::set<std::uint32_t>& ranks, const std::vector<std::string>& assignments,
                                    const std::string& result);
[[nodiscard]] TimelinePage trace_page(const std::string& file, const Measured& measured, const ReplayGraph& replay,
                                      const Explanation& explanation, const std::string& result);

/// One side of a comparison. Kernels by start.
struct ComparedSide {
  bool measured = false;
  const std::vector<KernelSpan>& kernels;
  const std::vector<PhaseTimes>& phases;
  const std::map<std::uint32_t, std::string>& stream_names;
};
/// Both timelines, with zero where the first phase begins that is compared.
[[nodiscard]] TimelinePage compare_page(const ComparisonReport& report, const ComparedSide& a, const ComparedSide& b);

/// By number, of streams that have one: "compute".
[[nodiscard]] std::map<std::uint32_t, std::string> stream_names(const TaskGraph& graph);
/// Phases of rank 0, stream by stream, or the slots of a pipeline.
[[nodiscard]] Picture picture_of(const Run& run);

}  // namespace moeline
