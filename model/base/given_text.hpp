// Text that stands for a file: what comes through stdin, or what a program that uses moeline as a library has in memory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace moeline {

/// While it lives, files of this name have this text, for this thread. Names that no file has, as "<scenario>", are
/// best. Of equal names the youngest counts.
class GivenText {
 public:
  GivenText(std::string name, std::string text);
  GivenText(const GivenText&) = delete;
  GivenText& operator=(const GivenText&) = delete;
  ~GivenText();
};

/// The text given for this name; nothing where none is.
[[nodiscard]] std::optional<std::string> given_text(const std::filesystem::path& name);

/// Stdin, whose text is read once however often it is asked for.
[[nodiscard]] inline bool is_stdin(const std::filesystem::path& name) { return name == "-"; }

}  // namespace moeline
