// What annotations say by their names: which stand around a step of a server or of a training loop, and which are a
// framework's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace moeline {

/// Around a step of a server, or a numbered iteration: what steps of the same work have in common, such as
/// "DECODE bs=32". Nothing for any other annotation. The known names are a table in step_names.cpp.
[[nodiscard]] std::optional<std::string> kind_of_step(std::string_view name);

/// N of "ProfilerStep#N", which PyTorch's profiler writes.
[[nodiscard]] std::optional<std::uint32_t> profiler_step(std::string_view name);

/// The name without a number at its end: "my step 17" is of the kind "my step".
[[nodiscard]] std::string without_number(std::string_view name);

/// Annotations that frameworks make themselves and that are neither steps nor phases.
[[nodiscard]] bool is_of_framework(std::string_view name);

}  // namespace moeline
