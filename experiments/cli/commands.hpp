// The commands of the program: each registers its options and returns what to run. One file per command.
#pragma once

#include <CLI/CLI.hpp>

namespace moeline {

/// Exit codes of the program (CLI11's own usage errors become 2).
enum ExitCode { kDone = 0, kInfeasible = 1, kUsage = 2, kBadInput = 3 };

void add_simulate(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_search(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_price(CLI::App& app, int& exit_code);
void add_model(CLI::App& app, int& exit_code);
void add_analyze(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);
void add_balance(CLI::App& app, int& exit_code);
void add_sweep(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);

}  // namespace moeline
