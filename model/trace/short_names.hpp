// Names of a trace where people read them: short, and on one line whatever the trace has in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moeline {

/// The kernel's function, without templates and arguments.
[[nodiscard]] std::string short_kernel_name(std::string_view name);
/// A phase may be any annotation.
[[nodiscard]] std::string short_phase_name(std::string_view name);

/// "x, y, z" of phases or steps, and how many more where there are many.
[[nodiscard]] std::string some_of(const std::vector<std::string>& names);

}  // namespace moeline
