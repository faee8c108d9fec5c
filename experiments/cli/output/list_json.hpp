// What `list` has to say, as a program reads it.
#pragma once

#include <string>

#include "hardware/profile.hpp"

namespace moeline {

[[nodiscard]] std::string models_json();
/// The fields as they stand in its file, and its parameters.
[[nodiscard]] std::string model_json(const std::string& name);

[[nodiscard]] std::string machines_json();
/// Facts with their sources; kernel sets with families, what was measured of them, and errors.
[[nodiscard]] std::string machine_json(const HardwareProfile& profile);

[[nodiscard]] std::string schedules_json();
/// With its overlap plan, where it has one.
[[nodiscard]] std::string schedule_json(const std::string& name);

}  // namespace moeline
