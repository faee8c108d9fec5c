// From traces of a run: its scenario, and a machine whose kernels take what they took there.
#pragma once

#include <string>
#include <vector>

#include "experiments/learn/operators.hpp"
#include "experiments/learn/recovered_settings.hpp"
#include "experiments/run/shapes.hpp"
#include "timeline/kernel_spans.hpp"

namespace moeline {

/// A trace on the command line.
struct TraceToLearn {
  std::string file;
  const Measured* measured = nullptr;
};

/// What one trace says, by the settings recovered from it.
struct LearntTrace {
  std::string file;
  ObservedStep step;
  Settings settings;
  AlignedStep aligned;
  double measured_us = 0;                       ///< from the first kernel of the step to the last one's end
  double before_us = 0;                         ///< predicted by the settings that names and annotations tell
  double settled_us = 0;                        ///< with those that times tell as well: experts hit
  double after_us = 0;                          ///< with the learnt kernels
  std::map<std::string, double> before, after;  ///< us of each operator
  /// A layer in the middle of the step, each kernel as a phase that bears its operator's name.
  std::vector<KernelSpan> measured_layer, simulated_layer;
  std::vector<std::string> warnings;
};

/// A step of a trace beside a run that is given: nothing is learnt, before and after are the prediction.
[[nodiscard]] LearntTrace compared_step(const TraceToLearn& input, const Run& run);

struct Learning {
  std::vector<LearntTrace> traces;  ///< as given
  LearntKernels kernels;
  std::string machine;  ///< that the learnt one extends
  std::string kernel_set;
  std::string machine_yaml, scenario_yaml;  ///< the scenario is the first trace's
};

/// What there is to be learnt from.
struct LearnRequest {
  std::vector<TraceToLearn> traces;
  GivenSettings given;
  std::string month;  ///< "2026-11", of the kernel set's name
};

/// Throws SpecError (file, key) where a trace tells too little, or where a scenario of its settings cannot be
/// simulated.
[[nodiscard]] Learning learn(const LearnRequest& request);

/// FLOPs and bytes of the step's kernels, by what the trace's kernels are, each over the time that they add.
[[nodiscard]] Shapes shapes_by_operators(const Measured& measured, const LearntTrace& trace, const Run& run);

/// By how much each operator of a learnt set takes longer than its prediction.
[[nodiscard]] double factor_of(const Learning& learning, const OperatorTimes& times);

}  // namespace moeline
