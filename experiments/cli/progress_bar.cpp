#include "experiments/cli/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace moeline {
namespace {

constexpr std::chrono::milliseconds kBetween(100);

bool is_terminal(std::FILE* file) { return isatty(fileno(file)) != 0; }

}  // namespace

ProgressBar::ProgressBar(const Console& console, bool wanted)
    : messages_(console.messages), shown_(wanted && !console.quiet && is_terminal(console.messages)) {}

ProgressBar::~ProgressBar() {
  if (written_) fmt::print(messages_, "\r\033[K");
}

void ProgressBar::operator()(const std::string& what, std::size_t done, std::size_t all) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (what != what_ || done < done_) {  // the same once more, as where several schedules are tried
    what_ = what;
    begin_ = now;
  }
  done_ = done;
  if (now - last_ < kBetween) return;
  last_ = now;
  written_ = true;
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const std::string left =
      done == 0 ? ""
                : fmt::format(", {:.0f} s left", elapsed / static_cast<double>(done) * static_cast<double>(all - done));
  fmt::print(messages_, "\r\033[K{} of {} {}, {:.0f} %{}", done, all, what,
             100.0 * static_cast<double>(done) / static_cast<double>(all), left);
  (void)std::fflush(messages_);
}

}  // namespace moeline
