#include "experiments/learn/learn.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/file.hpp"
#include "base/text.hpp"
#include "experiments/learn/doubts.hpp"
#include "experiments/learn/experts_reached.hpp"
#include "experiments/learn/factors.hpp"
#include "experiments/learn/learnt_files.hpp"
#include "experiments/run/best_run.hpp"
#include "routing/popularity.hpp"

namespace moeline {
namespace {

constexpr const char* kMachine = "<learnt machine>";

// `trace`: whose settings a refusal is about.
Run simulated(const Settings& settings, const std::string& trace) {
  return best_run(read_candidates(fmt::format("the settings of {}", trace), scenario_yaml(settings, ""), {}));
}

// What factors multiply is a fitted set, also where an earlier trace taught its machine.
Run by_fitted_set(const Settings& settings, Run run, const std::string& trace) {
  if (run.setup.kernels().learnt.empty()) return run;
  Settings fitted = settings;
  fitted.put({.key = "kernels", .value = run.setup.kernels().learnt.over});
  return simulated(fitted, trace);
}

double step_us(const Run& run) { return to_us(run.explained_span()); }

// Rounded down: they are the most that there can have been.
std::string listed(const std::vector<double>& values) {
  std::vector<std::string> words;
  for (const double value : values) words.push_back(fmt::format("{:.1f}", std::floor(10 * value) / 10));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

// By which the step's tokens reach as many experts as its layers do in the mean.
double skew_of(const std::vector<double>& reached, const Run& run) {
  const Architecture& model = run.setup.model;
  const double mean = std::accumulate(reached.begin(), reached.end(), 0.0) / static_cast<double>(reached.size());
  return skew_that_hits(mean, tokens_of_experts(run.setup.scenario),
                        {model.num_experts_per_tok, model.n_routed_experts, 1, 0});
}

// Read from the time of its kernels: a setting, and no factor on a kernel.
void settle_experts(const ObservedStep& step, const AlignedStep& aligned, const Run& run, Settings& settings) {
  const bool is_open = !settings.has("routing") && !settings.has("routing.experts_hit") &&
                       !settings.has("routing.distribution") && !settings.has("routing.alpha");
  if (!is_open || run.setup.scenario.phase() != WorkloadPhase::decode) return;
  const auto reached = experts_reached(step, aligned, run);
  if (!reached) return;
  const double alpha = skew_of(*reached, run);
  settings.put({"routing.distribution", "skewed", HowKnown::period,
                "its tokens reach fewer experts than if all were chosen alike"});
  settings.put({"routing.alpha", fmt::format("{:.3f}", alpha), HowKnown::period,
                "by it as many experts are reached in the mean, with other batches as many as that makes"});
  Setting hit{"routing.experts_hit", listed(*reached), HowKnown::period,
              "by layer: at the HBM's peak no more can have been read in the time of their products"};
  hit.is_remark = true;
  settings.put(std::move(hit));
}

// Twice as much of what was guessed, but no longer prompts than there are tokens.
std::string another(const Setting& guess, int number) {
  return std::to_string(guess.key == "workload.prompt_len" ? std::max(1, number / 2) : 2 * number);
}

// What the step becomes where a guess is wrong.
void ask_guesses(Settings& settings, double settled_us, const std::string& trace) {
  for (Setting& setting : settings.all()) {
    const auto number = as_number<int>(setting.value);
    if (setting.how != HowKnown::guessed || !number) continue;
    Settings other = settings;
    other.put({.key = setting.key, .value = another(setting, *number)});
    try {
      setting.change = step_us(simulated(other, trace)) / settled_us - 1;
      setting.tried = another(setting, *number);
    } catch (const SpecError&) {  // no such layout
      continue;
    }
  }
}

// Kernels of the operators of one layer, on both sides.
void take_layer(const Measured& measured, const Run& run, LearntTrace& trace) {
  const std::vector<SimulatedKernel>& simulated = trace.aligned.simulated;
  const std::uint32_t layer = simulated[simulated.size() / 2].layer;
  const auto span_of = [&](const SimulatedKernel& kernel, Time start, Time end) {
    const Operator& op = run.program.kernels[kernel.kernel].op;
    const KernelClass of = is_communication(op.family) ? KernelClass::collective : KernelClass::gemm;
    KernelSpan span;
    span.name = span.phase = learnt_name(op);
    span.kernel_class = of;
    span.start = start;
    span.end = end;
    return span;
  };
  for (std::size_t i = 0; i < trace.step.kernels.size(); ++i) {
    const std::int32_t op = trace.aligned.operator_of[i];
    if (op < 0 || simulated[static_cast<std::size_t>(op)].layer != layer) continue;
    const GpuEvent& event = measured.trace.gpu_events[trace.step.kernels[i].event];
    const Time end{event.end_ns * 1000};
    trace.measured_layer.push_back(
        span_of(simulated[static_cast<std::size_t>(op)], end - trace.step.kernels[i].added, end));
  }
  Time at{};
  for (const SimulatedKernel& kernel : simulated) {
    if (kernel.layer != layer) continue;
    at += kernel.gap;
    trace.simulated_layer.push_back(span_of(kernel, at, at + kernel.added));
    at += kernel.added;
  }
}

LearntTrace observed(const TraceToLearn& input) {
  LearntTrace trace;
  trace.file = input.file;
  trace.step = observed_step(*input.measured, input.file);
  trace.measured_us = to_us(trace.step.span);
  return trace;
}

struct LearntRun {
  LearntTrace trace;
  Run timed;  ///< by its settings, and the kernels that factors multiply
};

LearntRun learn_from(const TraceToLearn& input, const GivenSettings& given) {
  LearntTrace trace = observed(input);
  trace.settings = recovered_settings(*input.measured, trace.step, given, input.file);
  Run run = simulated(trace.settings, trace.file);
  trace.aligned = align_step(*input.measured, trace.step, run);
  if (trace.aligned.assigned == 0) {
    throw SpecError(input.file, 0, "no kernel of its step is one of this model's operators; is the part of it right?");
  }
  trace.before_us = observed_part_us(run, trace.aligned);
  settle_experts(trace.step, trace.aligned, run, trace.settings);
  if (trace.settings.has("routing.alpha")) run = simulated(trace.settings, trace.file);
  trace.settled_us = observed_part_us(run, trace.aligned);
  trace.before = operator_us(run);
  ask_guesses(trace.settings, step_us(run), trace.file);
  Run timed = by_fitted_set(trace.settings, std::move(run), trace.file);
  trace.aligned = align_step(*input.measured, trace.step, timed);
  note_doubts(timed, *input.measured, trace);
  take_layer(*input.measured, timed, trace);
  for (const std::string& warning : timed.warnings) trace.warnings.push_back(warning);
  return {std::move(trace), std::move(timed)};
}

// Of the launches that a host made one by one.
double host_us_per_kernel(const std::vector<LearntRun>& runs) {
  double us = 0, kernels = 0;
  for (const LearntRun& each : runs) {
    if (each.trace.step.in_graphs || !each.trace.step.knows_launches) continue;
    us += to_us(each.trace.step.host);
    for (const OperatorTimes& times : each.trace.aligned.operators) {
      if (!times.is_fused_away()) kernels += static_cast<double>(times.executions);
    }
  }
  return kernels > 0 ? us / kernels : 0;
}

// One kernel set has factors of one machine, over one set, for one phase.
void check_alike(const std::vector<LearntRun>& runs) {
  const LearntRun& first = runs.front();
  for (const LearntRun& each : runs) {
    const std::string *one = nullptr, *other = nullptr;
    const auto differs = [&](const std::string& a, const std::string& b) { return a != b && (one = &a, other = &b); };
    const bool bad = differs(first.timed.setup.machine.name, each.timed.setup.machine.name) ||
                     differs(first.timed.setup.kernels().name, each.timed.setup.kernels().name) ||
                     differs(word_of(first.timed.setup.scenario.phase()), word_of(each.timed.setup.scenario.phase()));
    if (!bad) continue;
    throw SpecError(each.trace.file, 0,
                    fmt::format("is of {}, and {} of {}: learn from each by itself", *other, first.trace.file, *one));
  }
}

}  // namespace

LearntTrace compared_step(const TraceToLearn& input, const Run& run) {
  LearntTrace trace = observed(input);
  trace.aligned = align_step(*input.measured, trace.step, run);
  trace.before_us = trace.settled_us = trace.after_us = observed_part_us(run, trace.aligned);
  trace.before = trace.after = operator_us(run);
  note_doubts(run, *input.measured, trace);
  take_layer(*input.measured, run, trace);
  return trace;
}

Shapes shapes_by_operators(const Measured& measured, const LearntTrace& trace, const Run& run) {
  Shapes shapes = no_shapes();
  const std::vector<SimulatedKernel>& simulated = trace.aligned.simulated;
  std::vector<bool> counted(simulated.size());
  for (std::size_t i = 0; i < trace.step.kernels.size(); ++i) {
    if (trace.aligned.operator_of[i] < 0) continue;
    const auto j = static_cast<std::size_t>(trace.aligned.operator_of[i]);
    const KernelClass of = measured.meaning.classes[trace.step.kernels[i].event];
    ClassShapes& of_class = shapes.classes[static_cast<std::size_t>(of)];
    of_class.time += trace.step.kernels[i].added;
    if (counted[j]) continue;  // an operator's work once, however many kernels do it
    add_work(run.program.kernels[simulated[j].kernel].op, of_class);
    counted[j] = true;
  }
  return shapes;
}

double factor_of(const Learning& learning, const OperatorTimes& times) {
  const auto own = learning.kernels.operators.find(times.name);
  return own == learning.kernels.operators.end() ? 1 : own->second.factor;
}

Learning learn(const LearnRequest& request) {
  std::vector<LearntRun> runs;
  for (const TraceToLearn& trace : request.traces) runs.push_back(learn_from(trace, request.given));
  check_alike(runs);
  Learning learning;
  learning.machine = runs.front().trace.settings.find("hardware")->value;
  learning.kernel_set = new_set_name(learning.machine, "learnt-" + request.month);
  learning.kernels.over = runs.front().timed.setup.kernels().name;
  learning.kernels.phase = word_of(runs.front().timed.setup.scenario.phase());
  learning.kernels.clock = runs.front().timed.setup.clock;
  learning.kernels.host_us_per_kernel = host_us_per_kernel(runs);
  std::vector<LearntFrom> from;
  for (const LearntRun& each : runs) from.push_back({&each.trace.aligned.operators, &each.timed});
  learn_factors(from, learning.kernels);
  for (LearntRun& each : runs) learning.traces.push_back(std::move(each.trace));
  learning.machine_yaml = machine_yaml(learning, request.month);
  const GivenText machine(kMachine, learning.machine_yaml);
  for (LearntTrace& trace : learning.traces) {
    const Run after = simulated(on_learnt_machine(trace.settings, kMachine, learning), trace.file);
    trace.after_us = observed_part_us(after, trace.aligned);
    trace.after = operator_us(after);
  }
  learning.scenario_yaml =
      scenario_yaml(on_learnt_machine(learning.traces.front().settings, kMachineFile, learning), title_of(learning));
  return learning;
}

}  // namespace moeline
