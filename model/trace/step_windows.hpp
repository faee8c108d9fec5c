// When each step ran on a GPU, and the layers in it.
#pragma once

#include <string>
#include <vector>

#include "trace/interpret.hpp"

namespace moeline {

struct Stretch {
  std::int64_t start_ns = 0, end_ns = 0;
  [[nodiscard]] std::int64_t length_ns() const { return end_ns - start_ns; }
};

/// Of events of one stream, by start, the repetitions of their sequence (repetitions.hpp), each until the next one
/// starts; one that another thing follows ends with its own last event.
[[nodiscard]] std::vector<Stretch> repeated_layers(const Trace& trace, const Interpretation& meaning,
                                                   const std::vector<std::uint32_t>& events);

struct StepWindow {
  std::uint32_t step = 0;  ///< index into Trace::steps
  std::uint16_t gpu = 0;
  Stretch time;                 ///< of its events on the stream that computes most in it
  std::vector<Stretch> layers;  ///< repetitions on that stream, where phases do not hold most of the trace
};

/// By GPU, then start.
[[nodiscard]] std::vector<StepWindow> step_windows(const Trace& trace, const Interpretation& meaning);

/// Steps of the same work. Indices into the windows.
struct StepKind {
  std::string kind;
  std::vector<std::size_t> steps;  ///< by start
  std::size_t median = 0;          ///< the step of median length; of two the shorter
};

/// Of steps of one GPU: those that take longest in all first.
[[nodiscard]] std::vector<StepKind> step_kinds(const Trace& trace, const std::vector<StepWindow>& steps);

}  // namespace moeline
