// One body of kernels at one date: the constants of its cost curves, and how well they meet measurements.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curves/constants.hpp"
#include "curves/form.hpp"
#include "curves/gemm_tiles.hpp"
#include "curves/machine_facts.hpp"
#include "hardware/correction.hpp"
#include "hardware/learnt.hpp"
#include "hardware/measured_range.hpp"

namespace moeline {

/// Of the SMs, while a kernel set's rows were timed.
enum class Clock {
  burst,      ///< of rested GPUs: the highest
  sustained,  ///< under a load like the one that is predicted
  unknown,
};

[[nodiscard]] const std::string& name_of(Clock clock);

/// How well a family's curve meets measurements, and where those lie.
struct FamilyFit {
  int kernels = 0;
  MeasuredRange range;
  bool held_out = false;           ///< errors of kernels left out of the fit; else of the fitted ones
  double median_abs_error = 0;     ///< of predicted / measured - 1
  double median_error = kUnknown;  ///< signed; of families with a form
  double p95_abs_error = 0;
  double worst_error = 0;    ///< signed
  double mean_error = 0;     ///< signed
  double jitter = kUnknown;  ///< standard deviation of a kernel's time over its mean, from one execution to the next
  bool host_timed = false;   ///< its times hold a launch gap each
  bool graph_timed = false;  ///< they hold the gap of a CUDA graph's node each
  std::string kernel_set;  ///< it was fitted for; another set's name where borrowed, "h800: NAME" from another machine
  TileSet tiles = TileSet::wide;  ///< of that set
  Clock clock = Clock::unknown;   ///< that set's, where its rows do not say another
  const Form* form = nullptr;  ///< of a serving stack's kernels; null: the curve of the family by the set's constants
  std::vector<double> constants;  ///< of the form, in the order of its parts
  Correction correction;          ///< of the form's curve; errors are those with it
  bool other_machine = false;     ///< carried over from another profile
};

/// A program that serves models, or trains them. Its habits come with its kernels: how tokens reach experts, and which
/// kernels run them.
enum class Stack { none, sglang, trtllm, vllm, megatron };
[[nodiscard]] const std::string& name_of(Stack stack);
/// "TensorRT-LLM"; "" where there is none.
[[nodiscard]] const char* title_of(Stack stack);

/// One body of kernels at one date.
struct KernelSet {
  std::string name;
  Stack stack = Stack::none;  ///< whose kernels they are
  std::string date;
  std::string source;
  TileSet tiles = TileSet::wide;
  Clock clock = Clock::unknown;
  bool of_a_stack = false;    ///< its own families have forms, each with constants of its own
  bool by_name_only = false;  ///< neither a default nor a lender: its measurements are too few, or of another time
  Generation generation = Generation::other;  ///< of the GPU that it belongs to
  MachineFacts fitted_on;                     ///< the machine that the measurements were made on
  Constants constants{};
  std::array<std::string, kConstants> origins;  ///< set that a constant was fitted for, named as in FamilyFit
  std::map<std::string, FamilyFit> fits;        ///< by family name
  /// Throughput of whole runs that were published of the machine, by phase: predicted with this set / published - 1.
  std::map<std::string, double> published_errors;
  LearntKernels learnt;  ///< what a trace says of it; empty: it is no learnt set
  std::string tables;    ///< the set below a learnt one, or one that has another stack's tables; "": it has its own

  /// The set whose curves are evaluated.
  [[nodiscard]] const std::string& fitted_name() const { return tables.empty() ? name : tables; }
  [[nodiscard]] double operator[](Constant c) const { return constants[static_cast<std::size_t>(c)]; }
  [[nodiscard]] bool knows(std::string_view group) const;
  /// Of all kernels that a step needs: has products of matrices. One library's kernels are lent to others alone.
  [[nodiscard]] bool is_whole() const;
  [[nodiscard]] int known_constants() const;
  /// Of a family's kernels: its own where it was measured, else that of all; 0 where neither is known.
  [[nodiscard]] double jitter(const std::string& family) const;
  /// The family's rows were timed on rested GPUs.
  [[nodiscard]] bool is_burst(const std::string& family) const;
};

/// "gemm_fp8" and how many of its constants are known, in their order.
[[nodiscard]] std::vector<std::pair<std::string_view, int>> known_by_group(const Constants& constants);

/// What `set` does not know, from `lender`: whole groups of constants, and families.
void borrow(const KernelSet& lender, KernelSet& set);

}  // namespace moeline
