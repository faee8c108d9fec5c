// One loop on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace moeline {

[[nodiscard]] inline std::size_t cores() { return std::max(1U, std::thread::hardware_concurrency()); }

/// Calls body(i) for every i below `count`, begun in this order. After one has thrown no other begins; of several the
/// one of the least i is thrown once all have ended.
template <class Body>
void parallel_for(std::size_t count, std::size_t workers, const Body& body) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !stop; i = next++) {
      try {
        body(i);
      } catch (...) {
        failures[i] = std::current_exception();
        stop = true;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(workers, count); ++i) threads.emplace_back(work);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace moeline
