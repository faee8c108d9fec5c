#include "experiments/learn/doubts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/learn/step_evidence.hpp"
#include "hardware/device_name.hpp"

namespace moeline {
namespace {

// A factor that no library's choice explains: the setting, or the model, is another.
void note_factors(LearntTrace& trace) {
  constexpr double kFar = 5, kMatters = 0.02;
  std::vector<std::string> names;
  for (const OperatorTimes& times : trace.aligned.operators) {
    const bool matters = times.measured_us + times.simulated_us > kMatters * trace.measured_us;
    if (!matters || times.observed == 0 || times.simulated_us == 0) continue;
    const double factor = times.measured_us / times.simulated_us;
    if (factor > kFar || factor < 1 / kFar) names.push_back(fmt::format("{} ({:.3g} times)", times.name, factor));
  }
  if (names.empty()) return;
  trace.warnings.push_back(
      fmt::format("{}: so far from the prediction that a setting may be wrong", fmt::join(names, ", ")));
}

// What must be kernels of their own and is none, such as collectives of a trace that has no other rank.
void note_missing(LearntTrace& trace) {
  for (const OperatorTimes& times : trace.aligned.operators) {
    if (times.executions == 0 || times.observed > 0 || times.may_be_fused) continue;
    trace.warnings.push_back(
        fmt::format("{}: none of its {} executions has a kernel in the trace", times.name, times.executions));
  }
}

void note_names(LearntTrace& trace) {
  if (!trace.step.in_graphs) return;  // elsewhere a library may choose by what it is given
  constexpr std::size_t kManyExecutions = 8;
  for (const OperatorTimes& times : trace.aligned.operators) {
    if (times.observed < kManyExecutions || 5 * times.otherwise_named < times.observed) continue;
    trace.warnings.push_back(fmt::format(
        "{}: {} of {} executions have kernels of other names than the rest; names of a graph's kernels may be "
        "those of their neighbours",
        times.name, times.otherwise_named, times.observed));
  }
}

void note_layers(const Run& run, const Measured& measured, LearntTrace& trace) {
  const std::size_t repeated = StepEvidence(measured, trace.step).layers();
  const auto layers = static_cast<std::size_t>(run.setup.model.num_hidden_layers);
  if (repeated == 0 || repeated == layers) return;
  trace.warnings.push_back(
      fmt::format("{} layers repeat in it, and {} has {}", repeated, run.setup.scenario.model, layers));
}

// Operators at the ends of the step that the trace has elsewhere, or not at all.
void note_outside(LearntTrace& trace) {
  std::vector<std::string> names;
  for (const OperatorTimes& times : trace.aligned.operators) {
    if (times.executions == 0) names.push_back(times.name);
  }
  if (names.empty()) return;
  trace.warnings.push_back(
      fmt::format("{} stand outside of what was observed of the step: their {:.0f} us are in a simulation, "
                  "and not in what is compared here",
                  fmt::join(names, ", "), outside_us(trace.aligned)));
}

void note_machine(const Run& run, const Measured& measured, LearntTrace& trace) {
  const std::string& device = measured.trace.device;
  if (device.empty() || !is_another_machine(run.setup.machine.name, device)) return;
  trace.warnings.push_back(fmt::format("it was taken on {}, and {} is given", device, run.setup.machine.name));
}

void note_step(LearntTrace& trace) {
  if (trace.step.around > 0) {
    trace.warnings.push_back(
        fmt::format("{} kernels around the graphs of the step are left out: what the host prepares "
                    "and samples is no part of what is simulated",
                    trace.step.around));
  }
  if (trace.step.paused > Time::zero()) {
    trace.warnings.push_back(fmt::format("{:.0f} us of the step no kernel accounts for: {}", to_us(trace.step.paused),
                                         "kernels waited, for their launches, for other ranks, or without a reason"));
  }
}

}  // namespace

void note_doubts(const Run& run, const Measured& measured, LearntTrace& trace) {
  note_layers(run, measured, trace);
  note_machine(run, measured, trace);
  note_missing(trace);
  note_factors(trace);
  note_names(trace);
  note_outside(trace);
  note_step(trace);
}

}  // namespace moeline
