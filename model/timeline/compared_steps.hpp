// Two runs of one server, beside each other by their steps.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trace/step_windows.hpp"

namespace moeline {

/// A trace that is divided into steps rather than phases.
struct SteppedTrace {
  Trace trace;
  Interpretation meaning;
  std::vector<StepWindow> steps;
  std::vector<StepKind> kinds;
};

/// Nothing where the trace has no steps, or where phases hold most of it, or any of it beside the profiler's steps;
/// else both are moved from.
[[nodiscard]] std::optional<SteppedTrace> stepped(Trace& trace, Interpretation& meaning);

/// Steps of one kind on both sides.
struct StepPair {
  std::string kind;
  std::size_t a_count = 0, b_count = 0;
  Time a{}, b{};             ///< lengths of the median steps
  bool same_layers = false;  ///< these have equally many
};

struct StepPairs {
  std::vector<StepPair> common;  ///< longest in b first
  std::vector<std::string> only_in_a, only_in_b;
};

/// Throws SpecError, naming the kinds of both, where they share none.
[[nodiscard]] StepPairs pair_steps(const SteppedTrace& a, const SteppedTrace& b);

/// The phases of the median steps: of the kinds in `divided` by layers.
[[nodiscard]] Interpretation step_phases(const SteppedTrace& side, const std::set<std::string>& divided);

}  // namespace moeline
