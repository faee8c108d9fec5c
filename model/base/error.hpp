// Two kinds of failure: what the user gave us is wrong (SpecError, exit code 3), or we broke our own promise (CHECK).
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/names.hpp"

namespace moeline {

/// Bad input. The message is complete: file, line and key where they are known.
class SpecError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  SpecError(std::string_view file, int line, std::string_view message);
  /// Whether the message begins with a file. One that does not knows of none; whoever does adds it.
  [[nodiscard]] bool names_file() const { return place_ > 0; }
  /// The message without file and line.
  [[nodiscard]] std::string reason() const { return what() + place_; }
  /// "" where none is known.
  [[nodiscard]] const std::string& file() const { return file_; }
  /// From 1; 0: the whole file, or not known.
  [[nodiscard]] int line() const { return line_; }
  /// The key that is refused, a dotted path; "": none, or not known.
  [[nodiscard]] const std::string& key() const { return key_; }
  /// The same error, of this key.
  [[nodiscard]] SpecError of(std::string key) &&;

 private:
  std::string file_, key_;
  int line_ = 0;
  std::size_t place_ = 0;  // characters of the message that say where
};

/// Runs `work`; where it is refused without a file, it is this one's content that is to blame.
template <class Work>
auto on_behalf_of(std::string_view file, Work work) {
  try {
    return work();
  } catch (const SpecError& error) {
    if (error.names_file()) throw;
    throw SpecError(file, 0, error.what()).of(error.key());
  }
}

/// A name that nothing bears; whoever knows where it was written adds the place.
class UnknownName : public SpecError {
 public:
  using SpecError::SpecError;
};

/// The candidate that `name` means (names.hpp). Throws UnknownName with the nearest one.
[[nodiscard]] std::string expect_name(std::string_view kind, std::string_view name,
                                      std::span<const std::string> candidates);

/// The shortest text that reads back as the same double ("0.1", "4096").
[[nodiscard]] std::string shortest(double value);

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& values);

}  // namespace moeline

/// A broken promise of our own: prints the condition and the values it was made of.
#define MOELINE_CHECK(condition, values) \
  ((condition) ? void() : ::moeline::check_failed(#condition, __FILE__, __LINE__, (values)))
