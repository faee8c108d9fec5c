// How far a long command is.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "base/progress.hpp"
#include "experiments/cli/console.hpp"

namespace moeline {

/// One line beside the messages that is written over: on a terminal alone, unless --quiet, and of work that takes long.
class ProgressBar {
 public:
  explicit ProgressBar(const Console& console, bool wanted = true);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// "120 of 480 points, 25 %, 3 s left"; the time is that of this kind of work.
  void operator()(const std::string& what, std::size_t done, std::size_t all);

 private:
  using Clock = std::chrono::steady_clock;
  std::FILE* messages_;
  bool shown_;
  bool written_ = false;
  std::string what_;
  std::size_t done_ = 0;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;  // nothing is shown of work that is done sooner
};

/// Runs work that tells how far it is; the bar is gone when it is done.
template <class Work>
auto with_progress(const Console& console, const Work& work, bool wanted = true) {
  ProgressBar bar(console, wanted);
  return work(Progress(std::ref(bar)));
}

}  // namespace moeline
