// What would have to be faster: how a run's span answers to every class of kernels, phase, kernel, link and launch gap.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"
#include "timeline/gradient.hpp"
#include "timeline/shortened.hpp"

namespace moeline {

/// Something that takes time in a graph.
struct Item {
  std::string
      what;  ///< "class:gemm", "phase:attn(F)", "kernel:MLA decode core", "link:nic", "launch_gap", "barrier", ...
  double elasticity = 0;  ///< d ln span / d ln of its time, or of its capacity
  /// Sets the factors of its tasks, so that `left` of the item's time is left; empty: it comes in whole pieces.
  std::function<void(double left, Factors&)> shorten{};
};

/// Share of the span that is saved where the item takes so much less time.
struct Gains {
  double tenth = 0, half = 0, all = 0;
  std::string then{};  ///< the class of tasks that the end waits for longer, where the item takes none; "": none does
};

struct SpanSensitivity {
  std::string what;
  double elasticity = 0;
  std::optional<Gains> gains{};  ///< of the largest; of a capacity where that takes so much less time
  /// The share of its time after whose removal hardly anything more is gained: had the span gone on shrinking as with
  /// the first tenth, all of the gain would be there. Null without gains.
  [[nodiscard]] std::optional<double> knee() const;
};

/// For a table, of those with gains and what lies between them: what, elasticity, gains, knee and what binds then.
[[nodiscard]] std::vector<std::string> sensitivity_head();
[[nodiscard]] std::vector<std::vector<std::string>> sensitivity_rows(const std::vector<SpanSensitivity>& list);

/// Classes, phases and kernels of the graph, its launch gaps, and its barriers with what stands for ranks that are not
/// simulated. REQUIRES: `graph` outlives the items.
[[nodiscard]] std::vector<Item> items_of(const TaskGraph& graph, const Gradient& gradient, Time span,
                                         const std::vector<bool>& stand_ins);

/// Largest elasticity first. Those that do not matter at all are left out.
[[nodiscard]] std::vector<SpanSensitivity> span_sensitivities(const TaskGraph& graph, std::vector<Item> items,
                                                              const Shortened& shortened);

// What of the machine would have to be faster: its links, its memory, its network's latency, more SMs.

/// "link:nic", "link:nvlink", "link:hbm", "latency" and "sms", by pricing every kernel of the run again on a machine
/// that has a little more of it: the elasticity is that of `--set hardware.nic_GBps=`, with what ranks wait for each
/// other and the clock held. Those that no kernel's price depends on are left out, and all where no kernel is known.
/// REQUIRES: `run` outlives the items.
[[nodiscard]] std::vector<Item> hardware_items(const Run& run, const Gradient& gradient);

}  // namespace moeline
