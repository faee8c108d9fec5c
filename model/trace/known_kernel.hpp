// Which row of the table of kernel names a name meets.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "trace/kernel_names.hpp"

namespace moeline {

/// What the table says of a name.
struct KnownKernel {
  const KernelNameRow* row = nullptr;  ///< null: it meets none
  bool by_word = false;                ///< only a general word was found
};
[[nodiscard]] KnownKernel known_kernel(std::string_view name);

/// All rows whose patterns are found in a name, in their order.
[[nodiscard]] std::vector<const KernelNameRow*> name_rows_met(std::string_view name);
[[nodiscard]] std::vector<const KernelNameRow*> word_rows_met(std::string_view name);

}  // namespace moeline
