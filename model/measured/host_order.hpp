// The order in which the host made its calls, and what it waited for between them.
#pragma once

#include <vector>

#include "measured/dependencies.hpp"
#include "measured/launches.hpp"

namespace moeline {

/// Each process of the host is taken for one program, whatever the number of its threads: backward passes are launched
/// by a thread of their own while the main one waits. A launch follows the one before it; behind a synchronising call
/// that has returned it also follows what had been launched before that call and ended last. Without such a call, a
/// long pause that ends where the kernel launched before it ends was spent waiting for it, if it did so in most layers.
[[nodiscard]] std::vector<Dependency> host_order(const Launches& launches);

}  // namespace moeline
