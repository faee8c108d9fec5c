// What of the machine would have to be faster: its links, its memory, its network's latency, more SMs.
#pragma once

#include "experiments/explain/sensitivity.hpp"
#include "experiments/run/run.hpp"

namespace moeline {

/// "link:nic", "link:nvlink", "link:hbm", "latency" and "sms", by pricing every kernel of the run again on a machine
/// that has a little more of it: the elasticity is that of `--set hardware.nic_GBps=`, with what ranks wait for each
/// other and the clock held. Those that no kernel's price depends on are left out, and all where no kernel is known.
/// REQUIRES: `run` outlives the items.
[[nodiscard]] std::vector<Item> hardware_items(const Run& run, const Gradient& gradient);

}  // namespace moeline
