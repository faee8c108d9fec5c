// moeline explain: why a scenario or a measured trace takes as long as it does.
#include <fmt/format.h>

#include <memory>

#include "engine/simulate.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/measured_input.hpp"
#include "experiments/cli/output/explain_output.hpp"
#include "experiments/run/best_run.hpp"

namespace moeline {
namespace {

struct Options {
  MeasuredInput input;  ///< its path may be a scenario's
  std::vector<std::string> assignments;
  std::string format = "table";
};

void print(const Explanation& explanation, const TaskGraph& graph, const Options& options) {
  fmt::print("{}",
             options.format == "json" ? to_json(explanation, graph) : to_table(options.input.path, explanation, graph));
}

void explain_scenario(const Options& options) {
  const Run run = best_run(options.input.path, options.assignments);
  print(explain(run), run.program.graph, options);
  for (const std::string& warning : run.warnings) fmt::print(stderr, "moeline: warning: {}\n", warning);
}

void explain_trace(const Options& options) {
  const ReplayGraph replay = replay_graph(load_measured(options.input));
  const Timeline timeline = simulate(replay.graph);
  print(explain(replay, timeline), replay.graph, options);
}

void explain_command(const Options& options) {
  const bool scenario = is_scenario(options.input.path);
  if (!scenario && !options.assignments.empty()) {
    throw CLI::ValidationError("--set: applies to scenarios, and this is a trace");
  }
  if (scenario && has_window(options.input.window)) {
    throw CLI::ValidationError("--steps, --from, --to: apply to traces, and this is a scenario");
  }
  scenario ? explain_scenario(options) : explain_trace(options);
}

constexpr const char* kDefinitions =
    R"(Backwards from what ends last: a task ran, waited for SMs that others held, or was released a launch gap (of a trace: its
measured gap) before; then what released it. Every microsecond of the span has one reason, and they sum to it.
slowed by neighbours: what a task takes longer than alone. waiting for the slowest rank: of a rank that is not simulated.
No order of the kernels is shorter than the longest chain of them (path), each as fast as alone, nor than what an SM pool
or a link has to do over its capacity. Of a trace times keep the contention they were measured with, so path says it all.)";

}  // namespace

void add_explain(CLI::App& app, int& /*exit_code*/) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "why a scenario or a trace takes as long as it does");
  command->add_option("input", options->input.path, "scenario (.yaml), or trace (.json, .json.gz)")->required();
  command->add_option("--set", options->assignments, "of a scenario: override, comm.num_sms=24")
      ->allow_extra_args(false);
  add_kernel_map_options(*command, options->input);
  add_window_options(*command, options->input.window);
  command->add_option("--format", options->format)->transform(one_of({"table", "json"}));
  command->footer(std::string(kDefinitions) + "\n" + kWindowHelp);
  command->callback([options] { explain_command(*options); });
}

}  // namespace moeline
