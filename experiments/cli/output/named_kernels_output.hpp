// How `moeline analyze --kernels` says what the kernels of a trace are, by their names.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/fields.hpp"
#include "measured/named_kernels.hpp"

namespace moeline {

[[nodiscard]] Fields<NamedKernel> named_kernel_fields();
/// How much is not understood, and all of them.
[[nodiscard]] std::string to_table(const std::vector<NamedKernel>& kernels);

}  // namespace moeline
