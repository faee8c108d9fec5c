// Forms: the cost curves of serving stacks' kernels, by name.
//
// A family that was measured in a stack names its form ("fa3", "trtllm_cublas") and has constants of its own for it,
// which no other family shares. A form says which terms there are and how the kernel is built: its tiles, the order in
// which it walks them, when it splits. That was chosen on the tables of `data/aic`, and the constants are fitted to
// them (calib/fit/fit_form.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "curves/curve.hpp"

namespace moeline {

/// One constant of a form.
struct FormPart {
  std::string name;  ///< "start_us"; "..._roofline_multiple": time over that at the machine's peak
  double least = 0;  ///< no fit makes it smaller
};

struct Form {
  std::string name;
  std::vector<FormPart> parts;
  /// Curve of one kernel on `sms` SMs; its terms count from the form's own constants (`part`).
  std::function<Curve(const Operator& op, int sms, const MachineFacts& machine)> curve;
};

/// The n-th constant of a form, where a term names a constant.
[[nodiscard]] constexpr Constant part(std::size_t n) { return static_cast<Constant>(n); }

/// Null where no form has that name.
[[nodiscard]] const Form* form_named(const std::string& name);
[[nodiscard]] std::vector<std::string> form_names();

/// Share of a kernel's operands that it finds in L2 when it is repeated on the same ones: 1 up to `whole`, 0 from
/// `none` on, both as shares of L2, and linear between them. 0 where L2's size is not known, and of a cold kernel.
[[nodiscard]] double l2_share(const Operator& op, double working_set_bytes, const MachineFacts& machine, double whole,
                              double none);

}  // namespace moeline
