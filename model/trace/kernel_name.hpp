// The function that a kernel's demangled name is about.
#pragma once

#include <string_view>

namespace moeline {

/// The function without return type, template arguments, parameters and wrappers that say nothing:
/// "void cutlass::device_kernel<flash::FlashAttnBwd<...>>(...)" gives "flash::FlashAttnBwd", and
/// "std::enable_if<!(false), void>::type internal::gemvx::kernel<...>(...)" gives "internal::gemvx::kernel".
[[nodiscard]] std::string_view subject_of(std::string_view kernel_name);

}  // namespace moeline
