#include "experiments/learn/operators.hpp"

#include <algorithm>

#include "experiments/learn/alignment.hpp"
#include "hardware/learnt.hpp"
#include "measured/names.hpp"

namespace moeline {
namespace {

const Operator& op_of(const Run& run, const SimulatedKernel& kernel) { return run.program.kernels[kernel.kernel].op; }

std::vector<std::int32_t> align_kernels(const Measured& measured, const ObservedStep& step, const Run& run,
                                        const std::vector<SimulatedKernel>& simulated) {
  std::vector<AlignedKernel> kernels;
  for (const ObservedKernel& kernel : step.kernels) {
    const GpuEvent& event = measured.trace.gpu_events[kernel.event];
    kernels.push_back({kernel.kinds, measured.trace.name(event), event.flops});
  }
  std::vector<AlignedOperator> operators;
  std::vector<std::size_t> places;  // of operators that take time: the others are no kernels of this kernel set
  for (std::size_t j = 0; j < simulated.size(); ++j) {
    if (charged(simulated[j]) == Time::zero()) continue;
    const Operator& op = op_of(run, simulated[j]);
    operators.push_back({simulated[j].kind, learnt_name(op), op.flops});
    places.push_back(j);
  }
  std::vector<std::int32_t> operator_of = align(kernels, operators);
  for (std::int32_t& op : operator_of) {
    if (op != kUnassigned) op = static_cast<std::int32_t>(places[static_cast<std::size_t>(op)]);
  }
  return operator_of;
}

// The kernels of one execution, as they stand in the observed step.
using Executed = std::vector<std::size_t>;

std::string names_of(const Measured& measured, const ObservedStep& step, const Executed& executed) {
  std::string names;
  for (const std::size_t i : executed)
    names += measured.trace.name(measured.trace.gpu_events[step.kernels[i].event]) + "\n";
  return names;
}

// Of an operator, one execution: its kernels, and by which keys it attends. Windows have kernels of their own.
struct OperatorExecution {
  const Executed* kernels = nullptr;
  double kv_len = 0;
};

void add_names(const Measured& measured, const ObservedStep& step, const std::vector<OperatorExecution>& executions,
               OperatorTimes& times) {
  std::map<std::string, double> us;
  std::map<double, std::map<std::string, std::size_t>> together;  // by keys
  for (const OperatorExecution& execution : executions) {
    if (!execution.kernels->empty()) ++together[execution.kv_len][names_of(measured, step, *execution.kernels)];
    for (const std::size_t i : *execution.kernels) {
      us[kernel_name(measured, step.kernels[i].event)] += to_us(charged(step.kernels[i]));
    }
  }
  for (const auto& [name, time] : us) times.kernels.push_back(name);
  std::stable_sort(times.kernels.begin(), times.kernels.end(),
                   [&](const std::string& a, const std::string& b) { return us[a] > us[b]; });
  times.otherwise_named = times.observed;
  for (const auto& [keys, named] : together) {
    std::size_t most = 0;
    for (const auto& [names, count] : named) most = std::max(most, count);
    times.otherwise_named -= most;
  }
}

// The first kernel of what was observed has no gap on either side.
void add_simulated(const SimulatedKernel& kernel, bool is_first, bool is_observed, OperatorTimes& times) {
  const double us = to_us(is_first ? kernel.added : charged(kernel));
  (is_observed || times.may_be_fused ? times.simulated_us : times.missing_us) += us;
  const double alone = times.meets_ranks ? to_us(kernel.added) : us;
  times.least_simulated_us = times.executions == 0 ? alone : std::min(times.least_simulated_us, alone);
}

void add_execution(const ObservedStep& step, const Executed& executed, OperatorTimes& times) {
  ++times.executions;
  if (executed.empty()) return;
  ++times.observed;
  times.count += executed.size();
  double us = 0, added = 0;
  bool is_late = false;
  for (const std::size_t i : executed) {
    us += to_us(charged(step.kernels[i]));
    added += to_us(step.kernels[i].added);
    is_late = is_late || step.kernels[i].is_late;
  }
  if (times.meets_ranks || !is_late) times.each_us.push_back(times.meets_ranks ? added : us);
  times.measured_us += us;
}

bool may_be_fused(KernelKind kind) {
  switch (kind) {
    case KernelKind::product:
    case KernelKind::experts:
    case KernelKind::attention:
    case KernelKind::collective:
    case KernelKind::dispatch:
    case KernelKind::combine:
      return false;
    default:
      return true;
  }
}

void find_observed_part(AlignedStep& aligned) {
  aligned.begin = aligned.simulated.size();
  for (const std::int32_t op : aligned.operator_of) {
    if (op == kUnassigned) continue;
    aligned.begin = std::min(aligned.begin, static_cast<std::size_t>(op));
    aligned.end = std::max(aligned.end, static_cast<std::size_t>(op) + 1);
  }
}

std::vector<OperatorTimes> operators_of(const Measured& measured, const ObservedStep& step, const Run& run,
                                        const AlignedStep& aligned) {
  std::vector<Executed> executed(aligned.simulated.size());
  for (std::size_t i = 0; i < step.kernels.size(); ++i) {
    if (aligned.operator_of[i] != kUnassigned) executed[static_cast<std::size_t>(aligned.operator_of[i])].push_back(i);
  }
  std::vector<OperatorTimes> operators;
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<OperatorExecution>> executions;
  for (std::size_t j = 0; j < aligned.simulated.size(); ++j) {
    const SimulatedKernel& kernel = aligned.simulated[j];
    const Operator& op = op_of(run, kernel);
    const auto [place, is_new] = places.try_emplace(learnt_name(op), operators.size());
    if (is_new) {
      operators.push_back({.name = learnt_name(op), .module = op.module, .task_class = row_of(op.family).task_class});
      operators.back().may_be_fused = may_be_fused(kernel.kind);
      operators.back().meets_ranks = is_communication(op.family);
      executions.emplace_back();
    }
    if (j < aligned.begin || j >= aligned.end) continue;
    OperatorTimes& times = operators[place->second];
    add_simulated(kernel, j == aligned.begin, !executed[j].empty(), times);
    if (std::find(times.works.begin(), times.works.end(), kernel.kernel) == times.works.end())
      times.works.push_back(kernel.kernel);
    add_execution(step, executed[j], times);
    executions[place->second].push_back({&executed[j], op.attention.kv_len});
  }
  for (std::size_t k = 0; k < operators.size(); ++k) add_names(measured, step, executions[k], operators[k]);
  return operators;
}

std::vector<UnassignedKernel> unassigned_of(const Measured& measured, const ObservedStep& step,
                                            const AlignedStep& aligned) {
  std::map<std::string, UnassignedKernel> by_name;
  for (std::size_t i = 0; i < step.kernels.size(); ++i) {
    if (aligned.operator_of[i] != kUnassigned) continue;
    const std::string name = kernel_name(measured, step.kernels[i].event);
    UnassignedKernel& kernel = by_name[name];
    kernel.name = name;
    ++kernel.count;
    kernel.us += to_us(charged(step.kernels[i]));
  }
  std::vector<UnassignedKernel> unassigned;
  for (auto& [name, kernel] : by_name) unassigned.push_back(std::move(kernel));
  std::stable_sort(unassigned.begin(), unassigned.end(),
                   [](const UnassignedKernel& a, const UnassignedKernel& b) { return a.us > b.us; });
  return unassigned;
}

}  // namespace

AlignedStep align_step(const Measured& measured, const ObservedStep& step, const Run& run) {
  AlignedStep aligned;
  aligned.simulated = simulated_kernels(run);
  aligned.operator_of = align_kernels(measured, step, run, aligned.simulated);
  find_observed_part(aligned);
  aligned.operators = operators_of(measured, step, run, aligned);
  aligned.unassigned = unassigned_of(measured, step, aligned);
  double with = 0, without = 0, simulated = 0, missing = 0;
  for (const OperatorTimes& times : aligned.operators) {
    with += times.measured_us;
    simulated += times.simulated_us + times.missing_us;
    missing += times.missing_us;
  }
  for (const UnassignedKernel& kernel : aligned.unassigned) without += kernel.us;
  aligned.assigned = with + without > 0 ? with / (with + without) : 0;
  aligned.missing = simulated > 0 ? missing / simulated : 0;
  return aligned;
}

double observed_part_us(const Run& run, const AlignedStep& aligned) {
  const std::vector<SimulatedKernel> kernels = simulated_kernels(run);
  Time start = Time::max(), end = Time::min();
  for (std::size_t j = aligned.begin; j < aligned.end; ++j) {
    start = std::min(start, kernels[j].end - kernels[j].added);
    end = std::max(end, kernels[j].end);
  }
  return aligned.begin < aligned.end ? to_us(end - start) : 0;
}

double outside_us(const AlignedStep& aligned) {
  double us = 0;
  for (std::size_t j = 0; j < aligned.simulated.size(); ++j) {
    if (j < aligned.begin || j >= aligned.end) us += to_us(charged(aligned.simulated[j]));
  }
  return us;
}

std::map<std::string, double> operator_us(const Run& run) {
  std::map<std::string, double> us;
  for (const SimulatedKernel& kernel : simulated_kernels(run)) {
    us[learnt_name(op_of(run, kernel))] += to_us(charged(kernel));
  }
  return us;
}

}  // namespace moeline
