// The parts of an answer to a plan, which the terminal and the page both show.
#pragma once

#include <string>
#include <vector>

#include "base/text_table.hpp"
#include "experiments/cli/output/plan_output.hpp"
#include "experiments/plan/flags.hpp"

namespace moeline {

/// What is served, and within which limits.
[[nodiscard]] std::vector<std::string> question_lines(const Plan& plan);
/// How many GPUs, how fast, at what cost.
[[nodiscard]] std::vector<std::string> answer_lines(const Plan& plan, const Deployment& deployment);
[[nodiscard]] TextTable sides_table(const Deployment& deployment);
[[nodiscard]] TextTable memory_table(const Plan& plan, const Deployment& deployment);
/// All but the first of `deployments`, `most` at most.
[[nodiscard]] TextTable others_table(const std::vector<Deployment>& deployments, std::size_t most);
[[nodiscard]] TextTable sensitivity_table(const PlanResult& result);
[[nodiscard]] std::vector<std::string> impossible_lines(const Answer& answer);
/// How far the limits are from the nearest that can be met; where none can, that.
[[nodiscard]] std::string nearest_line(const Plan& plan, const Answer& answer);

/// The commands that launch it, by program.
struct LaunchCommands {
  std::vector<LaunchCommand> sglang, vllm, trtllm;
};
[[nodiscard]] LaunchCommands launch_commands(const Plan& plan, const Deployment& deployment);

/// The commands of one program, each below what it is for, as comments of a shell.
struct ProgramCommands {
  std::string program, text;
};
[[nodiscard]] std::vector<ProgramCommands> launch_texts(const Plan& plan, const Deployment& deployment);

}  // namespace moeline
