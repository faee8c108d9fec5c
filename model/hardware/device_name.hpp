// What a GPU calls itself, and which machine of hwprofiles that is.
#pragma once

#include <optional>
#include <string>

namespace moeline {

/// The profile that the device's name names: one of its words is the profile's name, whole or up to the first '-'.
/// "NVIDIA H100 80GB HBM3" is h100, "NVIDIA GB200" gb200-nvl72, "h800" (of our own traces) h800. None where no word is
/// one, and where another word tells another board (PCIe, NVL, H20-3e), a part of a GPU (MIG), or another size of
/// memory (A100-SXM4-40GB): profiles are those of whole SXM modules.
[[nodiscard]] std::optional<std::string> profile_named_by(const std::string& device);

/// Whether the profile is called after a machine of hwprofiles that the device's name does not name: what an H200 took
/// is none of the times of "my-h800".
[[nodiscard]] bool is_another_machine(const std::string& profile, const std::string& device);

}  // namespace moeline
