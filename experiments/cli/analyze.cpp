// moeline analyze: what a measured trace says about itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/file.hpp"
#include "engine/simulate.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/measured_input.hpp"
#include "experiments/cli/output/analysis_output.hpp"
#include "experiments/cli/output/timeline_pages.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/learn/learn.hpp"
#include "experiments/run/best_run.hpp"
#include "hardware/device_name.hpp"
#include "schedules/scenario/candidates.hpp"

namespace moeline {
namespace {

struct AnalyzeOptions {
  std::vector<std::string> traces;
  MeasuredInput input;
  std::string scenario;
  std::vector<std::string> assignments;
  std::string hardware;
  std::string html;
  bool force = false;
  bool together = false;
  bool kernels = false;
  std::string format = "table";
};

std::optional<HardwareProfile> machine_of(const Trace& trace, const AnalyzeOptions& options) {
  if (!options.hardware.empty()) return load_profile(options.hardware);
  const std::optional<std::string> name = profile_named_by(trace.device);
  return name ? std::optional(load_profile(*name)) : std::nullopt;
}

void write_page(const AnalysisReport& report, const std::string& file, const PageTemplate& page_template) {
  const ReplayGraph replay = replay_graph(*report.measured);
  const Explanation explanation = explain(replay, simulate(replay.graph, {.record_changes = true}));
  const TimelinePage page = trace_page(report.file, *report.measured, replay, explanation, to_table(report));
  write_text(file, to_html(page, page_template));
}

// By the phases that trace and scenario share; where they share none, by its operators.
Shapes shapes_in(const std::vector<Candidate>& candidates, const Measured& measured, const AnalysisReport& report) {
  const auto any = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& c) { return bool(c.setup); });
  const std::vector<PhaseTimes>& phases = report.analysis.ranks.front().phases;
  if (has_phase_of(*any->setup, phases)) return shapes_of(*any->setup, phases);  // which no schedule changes
  const Run run = best_run(candidates);
  return shapes_by_operators(measured, compared_step({report.file, &measured}, run), run);
}

// What is of one trace, or of the scenario that ran in it.
void check_for_several(const AnalyzeOptions& options) {
  const std::array<std::pair<const char*, bool>, 4> given = {{{"--scenario", !options.scenario.empty()},
                                                              {"--hardware", !options.hardware.empty()},
                                                              {"--html", !options.html.empty()},
                                                              {"--kernels", options.kernels}}};
  for (const auto& [name, is_given] : given) {
    if (is_given) throw UsageError(fmt::format("{}: is of one rank, and here are several", name));
  }
}

void analyze_ranks(const AnalyzeOptions& options, const Console& console) {
  check_for_several(options);
  const KernelMap map = kernel_map_of(options.input);
  std::vector<RankTrace> ranks;
  for (const std::string& file : options.traces) {
    MeasuredInput input = options.input;
    input.path = file;
    for (RankTrace& rank : ranks_in(file, load_trace(input, map, console), map)) ranks.push_back(std::move(rank));
  }
  if (ranks.size() == 1) throw SpecError(ranks.front().file, 0, "--together: holds one GPU, which waits for nobody");
  const SeveralRanks result = analyze_several(std::move(ranks));
  console.print(options.format == "json" ? to_json(result) : to_table(result));
}

void analyze_command(AnalyzeOptions options, const Console& console) {
  if (options.scenario.empty() && !options.assignments.empty()) {
    throw UsageError("--set: overrides the scenario, and there is none; give --scenario");
  }
  if (options.traces.size() > 1 || options.together) return analyze_ranks(options, console);
  options.input.path = options.traces.front();
  check_output({"--html", options.html, FileKind::page}, {options.input.path, options.input.map, options.scenario},
               options.force);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_timeline_template();
  const Measured measured = load_measured(options.input, console);
  AnalysisReport report;
  report.file = options.input.path;
  report.measured = &measured;
  report.analysis = analyze(measured);
  report.machine = machine_of(measured.trace, options);
  if (!options.scenario.empty()) {
    const std::vector<Candidate> candidates = load_candidates(options.scenario, options.assignments);
    report.shapes = shapes_in(candidates, measured, report);
  }
  if (options.kernels) report.kernels = kernels_by_name(measured);
  if (measured.trace.gpus.size() == 1) report.counterfactuals = counterfactuals(measured);
  if (page_template) write_page(report, options.html, *page_template);
  console.print(options.format == "json" ? to_json(report) : to_table(report));
  if (measured.trace.gpus.size() > 1) {
    console.note(fmt::format("the trace holds {} GPUs: --together says which of them waits for which",
                             measured.trace.gpus.size()));
  }
}

constexpr const char* kAnalyzeDefinitions =
    R"(span: first start to last end of the GPU events of a rank. compute, communication: unions of their kernels; copies and
sets of the copy engines are neither. idle: nothing runs. non-compute: the rest of the span.
exposed (exposed_comm_us in JSON, as simulate has it): communication runs and no kernel computes; overlap: the rest of
the communication, over all of it. Copies with nothing beside them are non-compute, and not exposed communication.
as HTA counts: what HolisticTraceAnalysis prints of the file by default. Communication is what begins with nccl or has
ncclKernel in its name, so that DeepEP's kernels count as compute. Of a file with two or more profiler steps
(ProfilerStep#N) HTA leaves out what was launched after the last of them had begun (on the host or, by its twin, on the
GPU, whichever is later), and what has no launch in the trace. Of --steps, --from and --to everything counts.
bound by: what the span of a replay shrinks most without: the kernels that compute, communication with its barriers, copies,
the host (its calls and the time between them), or gaps; of two together where none alone saves a tenth.
gaps: all times of the span without a kernel on the streams that compute (those with 5 % of the compute or more), by
what bound the kernel that ended them: its launch; a communication kernel, or another stream, that it waited for;
nothing but the kernel before it (between kernels). Where it then stood still for 20 us and more, that part has no reason in
the trace: also behind a launch that took over four times as long to its kernel as launches usually do here. After the last kernel only other streams run. Gaps and the time for
which any of these streams is busy add up to the span. Of kernels whose launch is not in the trace nobody can say that
the host was late.
steps: annotations around whole steps of a server (vLLM, SGLang) or a training loop, or, whatever their names, around
many repetitions of one sequence of kernels; where there are none, ProfilerStep#N. They are no phases. A step lasts from
its first event to its last on the stream that computes most in it, and its times are of all streams. Steps of one kind
have the same batch and tokens by their names.
Starts and ends (start_us and end_us in JSON) count from the file's first GPU event, as --from and --to do.
TFLOP/s, GB/s: of kernels whose shapes the trace states ("Input Dims", bytes of copies and NCCL); with --scenario, of
all kernels of the phases that trace and scenario share, by the scenario's shapes, over the class's union; where they
share none, of the kernels of a step that are aligned with the scenario's operators (moeline learn). of time: the
share of the class's time (sum) that the kernels behind the rate take.
GB/s of copies are what they read and write in the GPU's memory: a copy inside it passes twice, a set once. Copies to
and from the host go at the rate of the link to the host, those to another GPU at NVLink's: the table of copies has
them apart.
GB/s of communication: message bytes over the time of the transfer, barriers apart (NCCL's "algorithm bandwidth"). An
NCCL message is the larger of input and output; of kernels that do not state theirs, a scenario knows what goes to other
nodes.
of peak: time that the FLOPs take at the FP8 and BF16 peaks of the machine, over the time they took.
layers: from the first start to the last end of a layer's phases of computation, and from there to the end of its
communication or until the next layer computes, if that is sooner; or, where phases do not hold most of
the trace, of the sequence of kernels that repeats, in each step or, without steps, in all. barrier, transfer: sums of
durations.
--kernels: what nothing is known of comes first, by time: a pattern of --map, or a row of the table of kernel names
(model/trace/kernel_names.cpp), makes it known. Of a kernel that is only told by a general word in its name the class
may be wrong. "of all" is of the sum of the durations of kernels, copies apart.
Replays: see moeline replay --help.)";

}  // namespace

Command make_analyze(Console& console) {
  auto options = std::make_shared<AnalyzeOptions>();
  return {
      .name = "analyze",
      .about = "what a measured trace says: overlap, gaps, classes, what limits it",
      .options = joined(
          {{required({"trace", &options->traces, "profiler trace (.json, .json.gz, .sqlite), or one of each rank"})},
           kernel_map_options(options->input),
           window_options(options->input.window),
           {{"--scenario", &options->scenario, "scenario that ran in the trace: shapes of its kernels"},
            single_words({"--set", &options->assignments, "override in the scenario"}),
            {"--hardware", &options->hardware, "profile of the machine; default: by the trace's device"},
            {"--together", &options->together,
             "the GPUs of one trace as ranks that wait for each other, as several traces are"},
            {"--kernels", &options->kernels, "all kernels by name: what each is of, and first those that nobody knows"},
            {"--html", &options->html, "write a page of the trace's timeline, and of what is printed", NotEmpty{}},
            force_option(options->force),
            format_option(options->format, {"table", "json"})}}),
      .footer = fmt::format("{}\n{}\n{}\n{}", kAnalyzeDefinitions, kRanksHelp, kTimelineHelp, kWindowHelp),
      .run = [options, &console] { analyze_command(*options, console); }};
}

}  // namespace moeline
