// How far long work is.
#pragma once

#include <cstddef>
#include <functional>

namespace moeline {

/// What is being done, how much of it is done, and how much there is. Called by one thread at a time.
using Progress = std::function<void(const char* what, std::size_t done, std::size_t all)>;

}  // namespace moeline
