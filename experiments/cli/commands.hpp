// The commands of the program, as what they take and what they do then. One file per command. X_schema is the JSON
// Schema of what a command prints, as it describes that itself.
#pragma once

#include "experiments/cli/arguments.hpp"

namespace moeline {

[[nodiscard]] Command make_init(Console& console);
[[nodiscard]] Command make_simulate(Console& console);
[[nodiscard]] Command make_explain(Console& console);
[[nodiscard]] Command make_decide(Console& console);
[[nodiscard]] Command make_search(Console& console);
[[nodiscard]] Command make_compare(Console& console);
[[nodiscard]] Command make_calibrate(Console& console);
[[nodiscard]] Command make_list(Console& console);
[[nodiscard]] Command make_price(Console& console);
[[nodiscard]] Command make_model(Console& console);
[[nodiscard]] Command make_analyze(Console& console);
[[nodiscard]] Command make_learn(Console& console);
[[nodiscard]] Command make_replay(Console& console);
/// `program` is what a baseline says wrote it: "moeline 1.0".
[[nodiscard]] Command make_validate(Console& console, const std::string& program);
[[nodiscard]] Command make_balance(Console& console);
[[nodiscard]] Command make_sweep(Console& console);
[[nodiscard]] Command make_plan(Console& console);
[[nodiscard]] Command make_hardware(Console& console);

[[nodiscard]] std::string balance_schema();
[[nodiscard]] std::string hardware_schema();
[[nodiscard]] std::string list_schema();
[[nodiscard]] std::string model_schema();
[[nodiscard]] std::string price_schema();
[[nodiscard]] std::string replay_schema();

}  // namespace moeline
