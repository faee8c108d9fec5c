// What a scenario sets, and nothing in it depends on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"

namespace moeline {

/// The scenario of a run with one more setting, as after --set: "comm.num_sms=24", "hardware.nic_GBps=100". Throws
/// SpecError where that is refused.
using SetupWith = std::function<Setup(const std::string& assignment)>;

/// Keys of those that move nothing: with other values no metric of the run changes. Asked are the facts of the machine
/// that the run's scenario sets; and of the assignments (--set) the numbers, where the run is no long one: each takes
/// another run.
[[nodiscard]] std::vector<std::string> silent_settings(const Run& run, const std::vector<std::string>& assignments,
                                                       const SetupWith& with);

/// Other values for a number as it is written: a third more or less, and of whole numbers twice or half as many. Of a
/// word there are none.
[[nodiscard]] std::vector<std::string> other_values(const std::string& number);

/// Every metric of the two runs is the same, but for how it is known.
[[nodiscard]] bool have_same_metrics(const Run& one, const Run& other);

}  // namespace moeline
