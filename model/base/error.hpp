// Two kinds of failure: what the user gave us is wrong (SpecError, exit code 3), or we broke our own promise (CHECK).
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace moeline {

/// Bad input. The message is complete: file, line and key where they are known.
class SpecError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  SpecError(std::string_view file, int line, std::string_view message);
};

/// A name that nothing bears; whoever knows where it was written adds the place.
class UnknownName : public SpecError {
 public:
  using SpecError::SpecError;
};

/// The candidate with the smallest edit distance to `name`, of equals the one that begins most like it, or "" when none
/// is near enough to be a slip of the pen.
[[nodiscard]] std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// "unknown KIND 'name'; did you mean 'x'?" or, without a near name, the list of what there is. `prefix` stands before
/// every name and has no part in the comparison.
[[nodiscard]] std::string unknown_name(std::string_view kind, std::string_view name,
                                       std::span<const std::string> candidates, std::string_view prefix = "");

/// The shortest text that reads back as the same double ("0.1", "4096").
[[nodiscard]] std::string shortest(double value);

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& values);

}  // namespace moeline

/// A broken promise of our own: prints the condition and the values it was made of.
#define MOELINE_CHECK(condition, values) \
  ((condition) ? void() : ::moeline::check_failed(#condition, __FILE__, __LINE__, (values)))
