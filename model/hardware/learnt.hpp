// What a trace taught of a machine's kernels: how much longer they take than a kernel set says (`moeline learn`).
#pragma once

#include <map>
#include <string>

#include "hardware/measured_range.hpp"
#include "moe/operator.hpp"

namespace moeline {

struct Price;
class Spec;

/// Of kernels alike: of one operator, or of all operators of a class (learnt_class).
struct LearntFactor {
  /// Time that they add to a step with the gaps in front of them, over both by the set below. 0: other kernels do this
  /// work along with their own (a norm inside an all-reduce).
  double factor = 1;
  int kernels = 0;       ///< that were seen
  MeasuredRange range;   ///< of these
  std::string family{};  ///< of an operator, that prices it below (priced_as); empty: any
};

struct LearntKernels {
  std::string over;   ///< the kernel set that the factors multiply
  std::string phase;  ///< of the step that was traced: "decode". In others the set below counts
  double clock = 1;   ///< of the SMs, over the boost clock: what power left the traced step, at which all is priced
  double host_us_per_kernel = 0;                  ///< of a step that the host launched kernel by kernel; 0: not known
  std::map<std::string, LearntFactor> classes;    ///< by learnt_class
  std::map<std::string, LearntFactor> operators;  ///< by learnt_name; shrunk towards their class already

  [[nodiscard]] bool empty() const { return over.empty(); }
};

/// By which an operator is known again in another step, and which its kernels bear in a timeline: its name, and its
/// part of a transfer in two.
[[nodiscard]] std::string learnt_name(const Operator& op);

/// What it counts as in metrics, and its number format where that is not BF16: "gemm", "grouped_gemm mxfp4".
[[nodiscard]] std::string learnt_class(const Operator& op);

/// What tells an operator's kernels from each other: its family's dimensions, SMs apart.
[[nodiscard]] Dimensions learnt_dimensions(const Operator& op);

/// The price by the set below, as it was learnt: the operator's own factor where it is priced by the same family and is
/// as wide as it was in the trace, within a factor of 2, else its class'. Of fewer or more tokens or keys than seen, by
/// more than that, it is marked as extrapolated. Unchanged where nothing like it was seen.
void apply_learnt(const LearntKernels& learnt, const std::string& kernel_set, const Operator& op, Price& price);

/// A learnt price of a kernel that does not run by itself.
[[nodiscard]] bool is_fused_away(const Price& price);

/// As it stands in a profile, below `learnt:`; every line begins with so many spaces.
[[nodiscard]] std::string to_yaml(const LearntKernels& learnt, int indent);
/// Reads it back. Throws SpecError (file, line, key).
[[nodiscard]] LearntKernels read_learnt(const Spec& spec);

}  // namespace moeline
