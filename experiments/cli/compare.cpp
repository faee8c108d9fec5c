// moeline compare: two timelines, phase by phase; either side may be a scenario or a trace.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "base/file.hpp"
#include "base/text.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/measured_input.hpp"
#include "experiments/cli/output/compare_output.hpp"
#include "experiments/cli/output/learn_output.hpp"
#include "experiments/cli/output/timeline_pages.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/run/null_models.hpp"
#include "measured/names.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "timeline/merge_traces.hpp"

namespace moeline {
namespace {

struct CompareOptions {
  std::string a, b;
  std::vector<std::string> assignments;
  std::vector<int> layers;
  MeasuredInput input;  ///< how to read traces; its path is unused
  std::string fail_above;
  std::string trace;
  std::string html, svg;
  bool force = false;
  std::string format = "table";
};

struct OneSide {
  std::optional<Setup> setup;  // of a scenario
  std::vector<PhaseTimes> phases;
  std::vector<KernelSpan> kernels;
  std::vector<std::string> warnings;
  std::optional<SteppedTrace> steps;  // of a trace
  bool is_whole = false;              // a trace of which neither phases nor steps are known
  std::map<std::uint32_t, std::string> stream_names;
};

void take_phases(const Trace& trace, const Interpretation& meaning, OneSide& side) {
  side.phases = phase_times(trace, meaning);
  side.kernels = kernel_spans(trace, meaning);
}

// A trace of which nothing is known is one phase, so that at least its kernel families can be compared.
void take_as_one_phase(const Trace& trace, Interpretation meaning, OneSide& side) {
  meaning.phases = {{"all", 0, {}}};
  meaning.places.assign(trace.gpu_events.size(), {0, 0});
  take_phases(trace, meaning, side);
  side.is_whole = true;
}

OneSide load_trace_side(const std::string& path, const CompareOptions& options, const Console& console) {
  const KernelMap map = kernel_map_of(options.input);
  MeasuredInput input = options.input;
  input.path = path;
  Trace trace = load_trace(input, map, console);
  if (trace.gpus.size() > 1) {
    throw SpecError(path, 0, fmt::format("holds {} GPUs; compare knows one on each side", trace.gpus.size()));
  }
  Interpretation meaning = interpret(trace, map);
  OneSide side;
  side.steps = stepped(trace, meaning);
  if (!side.steps && meaning.phases.empty()) {
    take_as_one_phase(trace, meaning, side);
  } else if (!side.steps) {
    take_phases(trace, meaning, side);
  }
  return side;
}

// Steps of both sides become phases; beside a trace of which nothing is known a trace with steps is one phase, too.
std::optional<StepPairs> take_steps(OneSide& a, OneSide& b) {
  std::optional<StepPairs> pairs;
  if (a.steps && b.steps) pairs = pair_steps(*a.steps, *b.steps);
  std::set<std::string> divided;
  for (const StepPair& pair : pairs ? pairs->common : std::vector<StepPair>{}) {
    if (pair.same_layers) divided.insert(pair.kind);
  }
  for (const auto& [side, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (!side->steps) continue;
    if (other->is_whole) {
      take_as_one_phase(side->steps->trace, side->steps->meaning, *side);
    } else {
      take_phases(side->steps->trace, step_phases(*side->steps, divided), *side);
    }
  }
  return pairs;
}

OneSide load_side(const std::string& path, const CompareOptions& options, const Console& console) {
  if (!is_scenario(path)) return load_trace_side(path, options, console);
  const std::vector<Candidate> candidates = load_candidates(path, options.assignments);
  const auto is_pipeline = [](const Candidate& each) { return each.setup && each.setup->scenario.kind().pipeline; };
  if (std::any_of(candidates.begin(), candidates.end(), is_pipeline)) {
    throw SpecError(path, 0, "is a whole pipeline; compare knows the phases of one rank");
  }
  Run run = best_run(candidates);
  std::vector<KernelSpan> kernels = kernel_spans(run.program.graph, run.timeline);
  return {std::move(run.setup),           std::move(run.phases), std::move(kernels),
          std::move(run.warnings),        std::nullopt,          false,
          stream_names(run.program.graph)};
}

// Phases of prefill and decode have the same names and nothing else in common.
void check_same_work(const Setup& a, const Setup& b) {
  const WorkloadPhase of_a = a.scenario.phase();
  const WorkloadPhase of_b = b.scenario.phase();
  if (of_a == of_b) return;
  throw SpecError(b.scenario.file, 0,
                  fmt::format("is {}, and {} is {}", word_of(of_b), a.scenario.file, word_of(of_a)));
}

// What a prediction must beat: the same scenario with free communication, and without overlap.
std::vector<Null> null_models(const OneSide& a, const OneSide& b, const std::vector<std::uint32_t>& layers) {
  std::vector<Null> nulls;
  if (a.setup) {
    for (const char* name : {kCommunicationFree, kEverythingSerial}) {
      nulls.push_back({name, score(run_scenario(null_model(name, *a.setup)).phases, b.phases, layers)});
    }
  }
  const std::vector<PhaseTimes> copied = b.setup ? std::vector<PhaseTimes>{} : copied_mean(b.phases, layers);
  if (!copied.empty()) nulls.push_back({kCopiedMean, score(copied, b.phases, layers), false});
  return nulls;
}

// "5%" and "5" are five per cent.
double threshold_of(const std::string& text) {
  const std::string_view number = std::string_view(text).substr(0, text.size() - (text.ends_with('%') ? 1 : 0));
  const double percent = as_number<double>(number).value_or(-1);
  if (percent >= 0) return percent / 100;
  throw UsageError(fmt::format("--fail-above '{}': write a percentage, such as 5%", text));
}

// What exceeds the threshold, in words; empty: nothing.
std::string excess(const Score& score, double threshold) {
  std::vector<std::string> texts;
  const auto add = [&](const std::string& what, double error) {
    if (std::abs(error) > threshold) texts.push_back(fmt::format("{} by {:+.2f} %", what, 100 * error));
  };
  add("the span", score.span_error);
  if (score.elapsed_error() != score.span_error) add("the time from first to last", score.elapsed_error());
  for (const PhasePair& pair : score.phases) {
    add(fmt::format("{} of layer {}", short_phase_name(pair.a.phase), pair.a.layer), pair.error());
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Of a scenario and a trace that has none of its phases the scenario; else null.
const OneSide* by_operators(const OneSide& a, const OneSide& b) {
  if (a.setup.has_value() == b.setup.has_value()) return nullptr;
  const OneSide& predicted = a.setup ? a : b;
  const OneSide& measured = a.setup ? b : a;
  const auto is_common = [&](const PhaseTimes& phase) {
    return std::any_of(predicted.phases.begin(), predicted.phases.end(),
                       [&](const PhaseTimes& other) { return other.phase == phase.phase; });
  };
  const bool shares =
      !measured.steps && !measured.is_whole && std::any_of(measured.phases.begin(), measured.phases.end(), is_common);
  return shares ? nullptr : &predicted;
}

void check_for_operators(const CompareOptions& options) {
  const std::pair<const char*, bool> given[] = {{"--layers", !options.layers.empty()},
                                                {"--trace", !options.trace.empty()}};
  for (const auto& [name, is_given] : given) {
    if (is_given)
      throw UsageError(
          fmt::format("{}: is of phases, of which this trace and this scenario have none in common", name));
  }
}

int compare_operators(const std::string& file, const OneSide& predicted, double threshold,
                      const CompareOptions& options, const Console& console) {
  check_for_operators(options);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_page_template();
  MeasuredInput input = options.input;
  input.path = file;
  const Measured measured = load_measured(input, console);
  const LearntTrace trace = compared_step({file, &measured}, run_scenario(*predicted.setup));
  const std::string picture = to_svg(layer_pictures(trace));
  if (page_template) write_text(options.html, to_html(operators_page(trace, picture), *page_template));
  if (!options.svg.empty()) write_text(options.svg, picture);
  console.print(options.format == "json"  ? operators_json(trace)
                : options.format == "csv" ? operators_csv(trace)
                                          : operators_table(trace));
  for (const std::string& warning : predicted.warnings) console.warn(warning);
  for (const std::string& warning : trace.warnings) console.warn(warning);
  const double error = trace.before_us / trace.measured_us - 1;
  if (std::abs(error) <= threshold) return kDone;
  console.fail(fmt::format("--fail-above {}: the step by {:+.2f} %", options.fail_above, 100 * error));
  return kInfeasible;
}

ComparedSide shown(const OneSide& side) { return {!side.setup, side.kernels, side.phases, side.stream_names}; }

Picture picture_of(const std::string& name, const OneSide& side) {
  return {name, lanes_of_phases(side.kernels, side.stream_names)};
}

int compare(const CompareOptions& options, const Console& console) {
  if (!options.assignments.empty() && !is_scenario(options.a) && !is_scenario(options.b)) {
    throw UsageError("--set: applies to scenarios, and both sides are traces");
  }
  check_window(options.input.window);
  if (has_window(options.input.window) && is_scenario(options.a) && is_scenario(options.b)) {
    throw UsageError("--steps, --from, --to: apply to traces, and both sides are scenarios");
  }
  const std::vector<std::string> inputs = {options.a, options.b, options.input.map};
  const std::vector<OutputFile> outputs = {{"--trace", options.trace, FileKind::trace},
                                           {"--html", options.html, FileKind::page},
                                           {"--svg", options.svg, FileKind::svg}};
  check_distinct(outputs);
  for (const OutputFile& output : outputs) check_output(output, inputs, options.force);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_timeline_template();
  const double threshold =
      options.fail_above.empty() ? std::numeric_limits<double>::infinity() : threshold_of(options.fail_above);
  OneSide a = load_side(options.a, options, console);
  OneSide b = load_side(options.b, options, console);
  if (const OneSide* predicted = by_operators(a, b)) {
    return compare_operators(predicted == &a ? options.b : options.a, *predicted, threshold, options, console);
  }
  if (a.setup && b.setup) check_same_work(*a.setup, *b.setup);
  if (options.format == "csv")
    throw UsageError("--format csv: is of operators, and here are phases; json has them all");
  const std::optional<StepPairs> steps = take_steps(a, b);
  const std::vector<std::uint32_t> layers = common_layers(a.phases, b.phases, options.layers);
  ComparisonReport report{options.a, options.b, score(a.phases, b.phases, layers), {}, {}, steps};
  report.nulls = null_models(a, b, layers);
  report.differences = differences(report.score, a.kernels, b.kernels);
  if (!options.trace.empty()) {
    write_text(options.trace, merged_trace({{"a: " + options.a, a.kernels}, {"b: " + options.b, b.kernels}}));
  }
  if (page_template) write_text(options.html, to_html(compare_page(report, shown(a), shown(b)), *page_template));
  if (!options.svg.empty())
    write_text(options.svg, to_svg({picture_of("a: " + options.a, a), picture_of("b: " + options.b, b)}));
  console.print(options.format == "json" ? to_json(report) : to_table(report));
  for (const std::string& warning : a.warnings) console.warn(fmt::format("a: {}", warning));
  for (const std::string& warning : b.warnings) console.warn(fmt::format("b: {}", warning));
  const std::string above = excess(report.score, threshold);
  if (above.empty()) return kDone;
  console.fail(fmt::format("--fail-above {}: {}", options.fail_above, above));
  return kInfeasible;
}

constexpr const char* kCompareDefinitions =
    R"(error = a / b - 1, as of a prediction a of a measurement b; of a run before and one after, the last sum says in words
what b takes more. Of a phase it is that of its span: start of its first kernel to end of its last;
of a phase of communication that is not scored, of its transfers, with the barrier apart. Micro-batches are paired one by one, or, where the
two sides have different ones, their times are summed. The scores are over the phases of computation: those of
which communication is not most of the busy time, or, where all communicate, all of them.
span e: of the time in which any of the phases compared runs, communication included.
Causes of a difference a - b of spans, also of phases of communication, add up to it: work: kernels that only one side has more of, at their mean time there;
contention: of a prediction, what kernels took beyond their time alone; of a trace, what the SMs of the communication
kernels beside them cost kernels of more blocks than SMs; waiting: barriers, and pauses of 10 us and more inside the
phase; gaps: shorter pauses; parallel: time in which two streams of the phase run at once; speed: the rest.
From first to last: the same with the time between the phases compared in which no phase of any layer runs, so that
a pause makes a run longer.
--fail-above: exit code 1 where the span, the time from first to last or any phase of computation differs by more,
either way.
Two traces with steps (moeline analyze --help) are compared by kinds of steps: of each kind that both have the median
step, by its layers where both sides have equally many, with what comes before the first layer ("start of") and after
the last ("end of"). A trace with neither phases nor steps is compared as one phase, by kernel family; --map names
phases.
A scenario and a trace that has none of its phases, as profiles of servers are, are compared by operators: the step that
takes most of the trace, its kernels aligned with the scenario's operators as `moeline learn` does. --format csv is of
these alone.
--html: both timelines, with zero at the first phase that is compared. What released a bar is not in it; a bar that is
clicked says by what causes its phase differs, and marks the same phase on the other side.
Null models: communication free (transfers and barriers take no time, SMs or bandwidth), everything serial (no overlap),
copied mean (each phase of b takes the mean of its other layers: those not compared, or, if all are, all but itself;
absent where b has one layer).)";

}  // namespace

Command make_compare(Console& console) {
  auto options = std::make_shared<CompareOptions>();
  return {
      .name = "compare",
      .about = "two timelines, phase by phase: predictions, traces, or one of each",
      .options = joined(
          {{required({"a", &options->a, "scenario (.yaml) or trace (.json, .json.gz, .sqlite)"}),
            required({"b", &options->b, "scenario or trace"}),
            comma_separated({"--layers", &options->layers, "only these layers, by position in order of execution"}),
            single_words({"--set", &options->assignments, "override in the scenarios"}),
            {"--fail-above", &options->fail_above, "5%: exit code 1 where a difference is larger", NotEmpty{}},
            {"--trace", &options->trace, "write both timelines into one Chrome trace", NotEmpty{}},
            {"--html", &options->html, "write a page of both timelines on one axis, and why they differ", NotEmpty{}},
            {"--svg", &options->svg, "draw the phases of both timelines on one scale", NotEmpty{}},
            force_option(options->force)},
           kernel_map_options(options->input),
           window_options(options->input.window),
           {format_option(options->format, {"table", "json", "csv"})}}),
      .footer = fmt::format("{}\n{}\nOf sides that are traces:\n{}", kCompareDefinitions, kTimelineHelp, kWindowHelp),
      .run = [options, &console] { console.exit_code = compare(*options, console); }};
}

}  // namespace moeline
