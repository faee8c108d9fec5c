#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/packaging/describe/commands.hpp"

namespace moeline {
namespace {

// What Python's functions decide themselves.
bool is_pythons(const DescribedOption& option) { return option.name == "format" || option.name == "no-progress"; }

// "num-sms" is num_sms; "from", which the language needs itself, from_.
std::string python_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "from" ? "from_" : name;
}

std::string python_type(const DescribedOption& option) {
  if (option.name == "set") return "Assignments";
  if (!option.choices.empty()) {
    const std::string one = fmt::format("Literal[\"{}\"]", fmt::join(option.choices, "\", \""));
    return option.is_list ? fmt::format("{0} | Sequence[{0}]", one) : one;
  }
  const char* one = option.type == ValueType::flag      ? "bool"
                    : option.type == ValueType::integer ? "int"
                    : option.type == ValueType::real    ? "float"
                                                        : "Text";
  return option.is_list ? fmt::format("{0} | Sequence[{0}]", one) : one;
}

std::string parameter(const DescribedOption& option) {
  const std::string name = python_name(option.name);
  if (option.type == ValueType::flag) return fmt::format("    {}: bool = False,\n", name);
  if (option.is_required) return fmt::format("    {}: {},\n", name, python_type(option));
  return fmt::format("    {}: {} | None = None,\n", name, python_type(option));
}

// What may be given as a dict instead of a file.
bool is_file_of_ours(const DescribedCommand& command, const DescribedOption& argument) {
  constexpr const char* kFiles[] = {"scenario", "plan", "study", "input", "a", "b"};
  const bool is_model = command.name == "model" && argument.name == "model";
  return is_model || std::find(std::begin(kFiles), std::end(kFiles), argument.name) != std::end(kFiles);
}

std::string argument_of(const DescribedCommand& command, const DescribedOption& argument) {
  const std::string type = is_file_of_ours(command, argument) ? "Source" : python_type(argument);
  const std::string name = python_name(argument.name);
  return argument.is_required ? fmt::format("    {}: {},\n", name, type)
                              : fmt::format("    {}: {} | None = None,\n", name, type);
}

std::string described_lines(const std::vector<DescribedOption>& options) {
  std::string lines;
  for (const DescribedOption& option : options) {
    if (is_pythons(option) || option.about.empty()) continue;
    lines += fmt::format("    {}: {}\n", python_name(option.name), option.about);
  }
  return lines;
}

std::string docstring(const DescribedCommand& command) {
  std::string text =
      fmt::format("{}.\n\n{}{}", command.about, described_lines(command.arguments), described_lines(command.options));
  if (!command.text.empty()) text += "\n" + command.text + "\n";
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at + 2)) text.insert(at, "\\");
  return text;
}

bool has_json(const DescribedCommand& command) {
  return std::any_of(command.options.begin(), command.options.end(), [](const DescribedOption& option) {
    return option.name == "format" &&
           std::find(option.choices.begin(), option.choices.end(), "json") != option.choices.end();
  });
}

std::string function(const DescribedCommand& command) {
  std::string parameters, arguments, options;
  for (const DescribedOption& argument : command.arguments) {
    parameters += argument_of(command, argument);
    arguments += fmt::format("(\"{}\", {}), ", argument.name, python_name(argument.name));
  }
  parameters += "    *,\n";
  for (const DescribedOption& option : command.options) {
    if (is_pythons(option)) continue;
    parameters += parameter(option);
    options += fmt::format("        \"{}\": {},\n", option.dashed(), python_name(option.name));
  }
  return fmt::format(
      "\n\ndef {}(\n{}) -> Answer:\n    \"\"\"{}    \"\"\"\n    return call(\"{}\", [{}], {{\n{}    }}, {})\n",
      python_name(command.name), parameters, docstring(command), command.name, arguments, options,
      has_json(command) ? "True" : "False");
}

}  // namespace

std::string python_module(const std::vector<DescribedCommand>& commands) {
  std::string names, functions;
  for (const DescribedCommand& command : commands) {
    names += fmt::format("    \"{}\",\n", python_name(command.name));
    functions += function(command);
  }
  return fmt::format(
      "\"\"\"The commands of moeline as functions. Made from the program's help; do not edit.\"\"\"\n\n"
      "from __future__ import annotations\n\nfrom typing import Literal, Sequence\n\n"
      "from .call import Answer, Assignments, Source, Text, call\n\n__all__ = [\n{}]\n{}",
      names, functions);
}

}  // namespace moeline
