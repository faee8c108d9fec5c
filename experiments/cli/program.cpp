#include "experiments/cli/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <type_traits>

#include "base/names.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/print_schema.hpp"
#include "experiments/cli/usage.hpp"

namespace moeline {

// From what commands say that they take to what CLI11 parses.

namespace {

CLI::Validator not_empty() {
  return {[](const std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "", ""};
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  const auto refusal = [names](std::string& text) -> std::string {
    const std::optional<std::string> known = known_name(text, names);
    if (!known) return unknown_name("value", text, names);
    text = *known;
    return "";
  };
  return {refusal, fmt::format("{{{}}}", fmt::join(names, ",")), ""};
}

// CLI11 takes whatever follows an option that needs a value: of `--trace --strict` the value is missing, and no file
// called --strict is written.
CLI::Validator no_option_of(const CLI::App& command) {
  const auto refusal = [&command](const std::string& text) -> std::string {
    const bool is_long = text.starts_with("--") && text.size() > 2 && std::isalpha(static_cast<unsigned char>(text[2]));
    const bool is_option =
        is_long || (text.size() == 2 && text[0] == '-' && command.get_option_no_throw(text) != nullptr);
    return is_option ? fmt::format("a value is missing before '{}'", text) : "";
  };
  return {refusal, "", ""};
}

void add_check(CLI::Option& option, const Check& check) {
  if (std::holds_alternative<NotEmpty>(check)) option.check(not_empty());
  if (const auto* names = std::get_if<OneOf>(&check)) option.transform(one_of(*names));
  if (const auto* range = std::get_if<Between<int>>(&check)) option.check(CLI::Range(range->least, range->most));
  if (const auto* range = std::get_if<Between<double>>(&check)) option.check(CLI::Range(range->least, range->most));
}

CLI::Option* add_target(CLI::App& command, const Option& option) {
  const auto add = [&](auto* target) -> CLI::Option* {
    constexpr bool kIsFlag = std::is_same_v<decltype(target), bool*>;
    if constexpr (kIsFlag)
      return command.add_flag(option.names, *target, option.help);
    else
      return command.add_option(option.names, *target, option.help);
  };
  return std::visit(add, option.target);
}

void add_option(CLI::App& command, const Option& option) {
  CLI::Option* added = add_target(command, option);
  if (option.is_required) added->required();
  if (option.list == ListOf::single_words) added->allow_extra_args(false);
  if (option.list == ListOf::comma_separated) added->delimiter(',');
  if (!option.type_name.empty()) added->type_name(option.type_name);
  if (!option.needs.empty()) added->needs(command.get_option(option.needs));
  if (!option.excludes.empty()) added->excludes(command.get_option(option.excludes));
  add_check(*added, option.check);
  if (added->nonpositional() && added->get_items_expected_min() > 0) added->transform(no_option_of(command));
}

void run(const CLI::App& app, const Command& command) {
  for (const CLI::Option* option : app.get_options()) {
    if (command.given != nullptr && option->count() > 0) command.given->insert(option->get_name());
  }
  command.run();
}

void add(CLI::App& app, const Command& command) {
  CLI::App* added = app.add_subcommand(command.name, command.about);
  for (const Option& option : command.options) add_option(*added, option);
  added->footer(command.footer);
  added->callback([added, command] { run(*added, command); });
}

void add_print_schema(CLI::App& app) {
  const auto print = [](const std::vector<std::string>& name) -> bool {
    throw CLI::Success(printed_schema(name.empty() ? "" : name.front()), CLI::ExitCodes::Success);
  };
  app.add_option("--print-schema", print, "the JSON Schema of one input or output, or of all")
      ->type_name("[NAME]")
      ->expected(0, 1);
}

void fill(CLI::App& app, const std::vector<Command>& commands, const std::string& version) {
  app.require_subcommand(1);
  app.set_version_flag("--version", "moeline " + version + "\n");
  add_print_schema(app);
  app.footer(kProgramFooter);
  for (const Command& command : commands) add(app, command);
}

// --help, --version and --print-schema are no errors, unless of a command that there is not.
int end_of_parsing(const CLI::App& app, const CLI::ParseError& error, Console& console) {
  const bool asks = error.get_exit_code() == 0 && unknown_command(app).empty();
  if (!asks) throw UsageError(usage_message(app, error));
  const bool asks_help = error.get_name() == "CallForHelp" || error.get_name() == "CallForAllHelp";
  console.print(asks_help ? app.help() : std::string(error.what()));
  return kDone;
}

}  // namespace

std::vector<Command> make_commands(Console& console, const std::string& version) {
  std::vector<Command> commands = {make_init(console),      make_simulate(console),
                                   make_explain(console),   make_decide(console),
                                   make_search(console),    make_compare(console),
                                   make_calibrate(console), make_list(console),
                                   make_price(console),     make_model(console),
                                   make_analyze(console),   make_learn(console),
                                   make_replay(console),    make_validate(console, "moeline " + version),
                                   make_balance(console),   make_sweep(console),
                                   make_plan(console),      make_hardware(console)};
  for (Command& command : commands) {
    command.options.push_back(
        {"-q,--quiet", &console.quiet, "results and errors alone: no notes, no warnings, no progress"});
    if (command.footer.empty()) command.footer = kProgramFooter;
  }
  return commands;
}

int run_command(const std::vector<std::string>& arguments, Console& console, const std::string& version) {
  CLI::App app(kProgramAbout, "moeline");
  fill(app, make_commands(console, version), version);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from behind
  } catch (const CLI::ParseError& error) {
    console.exit_code = end_of_parsing(app, error, console);
  }
  console.flush();
  return console.exit_code;
}

}  // namespace moeline
