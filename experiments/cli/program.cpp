#include "experiments/cli/program.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/print_schema.hpp"
#include "experiments/cli/usage.hpp"

namespace moeline {
namespace {

void add_quiet(CLI::App& app, Console& console) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    command->add_flag("-q,--quiet", console.quiet, "results and errors alone: no notes, no warnings, no progress");
  }
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

std::shared_ptr<CLI::App> make_program(Console& console, const std::string& version) {
  auto app = std::make_shared<CLI::App>("moeline predicts the timeline of Mixture-of-Experts work on a GPU cluster.",
                                        "moeline");
  app->require_subcommand(1);
  app->set_version_flag("--version", "moeline " + version + "\n");
  add_print_schema(*app);
  app->footer(
      "Exit codes: 0 done; 1 --strict or a threshold failed (a model that does not fit is a warning without --strict); "
      "2 wrong usage; 3 bad input.\n"
      "A file that is called - is stdin. Results go to stdout, messages to stderr. Equal input gives equal bytes "
      "(simulate_ms aside).");
  add_init(*app, console);
  add_simulate(*app, console);
  add_explain(*app, console);
  add_search(*app, console);
  add_compare(*app, console);
  add_calibrate(*app, console);
  add_list(*app, console);
  add_price(*app, console);
  add_model(*app, console);
  add_analyze(*app, console);
  add_replay(*app, console);
  add_validate(*app, console);
  add_balance(*app, console);
  add_sweep(*app, console);
  add_plan(*app, console);
  add_quiet(*app, console);
  refuse_options_as_values(*app);
  return app;
}

int run_command(const std::vector<std::string>& arguments, Console& console, const std::string& version) {
  const std::shared_ptr<CLI::App> app = make_program(console, version);
  try {
    app->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from behind
  } catch (const CLI::ParseError& error) {
    console.exit_code = end_of_parsing(*app, error, console);
  }
  console.flush();
  return console.exit_code;
}

}  // namespace moeline
