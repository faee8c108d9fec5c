// moeline explain: why a scenario or a measured trace takes as long as it does.
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>

#include "base/file.hpp"
#include "engine/simulate.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/measured_input.hpp"
#include "experiments/cli/output/explain_output.hpp"
#include "experiments/cli/output/timeline_pages.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/timeline_page/run_view.hpp"

namespace moeline {
namespace {

struct ExplainOptions {
  MeasuredInput input;  ///< its path may be a scenario's
  std::vector<std::string> assignments;
  std::string scenario;  ///< that ran in the trace
  std::string html;
  std::vector<std::string> ranks;
  bool force = false;
  std::string format = "table";
  bool modules = false;
  bool kernels = false;
  int depth = std::numeric_limits<int>::max();
};

// What there is to print of a run or a trace.
struct ExplainedInput {
  const Explanation& explanation;
  const TaskGraph& graph;
  std::string title;
  std::function<std::optional<ModuleTable>()> modules;  ///< made where they are asked for: it takes a while
  std::function<std::optional<StepKernels>()> kernels;  ///< the same; null of a trace
  std::function<TimelinePage(const std::string& table)> page;
};

StepKernels kernels_of(const ExplainedInput& subject, const ExplainOptions& options) {
  std::optional<StepKernels> kernels = subject.kernels();
  if (kernels) return std::move(*kernels);
  throw SpecError(options.input.path, 0,
                  "--kernels: slots of a pipeline are one task each; level: operator has kernels");
}

std::string text_of(const ExplainedInput& subject, const ExplainOptions& options) {
  const bool json = options.format == "json";
  std::optional<StepKernels> kernels;
  if (options.kernels) kernels = kernels_of(subject, options);
  if (!json && kernels) return to_table(subject.title, *kernels, to_us(subject.explanation.span));
  if (!json && !options.modules) return to_table(subject.title, subject.explanation, subject.graph);
  std::optional<ModuleTable> modules = subject.modules();
  if (modules) modules = cut(std::move(*modules), options.depth);
  if (json) return to_json(subject.explanation, subject.graph, modules, kernels);
  if (!modules) throw SpecError(options.input.path, 0, "--modules: of given slots no kernel is known");
  return to_table(subject.title, *modules);
}

void put_out(const ExplainedInput& subject, const ExplainOptions& options,
             const std::optional<PageTemplate>& page_template, const Console& console) {
  const std::string text = text_of(subject, options);
  if (page_template) {
    const bool printed = options.format == "table";
    const std::string table = printed ? text : to_table(subject.title, subject.explanation, subject.graph);
    write_text(options.html, to_html(subject.page(table), *page_template));
  }
  console.print(text);
}

void explain_scenario(const ExplainOptions& options, const std::optional<PageTemplate>& page_template,
                      const Console& console) {
  const Run run = with_progress(console, [&](const Progress& progress) {
    return best_run(options.input.path, options.assignments, {.record_changes = true, .progress = progress});
  });
  const auto ranks = parse_ranks("--ranks", options.ranks, simulated_ranks(run.program.graph));
  const Explanation explanation =
      with_progress(console, [&](const Progress& progress) { return explain(run, progress); });
  const bool staged = is_staged(run.setup.scenario);
  const std::string rounds = staged ? fmt::format(", {} rounds of the pipeline in a row", run.inference()->rounds) : "";
  const std::string chosen = run.tried.empty() ? "" : ", schedule " + run.setup.scenario.schedule;
  put_out(
      {.explanation = explanation,
       .graph = run.program.graph,
       .title = options.input.path + chosen + rounds,
       .modules = [&] { return module_table(run); },
       .kernels = [&] { return step_kernels(run); },
       .page = [&](const std::string& table) { return run_page(run, explanation, ranks, options.assignments, table); }},
      options, page_template, console);
  if (is_by_slot(run)) {
    console.warn(
        fmt::format("level: phase has one task for each slot, and a launch before what it results in; "
                    "level: operator says why and what would shorten it"));
  }
  for (const std::string& warning : run.warnings) console.warn(warning);
}

void explain_trace(const ExplainOptions& options, const std::optional<PageTemplate>& page_template,
                   const Console& console) {
  std::optional<Setup> setup;
  if (!options.scenario.empty()) setup = load_setup(options.scenario, options.assignments);
  const Measured measured = load_measured(options.input, console);
  const ReplayGraph replay = replay_graph(measured);
  const Explanation explanation = with_progress(console, [&](const Progress& progress) {
    return explain(replay, simulate(replay.graph, {.record_changes = true, .progress = progress}), progress);
  });
  put_out({.explanation = explanation,
           .graph = replay.graph,
           .title = fmt::format("{}, measured {:.1f} us, replayed", options.input.path,
                                to_us(measured_span(measured.trace))),
           .modules = [&] { return module_table(measured, kernel_map_of(options.input), setup ? &*setup : nullptr); },
           .kernels = nullptr,
           .page =
               [&](const std::string& table) {
                 return trace_page(options.input.path, measured, replay, explanation, table);
               }},
          options, page_template, console);
}

void explain_command(const ExplainOptions& options, const Console& console) {
  const bool scenario = is_scenario(options.input.path);
  if (!scenario && options.scenario.empty() && !options.assignments.empty()) {
    throw UsageError("--set: applies to scenarios, and this is a trace without --scenario");
  }
  if (scenario && !options.scenario.empty()) {
    throw UsageError("--scenario: applies to traces, and this is a scenario");
  }
  if (scenario && !(options.input.map.empty() && options.input.communication.empty())) {
    throw UsageError("--map, --comm-pattern: apply to traces, and this is a scenario");
  }
  if (!options.scenario.empty() && !options.modules && options.format != "json") {
    throw UsageError("--scenario: says what the modules of a trace are, and needs --modules or --format json");
  }
  if (scenario && has_window(options.input.window)) {
    throw UsageError("--steps, --from, --to: apply to traces, and this is a scenario");
  }
  if (!scenario && options.kernels) {
    throw UsageError("--kernels: of a scenario alone; of a trace analyze has the kernels");
  }
  if (!scenario && !options.ranks.empty()) {
    throw UsageError("--ranks: of a scenario alone; a trace is shown as it is");
  }
  check_output({"--html", options.html, FileKind::page}, {options.input.path, options.input.map}, options.force);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_timeline_template();
  scenario ? explain_scenario(options, page_template, console) : explain_trace(options, page_template, console);
}

constexpr const char* kExplainDefinitions =
    R"(Backwards from what ends last: a task ran, waited for SMs that others held, or was released a launch gap (of a trace: its
measured gap) before; then what released it. Every microsecond of the span has one reason, and they sum to it.
slowed by neighbours: what a task takes longer than alone, and what there was too little of. waiting for the slowest rank: of
a rank that is not simulated.
elasticity: d ln span / d ln of a time, or of a capacity: 0.2 is 2 % of the span for 10 % of the time. Of tasks it is exact for
a small change, neighbours included. link:..., latency and sms price every kernel again, as --set hardware.nic_GBps= does (sms:
with eight more and eight fewer, as kernels fill them in waves); what ranks wait for each other, and the clock, stay. -10 %, -50 %, -100 %: the share of the span that is saved
where the item takes so much less time (a link: where it is that much faster), each kernel slowed down as it was. knee: the
share of its time after whose removal hardly anything more is gained, as if all were gained at the rate of the first tenth;
then: the class that the end waits for longer once the item takes no time. A task whose delay lets others slip has a
negative elasticity: they would meet fewer neighbours. ~: gains and elasticity/10 differ by a third.
With these kernels, in the order that the schedule gives each stream, it takes no less than the longest chain of them (path),
each as fast as alone, nor than what the SMs (sm_time) or a link have to do over their capacity, with the least that comes
before and after it: of a pipeline its ramp. cycle: of layers that repeat, so many times the least period that their chains
allow. Why the busiest resource is not all it takes: the time without its work, by what the end waited for meanwhile.
Of a trace times keep the contention they were measured with, so path says it all; host and gaps are what replay's --scale
calls so, and each item's gain is what a replay with so much less of it saves.)";

constexpr const char* kModulesHelp =
    R"(--modules: the tree of the model's modules as one GPU runs them, on average over those that are simulated (the ranks of a
pipeline, an expert-parallel group) or traced. JSON always has it.
parameters: of the whole model, as moeline model counts them, whatever part of it runs.
MAC, FLOP: of matrix products, two FLOPs per MAC, by the shapes of the kernels, forward and backward. Attention is causal,
and a query counts half of its own key (train_flops_per_token: the whole of it). Left out are rows that only pad an expert's
tiles, and recomputation, which JSON has apart. In prefill the LM head sees the last token of each prompt and kv_b_proj
cached tokens, too; in decode MLA's core works on latents.
forward, backward (gradients of inputs and of weights), recompute: sums over kernels, each from its start to its end, with
contention, and waits in barriers. Streams run side by side, so that they may sum to more than the step. A cast counts for
the matrix that it is made for. A kernel that multiplies several matrices stands under their names, joined by "+".
TFLOP/s: FLOPs over all us. of step: all us over the step.
bound by: what most of a module's us, and of the launch gaps before its kernels, goes by. communication: kernels that do;
launch: gaps, and kernels whose FLOPs and bytes take less at the machine's peaks than its smallest kernel; compute, memory:
what binds in a kernel's cost curve. "-", in JSON null: not known, as of top-k, or nothing ran.
Of a trace a kernel's module is what --map says, that of the kernel at its place in the same phase of --scenario, or what
its phase and class say: at times one of several ("norms + attention + router"). Only a scenario knows parameters and FLOPs;
what binds is known of communication alone.)";

constexpr const char* kKernelsHelp =
    R"(--kernels: every kernel of one GPU's step, equal ones as one row, and what it is charged, alone on the mean GPU: us alone of
all of them, us each. on this GPU: tasks take longer on a GPU slower than the mean, and where a kernel's time varies. by chance:
experts' rows are drawn, and the mean over the draws is so much more than the time of the mean load, which note, SMs and OP are
of. op: what `moeline price MACHINE --kernels SET` charges the same for, where an OP can say it. With --format json the key
kernels.)";

}  // namespace

Command make_explain(Console& console) {
  auto options = std::make_shared<ExplainOptions>();
  return {.name = "explain",
          .about = "why a scenario or a trace takes as long as it does",
          .options = joined(
              {{required({"input", &options->input.path, "scenario (.yaml), or trace (.json, .json.gz, .sqlite)"}),
                {"--scenario", &options->scenario, "of a trace: what ran in it, for the tree of modules"},
                single_words({"--set", &options->assignments, "of a scenario: override, comm.num_sms=24"})},
               kernel_map_options(options->input),
               {{"--modules", &options->modules, "the tree of the model's modules instead"},
                {.names = "--kernels",
                 .target = &options->kernels,
                 .help = "of a scenario: its kernels and what each is charged, instead",
                 .excludes = "--modules"},
                needs("--modules", {"--depth", &options->depth, "of that tree: no deeper modules (0: the whole model)",
                                    Between{0, 8}})},
               window_options(options->input.window),
               {{"--html", &options->html, "write a page of the timeline and of what is printed", NotEmpty{}},
                ranks_option(options->ranks),
                force_option(options->force),
                format_option(options->format, {"table", "json"})}}),
          .footer = fmt::format("{}\n{}\n{}\n{}\n{}", kExplainDefinitions, kModulesHelp, kKernelsHelp, kTimelineHelp,
                                kWindowHelp),
          .run = [options, &console] { explain_command(*options, console); }};
}

}  // namespace moeline
