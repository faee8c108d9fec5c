#include "experiments/cli/usage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/names.hpp"

namespace moeline {
namespace {

bool is_option(const std::string& argument) { return argument.size() > 1 && argument.starts_with('-'); }

// What the program or a command did not take, in the order in which it was typed.
std::vector<std::string> left_of(const CLI::App& app) {
  std::vector<std::string> arguments = app.remaining();
  std::erase(arguments, "--");
  return arguments;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* /*any*/) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

// The long ones: every option has one, and any letter is near to any other.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> commands_with(const CLI::App& app, const std::string& option) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_option_no_throw(option) != nullptr) names.push_back(command->get_name());
  }
  return names;
}

std::string name_typed(const std::string& argument) { return argument.substr(0, argument.find('=')); }

std::string unknown_option(const CLI::App& app, const CLI::App& command, const std::string& argument) {
  const std::string typed = name_typed(argument);
  const std::vector<std::string> names = option_names(command), elsewhere = commands_with(app, typed);
  std::string message = unknown_name("option of " + command.get_name(), typed, names);
  if (elsewhere.empty()) return message;
  if (nearest(typed, names).empty()) message = fmt::format("unknown option of {} '{}'", command.get_name(), typed);
  return message + fmt::format("; there is one of {}", fmt::join(elsewhere, ", "));
}

std::string unexpected(const CLI::App& command, const std::string& argument) {
  std::vector<std::string> taken;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) taken.push_back(option->get_name(true));
  }
  return fmt::format("unexpected argument '{}': {} takes nothing besides {}", argument, command.get_name(),
                     fmt::join(taken, " and "));
}

// The command that was typed; where none was, the program.
const CLI::App& command_of(const CLI::App& app) {
  return app.get_subcommands().empty() ? app : *app.get_subcommands().front();
}

// Options that stand before the command are the program's.
std::string unknown_before_command(const CLI::App& app) {
  const std::vector<std::string> arguments = left_of(app);
  const auto option = std::find_if(arguments.begin(), arguments.end(), is_option);
  if (option == arguments.end()) return "";
  const CLI::App& command = command_of(app);
  if (command.get_option_no_throw(name_typed(*option)) == nullptr) return unknown_option(app, command, *option);
  return fmt::format("option '{}' belongs behind its command, {}", *option, command.get_name());
}

std::string unknown_behind(const CLI::App& app, const CLI::App& command) {
  const std::vector<std::string> arguments = left_of(command);
  if (arguments.empty()) return "";
  const auto option = std::find_if(arguments.begin(), arguments.end(), is_option);
  return option != arguments.end() ? unknown_option(app, command, *option) : unexpected(command, arguments.front());
}

// The first that nothing takes.
std::string unknown_argument(const CLI::App& app) {
  if (std::string unknown = unknown_command(app); !unknown.empty()) return unknown;
  if (std::string unknown = unknown_before_command(app); !unknown.empty()) return unknown;
  return unknown_behind(app, command_of(app));
}

// "--trace: 1 required TEXT missing", "--format: At Most 1 required but received 2"
std::string mismatch(const std::string& message) {
  const std::string option = message.substr(0, message.find(':'));
  return option + (message.ends_with("missing") ? ": a value is missing" : ": is given more than once");
}

}  // namespace

std::string unknown_command(const CLI::App& app) {
  const std::vector<std::string> arguments = left_of(app);
  if (arguments.empty() || is_option(arguments.front())) return "";
  return unknown_name("command", arguments.front(), command_names(app));
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  if (std::string unknown = unknown_argument(app); !unknown.empty()) return unknown;
  if (error.get_name() == "ArgumentMismatch") return mismatch(error.what());
  if (app.get_subcommands().empty()) {
    return fmt::format("a command is required, one of {}", fmt::join(command_names(app), ", "));
  }
  return error.what();
}

}  // namespace moeline
