// The commands of the program: each registers its options and returns what to run. One file per command. X_schema is
// the JSON Schema of what a command prints, as it describes that itself.
#pragma once

#include <CLI/CLI.hpp>

#include "experiments/cli/console.hpp"

namespace moeline {

void add_init(CLI::App& app, Console& console);
void add_simulate(CLI::App& app, Console& console);
void add_explain(CLI::App& app, Console& console);
void add_search(CLI::App& app, Console& console);
void add_compare(CLI::App& app, Console& console);
void add_calibrate(CLI::App& app, Console& console);
void add_list(CLI::App& app, Console& console);
void add_price(CLI::App& app, Console& console);
void add_model(CLI::App& app, Console& console);
void add_analyze(CLI::App& app, Console& console);
void add_replay(CLI::App& app, Console& console);
void add_validate(CLI::App& app, Console& console);
void add_balance(CLI::App& app, Console& console);
void add_sweep(CLI::App& app, Console& console);
void add_plan(CLI::App& app, Console& console);

[[nodiscard]] std::string balance_schema();
[[nodiscard]] std::string list_schema();
[[nodiscard]] std::string model_schema();
[[nodiscard]] std::string price_schema();
[[nodiscard]] std::string replay_schema();

}  // namespace moeline
