// How far machines that were left out, and derived from another, came from their own kernels.
#pragma once

#include <optional>
#include <string>

#include "curves/machine_facts.hpp"

namespace moeline {

/// A machine against the one whose kernels it has: FLOP of an SM in a clock (of FP8, or of BF16 where one has no FP8)
/// are as many within 10 %, more, or fewer; or they are of two vendors.
enum class Kin { same_tensor_cores, faster_tensor_cores, slower_tensor_cores, other_vendor };
[[nodiscard]] Kin kin_of(const MachineFacts& machine, const MachineFacts& like);
[[nodiscard]] const std::string& name_of(Kin kin);

/// Of predicted / by its own kernels - 1.
struct LeftOutError {
  int cases = 0;
  double median_abs_error = 0, p95_abs_error = 0;
  double mean_error = 0, worst_error = 0;  ///< signed
};

/// Of hwprofiles/left_out.csv (experiments/studies/machine_left_out). `what`: a family, or "decode step", "prefill
/// step". Nothing where no such pair of machines was tried.
[[nodiscard]] std::optional<LeftOutError> left_out_error(Kin kin, const std::string& what);

}  // namespace moeline
