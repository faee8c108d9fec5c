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

#include "curves/constants.hpp"
#include "curves/curve.hpp"
#include "curves/machine_facts.hpp"

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
  /// Constants of what a kernel in front of the others does by itself, a cast: whatever binds these comes on top.
  std::vector<Constant> first{};
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

// Every group of forms, for the table in form.cpp.

/// Of `us` on the tensor cores at their peak the part that counts as sustained: none up to 100 us, all from 10 ms on,
/// where a product runs at the clock that power leaves. None where the machine's clock is said: power is in that.
[[nodiscard]] double by_power(double us, const MachineFacts& machine);

[[nodiscard]] std::vector<Form> linear_forms();      // linear_form.cpp
[[nodiscard]] std::vector<Form> prefill_forms();     // prefill_form.cpp
[[nodiscard]] std::vector<Form> cudnn_forms();       // prefill_form.cpp
[[nodiscard]] std::vector<Form> decode_forms();      // decode_form.cpp
[[nodiscard]] std::vector<Form> rows_forms();        // linear_form.cpp
[[nodiscard]] std::vector<Form> state_forms();       // state_form.cpp
[[nodiscard]] std::vector<Form> sparse_forms();      // sparse_form.cpp
[[nodiscard]] std::vector<Form> moe_forms();         // moe_form.cpp
[[nodiscard]] std::vector<Form> peaks_forms();       // peaks_form.cpp
[[nodiscard]] std::vector<Form> collective_forms();  // collective_form.cpp
[[nodiscard]] std::vector<Form> all_to_all_forms();  // all_to_all_form.cpp

// How large messages the serving stacks' own all-reduce takes.

/// Bytes up to which SGLang's custom all-reduce runs, as the steps in its tables show: beyond it calls NCCL.
[[nodiscard]] double most_custom_bytes(const MachineFacts& machine);

}  // namespace moeline
