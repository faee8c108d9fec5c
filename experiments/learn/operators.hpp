// A measured step beside a simulated one, operator by operator.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/learn/kernel_sequences.hpp"

namespace moeline {

/// All executions of one operator in a step. Times as `charged` has them.
struct OperatorTimes {
  std::string name, module, task_class;
  std::vector<std::string> kernels{};  ///< names of the trace's, each once, the longest time first
  std::size_t count = 0;               ///< kernels of the trace
  std::size_t executions = 0;          ///< of the operator, in the part of the simulated step that was observed
  std::size_t observed = 0;            ///< of these, that have a kernel
  double measured_us = 0;
  double simulated_us = 0;  ///< of those that have a kernel, or where it may be fused of all
  double missing_us = 0;    ///< simulated, of those that have none and must have one
  bool meets_ranks = false;
  /// Measured, of each execution whose gaps are known; of what meets other ranks of all, without gaps.
  std::vector<double> each_us{};
  double least_simulated_us = 0;       ///< of one execution, the same
  std::vector<std::uint32_t> works{};  ///< indices into Program::kernels, each once
  /// Executions whose kernels bear other names than most do: inside some HIP graphs names are those of neighbours.
  std::size_t otherwise_named = 0;

  /// Other kernels do its work: most of its executions have none of their own.
  [[nodiscard]] bool is_fused_away() const { return executions > 0 && 2 * observed < executions && may_be_fused; }
  bool may_be_fused = true;  ///< it passes over memory; products and what meets other ranks are always kernels
};

/// Kernels of one name that no operator has.
struct UnassignedKernel {
  std::string name;
  std::size_t count = 0;
  double us = 0;
};

struct AlignedStep {
  std::vector<SimulatedKernel> simulated;
  std::vector<std::int32_t> operator_of;     ///< by kernel of the observed step, an index into `simulated`; -1: none
  std::vector<OperatorTimes> operators;      ///< in the order of their first executions
  std::vector<UnassignedKernel> unassigned;  ///< longest first
  double assigned = 0;                       ///< share of the step's kernel time that has an operator
  double missing = 0;  ///< share of the simulated kernel time whose operators must have kernels and have none
  /// Of `simulated`, from the first with a kernel to behind the last one: what lies outside the server does elsewhere,
  /// such as sampling behind its graphs.
  std::size_t begin = 0, end = 0;
};

[[nodiscard]] AlignedStep align_step(const Measured& measured, const ObservedStep& step, const Run& run);

/// What a run takes for the part of its step that was observed. REQUIRES: its kernels are those that were aligned.
[[nodiscard]] double observed_part_us(const Run& run, const AlignedStep& aligned);

/// us of the simulated kernels outside of that part.
[[nodiscard]] double outside_us(const AlignedStep& aligned);

/// us of each operator in another run of the same model, by the names that OperatorTimes has.
[[nodiscard]] std::map<std::string, double> operator_us(const Run& run);

}  // namespace moeline
