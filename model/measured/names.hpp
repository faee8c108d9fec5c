// What to call the kernels of a measured trace, and the places where they stand.
#pragma once

#include <cstdint>
#include <string>

#include "measured/release.hpp"
#include "trace/short_names.hpp"

namespace moeline {

[[nodiscard]] std::string kernel_name(const Measured& measured, std::int64_t event);
/// "attn(B) of layer 3"; empty where the event has no phase.
[[nodiscard]] std::string phase_name(const Measured& measured, std::int64_t event);
/// Its phase, or where it has none its kernel, and its step if it is in one.
[[nodiscard]] std::string place_name(const Measured& measured, std::int64_t event);

}  // namespace moeline
