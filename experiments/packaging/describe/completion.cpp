#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/packaging/describe/commands.hpp"

namespace moeline {
namespace {

std::vector<std::string> names_of(const std::vector<DescribedCommand>& commands) {
  std::vector<std::string> names;
  for (const DescribedCommand& command : commands) names.push_back(command.name);
  return names;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Inside single quotes of a shell; of several lines the first.
std::string quoted(const std::string& text) { return replaced(text.substr(0, text.find('\n')), "'", "'\\''"); }

// Words that the program itself knows, of the argument of a command at this position.
std::string words_of(const DescribedCommand& command, std::size_t position) {
  const std::string& name = command.arguments[position].name;
  if (name == "hardware") return "$(moeline list hardware 2>/dev/null)";
  if (command.name == "model") return "$(moeline list models 2>/dev/null)";
  return fmt::format("{}", fmt::join(command.arguments[position].choices, " "));
}

// ---- bash

std::string bash_values(const DescribedCommand& command) {
  std::string cases;
  for (const DescribedOption& option : command.options) {
    if (option.choices.empty()) continue;
    cases += fmt::format("        {}) words=\"{}\" ;;\n", option.dashed(), fmt::join(option.choices, " "));
  }
  return cases.empty() ? "" : "      case $before in\n" + cases + "      esac\n";
}

std::string bash_case(const DescribedCommand& command) {
  std::string options;
  for (const DescribedOption& option : command.options) options += (options.empty() ? "" : " ") + option.dashed();
  std::string first = command.arguments.empty() ? "" : words_of(command, 0);
  return fmt::format("    {})\n      options=\"{}\"\n      words=\"{}\"\n{}      ;;\n", command.name, options, first,
                     bash_values(command));
}

// ---- zsh

std::string zsh_text(const std::string& text) {
  return replaced(replaced(replaced(quoted(text), "[", "("), "]", ")"), ":", "\\:");
}

std::string zsh_action(const DescribedOption& option) {
  return option.choices.empty() ? "_files" : fmt::format("({})", fmt::join(option.choices, " "));
}

std::string zsh_option(const DescribedOption& option) {
  const std::string value = option.type == ValueType::flag ? "" : fmt::format(":value:{}", zsh_action(option));
  return fmt::format("        '{}{}[{}]{}' \\\n", option.is_list ? "*" : "", option.dashed(), zsh_text(option.about),
                     value);
}

std::string zsh_case(const DescribedCommand& command) {
  std::string text = fmt::format("      {})\n        _arguments \\\n", command.name);
  for (const DescribedOption& option : command.options) text += zsh_option(option);
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const std::string words = words_of(command, i);
    text += fmt::format("        '{}:{}:{}' \\\n", command.arguments[i].is_list ? "*" : "", command.arguments[i].name,
                        words.empty() ? "_files" : fmt::format("($(echo {}))", replaced(words, "'", "")));
  }
  return text + "        && return\n        ;;\n";
}

// ---- fish

std::string fish_option(const DescribedCommand& command, const DescribedOption& option) {
  const std::string how = option.type == ValueType::flag ? ""
                          : option.choices.empty()       ? " -r"
                                                         : fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
  return fmt::format("complete -c moeline -n '__fish_seen_subcommand_from {}' -{} {} -d '{}'{}\n", command.name,
                     option.name.size() == 1 ? "s" : "l", option.name, quoted(option.about), how);
}

std::string fish_words(const DescribedCommand& command) {
  const std::string words = command.arguments.empty() ? "" : replaced(words_of(command, 0), "$(", "(");
  return words.empty()
             ? ""
             : fmt::format("complete -c moeline -n '__fish_seen_subcommand_from {}' -a '{}'\n", command.name, words);
}

}  // namespace

std::string bash_completion(const std::vector<DescribedCommand>& commands) {
  std::string cases;
  for (const DescribedCommand& command : commands) cases += bash_case(command);
  return fmt::format(R"(# Completion of moeline for bash, made from its help.
_moeline() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} options="" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options --help" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  fi
}}
complete -o default -F _moeline moeline
)",
                     fmt::join(names_of(commands), " "), cases);
}

std::string zsh_completion(const std::vector<DescribedCommand>& commands) {
  std::string names, cases;
  for (const DescribedCommand& command : commands) {
    names += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.about));
    cases += zsh_case(command);
  }
  return fmt::format(R"(#compdef moeline
# Completion of moeline for zsh, made from its help.
_moeline() {{
  local state line
  local -a commands
  commands=(
{}  )
  _arguments -C '1:command:->command' '*::argument:->argument' && return
  case $state in
  command) _describe command commands ;;
  argument)
    case $line[1] in
{}    esac
    ;;
  esac
}}
_moeline "$@"
)",
                     names, cases);
}

std::string fish_completion(const std::vector<DescribedCommand>& commands) {
  std::string text = "# Completion of moeline for fish, made from its help.\n";
  for (const DescribedCommand& command : commands) {
    text += fmt::format("complete -c moeline -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                        quoted(command.about));
  }
  for (const DescribedCommand& command : commands) {
    text += fish_words(command);
    for (const DescribedOption& option : command.options) text += fish_option(command, option);
  }
  return text;
}

}  // namespace moeline
