// How far a long command is.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace moeline {

/// One line on stderr that is written over, on a terminal alone.
class ProgressBar {
 public:
  explicit ProgressBar(bool shown);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// "120 of 480 points, 25 %, 3 s left"; the time is that of this kind of work.
  void operator()(const std::string& what, std::size_t done, std::size_t all);

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_;
  std::string what_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_{};
};

}  // namespace moeline
