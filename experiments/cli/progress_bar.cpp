#include "experiments/cli/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace moeline {

ProgressBar::ProgressBar(bool shown) : shown_(shown && isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void ProgressBar::operator()(const std::string& what, std::size_t done, std::size_t all) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (what != what_) {
    what_ = what;
    begin_ = now;
  } else if (now - last_ < std::chrono::milliseconds(100) && done < all) {
    return;
  }
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const double left = elapsed / static_cast<double>(done) * static_cast<double>(all - done);
  fmt::print(stderr, "\r\033[K{} of {} {}, {:.0f} %, {:.0f} s left", done, all, what,
             100.0 * static_cast<double>(done) / static_cast<double>(all), left);
}

}  // namespace moeline
