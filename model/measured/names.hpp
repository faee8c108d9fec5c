// What to call kernels and phases of a trace where people read it: short, and on one line whatever the trace has in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "measured/release.hpp"

namespace moeline {

/// The kernel's function, without templates and arguments.
[[nodiscard]] std::string short_kernel_name(std::string_view name);
/// A phase may be any annotation.
[[nodiscard]] std::string short_phase_name(std::string_view name);

[[nodiscard]] std::string kernel_name(const Measured& measured, std::int64_t event);
/// "attn(B) of layer 3"; empty where the event has no phase.
[[nodiscard]] std::string phase_name(const Measured& measured, std::int64_t event);
/// Its phase, or where it has none its kernel, and its step if it is in one.
[[nodiscard]] std::string place_name(const Measured& measured, std::int64_t event);

}  // namespace moeline
