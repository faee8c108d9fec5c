// Every group of forms, for the table in form.cpp.
#pragma once

#include <vector>

#include "curves/form.hpp"

namespace moeline {

/// Of `us` on the tensor cores at their peak the part that counts as sustained: none up to 100 us, all from 10 ms on,
/// where a product runs at the clock that power leaves.
[[nodiscard]] double by_power(double us);

[[nodiscard]] std::vector<Form> linear_forms();      // linear_form.cpp
[[nodiscard]] std::vector<Form> prefill_forms();     // prefill_form.cpp
[[nodiscard]] std::vector<Form> decode_forms();      // decode_form.cpp
[[nodiscard]] std::vector<Form> rows_forms();        // rows_form.cpp
[[nodiscard]] std::vector<Form> state_forms();       // state_form.cpp
[[nodiscard]] std::vector<Form> sparse_forms();      // sparse_form.cpp
[[nodiscard]] std::vector<Form> moe_forms();         // moe_form.cpp
[[nodiscard]] std::vector<Form> collective_forms();  // collective_form.cpp
[[nodiscard]] std::vector<Form> all_to_all_forms();  // all_to_all_form.cpp

}  // namespace moeline
