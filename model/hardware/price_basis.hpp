// What a price rests on: measurements of families, curves and forms, and what is said of how they are known. Parts of
// price.cpp, price_transfer.cpp and bound.cpp.
#pragma once

#include <string>
#include <vector>

#include "curves/curve.hpp"
#include "hardware/kernel_set.hpp"
#include "hardware/price.hpp"
#include "moe/operator.hpp"

namespace moeline::price_parts {

inline constexpr const char* kNoMeasurement = "no measurement";

/// The families whose measurements made a price. The first one's kernel set is named beside it.
struct Basis {
  std::vector<std::string> families;
  std::string doubt;  ///< why these measurements may not apply; "": they do
};

/// How a kernel that lies there is known.
void set_provenance(const KernelSet& kernels, const Basis& basis, const Dimensions& dimensions, Price& price);
void set_roofline(Price& price);
/// It is extrapolated, for this reason.
void doubt_price(const char* reason, Price& price);

/// The form that a serving stack's tables gave the family; null where its curve goes by the set's constants.
[[nodiscard]] const FamilyFit* fit_with_form(const std::string& family, const KernelSet& kernels);

/// What serving stacks' tables measured the kernel as, where they count: not before what the chosen set itself has of
/// these families, and of a set that is no stack's not before anything that is known of them.
[[nodiscard]] const FamilyFit* measured_fit(const Operator& op, const std::vector<std::string>& families,
                                            const KernelSet& kernels);

[[nodiscard]] inline double GBps(double bytes, double us) { return us > 0 ? bytes / us / 1e3 : 0; }

/// us and what binds; the constants that made them are noted in the price.
[[nodiscard]] Evaluation evaluate_noting(const Curve& curve, const KernelSet& kernels, Price& price);

/// us by a family's form with a gain. Tables were timed hot: what the gain adds belongs to the hot time, whatever else
/// a cold kernel takes.
[[nodiscard]] double us_by_form(const Operator& op, const FamilyFit& fit, double gain, double curve_us, int sms,
                                const MachineFacts& machine);
/// Of the family's correction; another machine's kernels have other residuals. On all SMs of a machine that is given
/// more of them, or fewer, a shape keeps the one that it has on as many as were measured.
[[nodiscard]] double gain_of(const FamilyFit& fit, Dimensions at, const MachineFacts& machine);

/// The branch of its curve that is the longest. One of latency says how times grow, with each step of a chain: a kernel
/// that runs at half of a peak is bound by that.
[[nodiscard]] std::string bound_of(const Evaluation& curve, const Operator& op, double solo_us,
                                   const MachineFacts& machine);

/// No kernel beats the peaks of HBM and of the tensor cores it runs on.
[[nodiscard]] double floor_us(const Operator& op, const MachineFacts& machine);
/// A curve a little below the peaks is a matter of rounding; one far below knows nothing of such a kernel.
inline constexpr double kRounding = 1.05;
void raise_to_floor(double floor_us, double rounding, Price& price);

}  // namespace moeline::price_parts

namespace moeline {

// What chance makes of the time of routed experts: balanced routing scatters tokens, and a rank gets more or fewer
// rows, of more or fewer experts.

/// Standard deviation over the mean of a kernel's time by a stack's form, to first order: how much longer it takes with
/// one standard deviation more of the rank's rows and of the experts that get any. Both go together; rows of experts
/// count as independent, with Operator::rows_deviation each. 0 where nothing is left to chance.
[[nodiscard]] double deviation_by_chance(const Operator& op, const FamilyFit& fit, int sms,
                                         const MachineFacts& machine);

}  // namespace moeline
