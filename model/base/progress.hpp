// How far long work is.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>

namespace moeline {

/// What is being done, how much of it is done, and how much there is. Called by one thread at a time.
using Progress = std::function<void(const char* what, std::size_t done, std::size_t all)>;

/// Counts what several threads have done. Without a progress it does nothing.
class ProgressCount {
 public:
  ProgressCount(const Progress& progress, const char* what, std::size_t all)
      : progress_(progress), what_(what), all_(all) {}

  /// One more is done.
  void operator()() {
    if (!progress_) return;
    const std::scoped_lock lock(reporting_);
    progress_(what_, ++done_, all_);
  }

 private:
  const Progress& progress_;
  const char* what_;
  std::size_t all_;
  std::mutex reporting_;
  std::size_t done_ = 0;
};

}  // namespace moeline
