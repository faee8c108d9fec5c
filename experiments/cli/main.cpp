#include <fmt/format.h>
#include <moeline_commit.hpp>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/usage.hpp"

namespace {

// A message is one line, whatever the input had in it.
int fail(int exit_code, std::string_view message) {
  constexpr std::size_t kLongest = 2000;
  fmt::print(stderr, "moeline: {}\n", moeline::one_line(message, kLongest));
  return exit_code;
}

// --help and --version are no errors, unless of a command that there is not.
int end_of_parsing(const CLI::App& app, const CLI::ParseError& error) {
  const bool asks = error.get_exit_code() == 0 && moeline::unknown_command(app).empty();
  if (!asks) return fail(moeline::kUsage, moeline::usage_message(app, error));
  (void)app.exit(error);
  return moeline::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace moeline;
  constexpr int kDefect = 70;  // ours, not of the input
  int exit_code = kDone;
  CLI::App app("moeline predicts the timeline of Mixture-of-Experts work on a GPU cluster.", "moeline");
  app.require_subcommand(1);
  app.set_version_flag("--version", "moeline " MOELINE_VERSION MOELINE_COMMIT);
  app.footer(
      "Exit codes: 0 done; 1 --strict or a threshold failed (a model that does not fit is a warning without --strict); "
      "2 wrong usage; 3 bad input.\n"
      "Results go to stdout, messages to stderr. Equal input gives equal bytes (simulate_ms aside).");
  add_simulate(app, exit_code);
  add_explain(app, exit_code);
  add_search(app, exit_code);
  add_compare(app, exit_code);
  add_calibrate(app, exit_code);
  add_list(app, exit_code);
  add_price(app, exit_code);
  add_model(app, exit_code);
  add_analyze(app, exit_code);
  add_replay(app, exit_code);
  add_validate(app, exit_code);
  add_balance(app, exit_code);
  add_sweep(app, exit_code);
  add_plan(app, exit_code);
  refuse_options_as_values(app);
  try {
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "stdout cannot be written");
  } catch (const CLI::ParseError& error) {
    return end_of_parsing(app, error);
  } catch (const SpecError& error) {
    return fail(kBadInput, error.what());
  } catch (const std::system_error& error) {  // of files and pipes
    return fail(kBadInput, error.what());
  } catch (const std::exception& error) {
    return fail(kDefect, error.what());
  }
  return exit_code;
}
