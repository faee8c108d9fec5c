// Where a command's results and messages go: the terminal, or the memory of a program that calls moeline as a library.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace moeline {

/// Exit codes of the program.
enum ExitCode { kDone = 0, kInfeasible = 1, kUsage = 2, kBadInput = 3, kDefect = 70 };  // a defect is ours

/// A command line that makes no sense, in one line: kUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Console {
  std::FILE* results = stdout;
  std::FILE* messages = stderr;
  bool quiet = false;  ///< errors alone are told: no notes, no warnings, no progress
  int exit_code = kDone;

  /// Throws std::system_error where it cannot be written; flush() does for what was buffered.
  void print(std::string_view result) const {
    if (std::fwrite(result.data(), 1, result.size(), results) < result.size()) refuse();
  }
  void flush() const {
    if (std::fflush(results) != 0) refuse();
  }
  /// Why the exit code is not 0. Whatever becomes of that is no error: there is nobody left to tell.
  void fail(std::string_view message) const {
    (void)std::fprintf(messages, "moeline: %.*s\n", static_cast<int>(message.size()), message.data());
  }
  /// What is good to know besides the result.
  void note(std::string_view message) const {
    if (!quiet) fail(message);
  }
  void warn(std::string_view message) const { note(fmt::format("warning: {}", message)); }

 private:
  [[noreturn]] static void refuse() {
    throw std::system_error(errno, std::generic_category(), "stdout cannot be written");
  }
};

}  // namespace moeline
