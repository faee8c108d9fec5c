// What the program's commands take, as its help knows it: plain data for man pages, completion and the Python module.
#pragma once

#include <string>
#include <vector>

#include "experiments/cli/arguments.hpp"

namespace moeline {

enum class ValueType : std::uint8_t { flag, integer, real, text };

struct DescribedOption {
  std::string name;    ///< "num-sms"; of an argument "scenario"
  std::string letter;  ///< "o"; empty: none
  std::string about;
  ValueType type = ValueType::text;
  bool is_list = false;  ///< may be given more than once
  bool is_required = false;
  std::vector<std::string> choices;  ///< empty: anything

  /// As it is typed: "--num-sms", "-o". REQUIRES: no argument.
  [[nodiscard]] std::string dashed() const { return (name.size() == 1 ? "-" : "--") + name; }
};

struct DescribedCommand {
  std::string name;   ///< of the program itself "moeline"
  std::string about;  ///< one line
  std::string text;   ///< what stands below the options
  std::vector<DescribedOption> arguments, options;
};

/// In the order of the help, without --help.
[[nodiscard]] std::vector<DescribedCommand> described(const std::vector<Command>& commands);

/// One page of section 1, in roff's man macros.
[[nodiscard]] std::string man_page(const DescribedCommand& command, const std::string& version);
/// That of the program, which lists its commands.
[[nodiscard]] std::string man_page_of_program(const std::vector<DescribedCommand>& commands,
                                              const std::string& version);

[[nodiscard]] std::string bash_completion(const std::vector<DescribedCommand>& commands);
[[nodiscard]] std::string zsh_completion(const std::vector<DescribedCommand>& commands);
[[nodiscard]] std::string fish_completion(const std::vector<DescribedCommand>& commands);

/// A module with one function for each command.
[[nodiscard]] std::string python_module(const std::vector<DescribedCommand>& commands);

}  // namespace moeline
