// moeline simulate: a scenario -> a timeline.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "experiments/cli/chakra_files.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/cli/output/scenario_json.hpp"
#include "experiments/cli/output/serve_output.hpp"
#include "experiments/cli/output/simulate_output.hpp"
#include "experiments/cli/output/timeline_pages.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"
#include "experiments/cli/trace_meetings.hpp"
#include "experiments/page/page.hpp"
#include "experiments/report/json.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/silent_settings.hpp"
#include "experiments/serve/serve_log.hpp"
#include "experiments/timeline_page/run_view.hpp"
#include "schedules/lowering/kernel_detail.hpp"
#include "timeline/write_trace.hpp"
#include "trace/gzip_stream.hpp"

namespace moeline {
namespace {

struct SimulateArguments {
  std::string scenario;
  std::vector<std::string> assignments;
  std::string trace;
  std::string chakra;  // the files' names without rank and ending
  std::string format = "table";
  std::string output;
  std::string html, svg;
  std::vector<std::string> page_ranks;
  std::string kernel_naming = "deepep";
  std::string ts_resolution = "ns";
  std::vector<std::string> trace_ranks;
  std::string trace_level;  // empty: phase for whole steps of training, else operator
  bool gzip = false;
  int samples = 0;  // 0: what the scenario says
  bool strict = false;
  bool force = false;
};

bool traces_phases(const Run& run, const SimulateArguments& options) {
  return options.trace_level.empty() ? run.step() != nullptr : options.trace_level == "phase";
}

// And with them what they take of the machine.
bool traces_kernels(const std::vector<Candidate>& candidates, const SimulateArguments& options) {
  const auto is_step = [](const Candidate& each) { return each.setup && is_training_step(each.setup->scenario); };
  return options.trace_level == "operator" || std::none_of(candidates.begin(), candidates.end(), is_step);
}

std::string trace_of(const Run& run, const SimulateArguments& options, TraceEdges edges, std::uint32_t rank) {
  TraceOptions trace;
  trace.world_size = static_cast<std::uint32_t>(run.setup.scenario.parallelism.world());
  trace.device_name = run.setup.machine.name;
  if (!run.has_given_slots()) trace.scenario = scenario_text(run.setup);
  trace.hta_names = options.kernel_naming == "hta";
  trace.graph_launch = run.setup.scenario.launch == Launch::graph;
  trace.whole_us = options.ts_resolution == "us";
  trace.phases_only = traces_phases(run, options);
  trace.edges = std::move(edges);
  trace.detail = [&run](TaskId task) { return detail_of(run.program, *run.setup.prices, task); };
  trace.meeting = [&run, rank](TaskId task) { return trace_meeting(run, task, static_cast<int>(rank)); };
  if (run.step() != nullptr) add_step_tracks(run, rank, trace);
  return trace_of_rank(run.program.graph, run.timeline, rank, trace);
}

// By default all stages of a pipeline, and rank 0 of a group: its others do the same work.
std::set<std::uint32_t> traced_ranks(const Run& run, const std::vector<std::string>& wanted) {
  const std::set<std::uint32_t> simulated = simulated_ranks(run.program.graph);
  if (wanted.empty()) return run.is_pipeline() ? simulated : std::set<std::uint32_t>{0};
  return parse_ranks("--trace-ranks", wanted, simulated);
}

// Bytes of JSON and of the file.
struct TraceSize {
  std::size_t json = 0, file = 0;
};

TraceSize write_trace(const std::filesystem::path& path, const std::string& trace, bool gzip) {
  const std::string packed = gzip ? gzipped(trace) : "";
  write_text(path, gzip ? packed : trace);
  return {trace.size(), gzip ? packed.size() : trace.size()};
}

// Of a whole step nobody would guess how large its traces are.
void report_size(const std::string& what, const TraceSize& size, const Console& console) {
  constexpr double kMega = 1e6;
  const std::string packed =
      size.file == size.json ? "" : fmt::format(", {:.1f} MB packed", static_cast<double>(size.file) / kMega);
  console.note(fmt::format("{}: {:.1f} MB of JSON{}", what, static_cast<double>(size.json) / kMega, packed));
}

// Who finds traces of an earlier run gone should read why.
void remove_other_traces(const std::filesystem::path& folder, const std::vector<std::string>& written,
                         const Console& console) {
  const std::size_t removed = remove_earlier_traces(folder, {written.begin(), written.end()});
  if (removed > 0) console.note(fmt::format("{}: traces of an earlier run removed: {}", folder.string(), removed));
}

void write_folder(const Run& run, const Beside& beside, const std::set<std::uint32_t>& ranks,
                  const SimulateArguments& options, const Console& console) {
  const std::filesystem::path folder(options.output);
  std::vector<std::string> traces;
  TraceSize all;
  std::map<std::uint32_t, TraceEdges> edges = trace_edges(run.program.graph, run.timeline);
  for (const std::uint32_t rank : ranks) {
    traces.push_back(fmt::format("traces/rank_{}.json{}", rank, options.gzip ? ".gz" : ""));
    const TraceSize size =
        write_trace(folder / traces.back(), trace_of(run, options, std::move(edges[rank]), rank), options.gzip);
    all.json += size.json;
    all.file += size.file;
  }
  if (run.step() != nullptr)
    report_size(fmt::format("{} traces in {}", ranks.size(), (folder / "traces").string()), all, console);
  Json manifest;
  manifest.open().add("schema_version", 1).add("program", "moeline " MOELINE_VERSION).add("command", "simulate");
  manifest.add("scenario", run.setup.scenario.file).add("set", options.assignments);
  manifest.add("metrics", "metrics.json").add("traces", traces).close();
  write_text(folder / "metrics.json", to_json(run, beside));
  write_text(folder / "manifest.json", manifest.text());
  remove_other_traces(folder, traces, console);
}

std::string table_of(const Run& run, const Beside& beside) {
  if (run.step() != nullptr) return step_table(run);
  return run.is_pipeline() ? pipeline_table(run) : to_table(run, beside);
}

// The same work without overlap, which tables and pictures show beside it.
std::optional<Run> without_overlap(const Run& run, const SimulateArguments& options) {
  const bool shown = options.format == "table" || !options.svg.empty() || !options.html.empty();
  if (!shown || run.is_pipeline() || run.setup.scenario.schedule == "sequential") return {};
  Setup alone = run.setup;
  alone.scenario.schedule = "sequential";
  return run_scenario(alone);
}

void write_page(const Run& run, const Beside& beside, const std::set<std::uint32_t>& ranks,
                const SimulateArguments& options, const PageTemplate& page_template) {
  const TimelinePage page = run_page(run, explain(run), ranks, options.assignments, table_of(run, beside));
  write_text(options.html, to_html(page, page_template));
}

void write_picture(const Run& run, const Beside& beside, const std::string& file) {
  std::vector<Picture> pictures = {picture_of(run)};
  if (beside.baseline != nullptr) pictures.push_back(picture_of(*beside.baseline));
  write_text(file, to_svg(pictures));
}

std::string result_of(const Run& run, const Beside& beside, const SimulateArguments& options) {
  if (options.format == "json") return to_json(run, beside);
  return options.format == "csv" ? to_csv(run) : tried_table(run) + table_of(run, beside);
}

// Where power lowers the clock, what the run would be without.
std::optional<Run> at_burst(const Run& run) {
  if (run.setup.clock == 1 || run.is_pipeline()) return {};
  Setup setup = run.setup;
  setup.scenario.clock = ClockChoice::burst;
  return run_scenario(setup);
}

std::vector<std::string> with_samples(const SimulateArguments& options) {
  std::vector<std::string> assignments = options.assignments;
  if (options.samples > 0) assignments.push_back(fmt::format("samples={}", options.samples));
  return assignments;
}

// What the scenario sets in vain.
std::vector<std::string> silent_settings(const Run& run, const std::string& scenario,
                                         const SimulateArguments& options) {
  return silent_settings(run, options.assignments, [&](const std::string& assignment) {
    std::vector<std::string> assignments = with_samples(options);
    assignments.insert(assignments.end(), {"schedule=" + run.setup.scenario.schedule, assignment});
    return std::move(read_candidates(options.scenario, scenario, assignments).front().setup.value());
  });
}

void check_outputs(const std::vector<OutputFile>& outputs, const SimulateArguments& options) {
  check_distinct(outputs);
  for (const OutputFile& output : outputs) check_output(output, {options.scenario}, options.force);
}

// What a step has, and requests have not.
void check_for_requests(const SimulateArguments& options) {
  const std::pair<const char*, bool> given[] = {
      {"--output", !options.output.empty()}, {"--chakra", !options.chakra.empty()}, {"--strict", options.strict}};
  for (const auto& [name, is_given] : given) {
    if (is_given) throw UsageError(fmt::format("{}: is of a step, and the workload is requests", name));
  }
}

int simulate_requests(const Spec& scenario, const SimulateArguments& options, const Console& console) {
  check_for_requests(options);
  check_outputs({{"--trace", options.trace, FileKind::trace},
                 {"--html", options.html, FileKind::page},
                 {"--svg", options.svg, FileKind::svg}},
                options);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_page_template();
  const ServeResult result = with_progress(
      console, [&](const Progress& progress) { return serve(scenario, with_samples(options), progress); });
  if (const std::string none = no_steady_state(result); !none.empty()) console.warn(none);
  if (!options.trace.empty()) write_trace(options.trace, serve_trace(result.log), options.trace.ends_with(".gz"));
  if (page_template) write_text(options.html, to_html(serve_page(result), *page_template));
  if (!options.svg.empty()) write_text(options.svg, to_svg({serve_picture(result.log)}));
  console.print(options.format == "json"  ? serve_json(result)
                : options.format == "csv" ? serve_csv(result)
                                          : serve_table(result));
  return kDone;
}

int simulate_command(const SimulateArguments& options, const Console& console) {
  const std::string content = read_text(options.scenario);  // once: it may come through a pipe
  const Spec spec = Spec::parse(options.scenario, content);
  if (serves(spec, options.assignments)) return simulate_requests(spec, options, console);
  check_outputs({{"--trace", options.trace, FileKind::trace},
                 {"--html", options.html, FileKind::page},
                 {"--svg", options.svg, FileKind::svg},
                 {"--chakra", options.chakra.empty() ? "" : options.chakra + ".0.et", FileKind::chakra}},
                options);
  if (!options.output.empty()) check_run_folder(options.output, options.force);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_timeline_template();
  const bool wants_trace = !options.trace.empty() || !options.output.empty();
  const std::vector<Candidate> candidates = read_candidates(options.scenario, content, with_samples(options));
  if (!options.chakra.empty() && candidates.size() == 1) refuse_chakra_of_stages(*candidates.front().setup);
  const bool records = (wants_trace && traces_kernels(candidates, options)) || page_template;
  Run run = with_progress(console, [&](const Progress& progress) {
    return best_run(candidates, {.record_changes = records, .progress = progress});
  });
  for (const std::string& key : silent_settings(run, content, options)) {
    run.warnings.push_back(fmt::format("{} is set and moves nothing here", key));
  }
  if (!options.chakra.empty()) check_chakra_files(run, options.chakra, options.scenario, options.force);
  const std::set<std::uint32_t> ranks = traced_ranks(run, options.trace_ranks);
  const auto page_ranks = parse_ranks("--ranks", options.page_ranks, simulated_ranks(run.program.graph));
  std::optional<Samples> drawn;
  if (run.setup.scenario.samples > 1) {
    drawn = with_progress(console, [&](const Progress& progress) { return sample(run.setup, progress); });
  }
  const bool shows_burst = options.format != "csv" || !options.output.empty();
  const std::optional<Run> burst = shows_burst ? at_burst(run) : std::nullopt;
  const std::optional<Run> baseline = without_overlap(run, options);
  const Beside beside{.baseline = baseline ? &*baseline : nullptr,
                      .burst = burst ? &*burst : nullptr,
                      .samples = drawn ? &*drawn : nullptr};
  const std::string result = result_of(run, beside, options);
  if (!options.output.empty()) create_run_folder(options.output);
  if (!options.trace.empty()) {
    TraceEdges edges = std::move(trace_edges(run.program.graph, run.timeline)[0]);
    const std::string trace = trace_of(run, options, std::move(edges), 0);
    const TraceSize size = write_trace(options.trace, trace, options.trace.ends_with(".gz"));
    if (run.step() != nullptr) report_size(options.trace, size, console);
  }
  if (!options.chakra.empty()) {
    with_progress(console, [&](const Progress& progress) { write_chakra_files(run, options.chakra, progress); });
  }
  if (page_template) write_page(run, beside, page_ranks, options, *page_template);
  if (!options.svg.empty()) write_picture(run, beside, options.svg);
  if (!options.output.empty()) write_folder(run, beside, ranks, options, console);
  console.print(result);
  for (const std::string& warning : run.warnings) console.warn(warning);
  if (!options.strict || (all_measured(run) && fits_memory(run))) return kDone;
  console.fail(fmt::format("--strict: {}", fits_memory(run) ? "not every price is covered by measurements"
                                                            : "the model does not fit in memory"));
  return kInfeasible;
}

constexpr const char* kSimulateDefinitions =
    R"(burst: the same run at the highest clock, where power lowers it. samples: of each metric the median and the 5 and 95 %
quantiles over the seeds. classes: per steady-state MoE layer.
Waiting for the slowest rank is charged as its expectation (schedules/README.md), or happens, where all ranks of an
expert-parallel group are simulated: then metrics are means over the ranks, and phases those of rank 0.
A phase's busy_us is the union of its kernels, solo_us the sum of their times alone.
Of a whole pipeline, phases are its slots, layer is the chunk of the rank's model, a row F&B bears micro-batch and chunk
of its forward pass. With operators, step_ms ends with the optimizer. Times are means over the ranks.
With level phase, busy times and exposed communication are those of the slots: waits between ranks and what comes after the
last slot are not in them.
With schedule auto, every schedule of the table that applies is simulated, and the one with the shortest step is taken (of a
whole model's prefill: the shortest TTFT) that fits memory; the first table, in JSON schedules, has them all, and why the
others do not apply.
A number that --set gives, or a fact of the machine, is named in a warning where no metric changes with another value; of
runs of more than 50,000 tasks facts alone are asked about.
The column sequential is a second simulation, without overlap: GEMMs on all SMs, transfers at their speed alone.)";

}  // namespace

Command make_simulate(Console& console) {
  auto options = std::make_shared<SimulateArguments>();
  return {
      .name = "simulate",
      .about = "predict the timeline of a scenario",
      .options =
          {required({"scenario", &options->scenario, "scenario file (YAML)"}),
           single_words({"--set", &options->assignments, "override: comm.num_sms=24, hardware.nic_GBps=25"}),
           {"--trace", &options->trace,
            "write a Chrome trace of rank 0; -o writes all ranks of a pipeline. Its times are 5 us later than in "
            "tables, because each trace begins with the first launch",
            NotEmpty{}},
           {.names = "--chakra",
            .target = &options->chakra,
            .help = "write Chakra execution traces, NAME.RANK.et of every rank, which ASTRA-sim reads",
            .check = NotEmpty{},
            .type_name = "NAME"},
           format_option(options->format, {"table", "json", "csv"}, "of the result on stdout"),
           {"-o,--output", &options->output,
            "write a run folder: manifest, metrics, traces/, where traces of an earlier run are removed", NotEmpty{}},
           {"--html", &options->html, "write a page of the timeline that opens in any browser, offline", NotEmpty{}},
           ranks_option(options->page_ranks),
           {"--svg", &options->svg, "draw the phases of rank 0, with and without overlap, or the slots of a pipeline",
            NotEmpty{}},
           needs("--output",
                 comma_separated({"--trace-ranks", &options->trace_ranks,
                                  "all, or 0,5,7: whose traces -o writes; all of a pipeline by default, else rank 0"})),
           {"--trace-level", &options->trace_level,
            "operator: every kernel; phase: one slice for each phase on a stream, by default of whole steps of "
            "training",
            OneOf{"operator", "phase"}},
           needs("--output", {"--gzip", &options->gzip, "pack the traces of -o; --trace packs where FILE ends in .gz"}),
           {"--samples", &options->samples, "all ranks, drawn with so many seeds: median, 5 and 95 % of every metric",
            Between{1, 10000}},
           {"--kernel-naming", &options->kernel_naming, "hta: names that HolisticTraceAnalysis takes for communication",
            OneOf{"deepep", "hta"}},
           {"--ts-resolution", &options->ts_resolution, "of times in traces", OneOf{"ns", "us"}},
           force_option(options->force),
           strict_option(options->strict)},
      .footer = fmt::format("{}{}\n{}\n{}\n{}", metric_definitions(), kSimulateDefinitions, kProvenanceHelp,
                            kTimelineHelp, kChakraHelp),
      .run = [options, &console] { console.exit_code = simulate_command(*options, console); }};
}

}  // namespace moeline
