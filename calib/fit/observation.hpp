// One measured time, and the cost curves that should meet it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "architecture/architecture.hpp"
#include "base/csv.hpp"
#include "base/error.hpp"
#include "curves/curve.hpp"
#include "hardware/measured_range.hpp"

namespace moeline {

/// What the error of a measurement grows with.
enum class Noise {
  profiled,  ///< whole microseconds beside other kernels: between relative and absolute errors
  timed      ///< a benchmark of its own: relative errors
};

struct Observation {
  std::string family{};  ///< of FamilyFit, or "launch"
  double measured_us = 0;
  std::vector<Curve> curves{};  ///< of the kernels that ran meanwhile, whose times add up; most often one
  Dimensions dimensions{};      ///< where it lies in its family's range
  std::string where{};          ///< "attn(F) 15, layer 0"
  Noise noise = Noise::profiled;
  std::string fold{};         ///< of cross-validation: observations with the same fold are left out together; "": never
  std::string fold_across{};  ///< another cut of the same table: one number of SMs, or of tokens
  bool throttled = false;     ///< at the clock that the kernel's own load leaves
  bool host_timed = false;    ///< by the host's clock around many launches: each holds a launch gap
  std::string varies{};       ///< of a difference between two executions: the family whose jitter it shows
};

/// Which cut: &Observation::fold or &Observation::fold_across.
using Cut = std::string Observation::*;

[[nodiscard]] double evaluate(const Observation& observation, const Constants& constants);

/// Every term of its curves, whatever binds.
template <typename Visit>
void for_each_term(const Observation& observation, const Visit& visit) {
  for (const Curve& curve : observation.curves) {
    for (const Term& term : curve.always) visit(term);
    for (const Branch& branch : curve.branches) {
      for (const Term& term : branch.terms) visit(term);
    }
  }
}

/// A benchmark's row: `op` alone took `us` on `sms` SMs.
[[nodiscard]] Observation timed(const CsvTable& table, std::size_t row, const Operator& op, int sms, double us,
                                Curve curve);

/// Whether a published figure is for this kernel set: its column `kernels` names sets, or "none".
[[nodiscard]] bool is_for(const std::string& kernel_set, const CsvTable& table, std::size_t row);

/// Takes these constants, where they are known, as they are: what they add whatever binds is no part of the fit.
void give(const Constants& constants, Curve& curve);

/// Drops the other branches: what a table was not made to tell, or cannot, is no part of the fit.
void keep_branch(Curve& curve, std::string_view bound);

}  // namespace moeline
