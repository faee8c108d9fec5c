// An answer to a plan as a table, JSON, CSV and a page of plots.
#pragma once

#include <string>
#include <vector>

#include "base/text_table.hpp"
#include "experiments/page/page.hpp"
#include "experiments/plan/course.hpp"
#include "experiments/plan/flags.hpp"
#include "experiments/plan/promises.hpp"
#include "experiments/plan/sensitivity.hpp"

namespace moeline {

struct PlanResult {
  const Plan& plan;
  const Answer& answer;
  const std::vector<Sensitivity>& sensitivities;  ///< empty: not asked for
  const std::optional<Promises>& promises;        ///< the last of them is the best deployment; none: not asked for
  const std::optional<Course>& course;            ///< of the best deployment; none: the load has none
};

[[nodiscard]] std::string plan_table(const PlanResult& result);
[[nodiscard]] std::string plan_json(const PlanResult& result);
/// Of answers for serving and for training.
[[nodiscard]] std::string plan_schema();
/// A row for every deployment.
[[nodiscard]] std::string plan_csv(const PlanResult& result);
/// What the table has, and every batch size of every way to decode: tokens per second and user against those per second
/// and GPU, with a front for each machine and the limit on TPOT.
[[nodiscard]] Page plan_page(const PlanResult& result);

// The parts of an answer, which the terminal and the page both show.

/// What is served, and within which limits.
[[nodiscard]] std::vector<std::string> question_lines(const Plan& plan);
/// "2 nodes of 8", which are rented whole.
[[nodiscard]] std::string nodes_of(const Deployment& deployment);
/// "fp8 weights and experts, bf16 KV cache".
[[nodiscard]] std::string formats_of(const NumberFormats& formats);
/// How many GPUs, how fast, at what cost.
[[nodiscard]] std::vector<std::string> answer_lines(const Deployment& deployment);
/// What came of serving it request by request. REQUIRES: promises.
[[nodiscard]] std::string served_line(const PlanResult& result);
[[nodiscard]] TextTable served_table(const PlanResult& result);
[[nodiscard]] TextTable sides_table(const Deployment& deployment);
[[nodiscard]] TextTable memory_table(const Deployment& deployment);
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
