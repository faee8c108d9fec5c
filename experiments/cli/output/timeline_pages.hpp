// What --html means, in the help of every command that writes the page of a timeline.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "experiments/cli/output/compare_output.hpp"
#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/page.hpp"
#include "experiments/timeline_page/picture.hpp"

namespace moeline {

inline constexpr const char* kTimelineHelp =
    R"(--html FILE: one page that needs no network, and says what it leaves out to stay below 2 MB. It zooms and pans over the
streams of the ranks that it shows, above what is taken of their SMs, memory and links (of a trace: whether kernels compute
or communicate). A bar that is clicked says what released it, how long it then waited and for what, what its end waited for,
what ran beside it, and where its price comes from. What the end waited for is the path of moeline explain. A whole step of
training is slots of all ranks, with the kernels of some slots of one rank.)";

// Pages and pictures of timelines: what of a run, a trace or a comparison stands in them.

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
