// moeline explain: why a scenario or a measured trace takes as long as it does.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/file.hpp"
#include "engine/simulate.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/measured_input.hpp"
#include "experiments/cli/output/explain_output.hpp"
#include "experiments/cli/output/timeline_help.hpp"
#include "experiments/cli/output/timeline_pages.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/ranks.hpp"
#include "experiments/run/run.hpp"
#include "experiments/timeline_page/run_view.hpp"

namespace moeline {
namespace {

struct Options {
  MeasuredInput input;  ///< its path may be a scenario's
  std::vector<std::string> assignments;
  std::string html;
  std::vector<std::string> ranks;
  bool force = false;
  std::string format = "table";
};

void print(const Explanation& explanation, const TaskGraph& graph, const Options& options) {
  fmt::print("{}",
             options.format == "json" ? to_json(explanation, graph) : to_table(options.input.path, explanation, graph));
}

void explain_scenario(const Options& options, const std::optional<PageTemplate>& page_template) {
  const Run run = run_scenario(load_setup(options.input.path, options.assignments), page_template.has_value());
  const auto ranks = parse_ranks("--ranks", options.ranks, simulated_ranks(run.program.graph));
  const Explanation explanation = explain(run);
  if (page_template) {
    const std::string table = to_table(options.input.path, explanation, run.program.graph);
    write_text(options.html, to_html(run_page(run, explanation, ranks, options.assignments, table), *page_template));
  }
  print(explanation, run.program.graph, options);
  for (const std::string& warning : run.warnings) fmt::print(stderr, "moeline: warning: {}\n", warning);
}

void explain_trace(const Options& options, const std::optional<PageTemplate>& page_template) {
  const Measured measured = load_measured(options.input);
  const ReplayGraph replay = replay_graph(measured);
  const Explanation explanation = explain(replay, simulate(replay.graph));
  if (page_template) {
    const std::string table = to_table(options.input.path, explanation, replay.graph);
    write_text(options.html,
               to_html(trace_page(options.input.path, measured, replay, explanation, table), *page_template));
  }
  print(explanation, replay.graph, options);
}

void explain_command(const Options& options) {
  const bool scenario = is_scenario(options.input.path);
  if (!scenario && !options.assignments.empty()) {
    throw CLI::ValidationError("--set: applies to scenarios, and this is a trace");
  }
  if (scenario && has_window(options.input.window)) {
    throw CLI::ValidationError("--steps, --from, --to: apply to traces, and this is a scenario");
  }
  if (!scenario && !options.ranks.empty()) {
    throw CLI::ValidationError("--ranks: of a scenario alone; a trace is shown as it is");
  }
  check_output({"--html", options.html, FileKind::page}, {options.input.path, options.input.map}, options.force);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_timeline_template();
  scenario ? explain_scenario(options, page_template) : explain_trace(options, page_template);
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
  command->add_option("--html", options->html, "write a page of the timeline and of what is printed")
      ->check(not_empty());
  command
      ->add_option(
          "--ranks", options->ranks,
          "all, or 0,5,7: whose kernels --html shows; by default rank 0 and the one that the end waited for most")
      ->delimiter(',')
      ->needs("--html");
  add_force(*command, options->force);
  command->add_option("--format", options->format)->transform(one_of({"table", "json"}));
  command->footer(std::string(kDefinitions) + "\n" + kTimelineHelp + "\n" + kWindowHelp);
  command->callback([options] { explain_command(*options); });
}

}  // namespace moeline
