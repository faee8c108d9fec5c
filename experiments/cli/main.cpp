#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "base/error.hpp"
#include "experiments/cli/commands.hpp"

int main(int argc, char** argv) {
  using namespace moeline;
  int exit_code = kDone;
  CLI::App app("moeline predicts the timeline of Mixture-of-Experts work on a GPU cluster.", "moeline");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done; 1 infeasible, or a threshold or --strict failed; 2 wrong usage; 3 bad input.\n"
      "Results go to stdout, messages to stderr. Equal input gives equal bytes (simulate_ms aside).");
  add_simulate(app, exit_code);
  add_compare(app, exit_code);
  add_calibrate(app, exit_code);
  add_list(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  } catch (const SpecError& error) {
    fmt::print(stderr, "moeline: {}\n", error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "moeline: {}\n", error.what());
    return 70;  // a defect of ours, not of the input
  }
  return exit_code;
}
