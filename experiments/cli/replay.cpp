// moeline replay: a trace as a task graph, replayed, and what would change if one thing changed.
#include "measured/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include "base/file.hpp"
#include "engine/simulate.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/measured_input.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/report/fields.hpp"
#include "measured/names.hpp"
#include "measured/replay_text.hpp"
#include "timeline/comparison.hpp"

namespace moeline {
namespace {

struct ReplayOptions {
  MeasuredInput input;
  std::vector<std::string> scales;
  std::vector<std::string> removed;
  std::string graph;
  bool force = false;
  std::string format = "table";

  [[nodiscard]] FileKind graph_kind() const {
    return graph.ends_with(".dot") || graph.ends_with(".gv") ? FileKind::graphviz : FileKind::graph;
  }
};

struct PhaseShift {
  const TracePhase* phase = nullptr;
  Time measured{}, baseline{}, start{}, end{}, measured_end{};  ///< start: after the change
};

// Dependencies of one reason; inferred: the trace does not state them.
struct Edges {
  std::size_t all = 0, inferred = 0, seen_once = 0;
};

struct Result {
  Time measured_span{}, baseline_span{}, span{};
  std::size_t tasks = 0, edges = 0;
  std::array<Edges, kReasons> reasons{};
  std::vector<PhaseShift> phases;
  std::vector<Unexplained> unexplained;
  Time worst_phase_start{};  ///< of the baseline, against the measurement
};

std::vector<PhaseShift> shifts(const Measured& m, const ReplayGraph& base, const Timeline& baseline,
                               const ReplayGraph& changed, const Timeline& after) {
  std::vector<PhaseShift> phases(m.meaning.phases.size());
  for (std::size_t i = 0; i < phases.size(); ++i) {
    phases[i] = {&m.meaning.phases[i], Time::max(), Time::max(), Time::max(), Time::zero(), Time::zero()};
  }
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    if (m.meaning.places[i].phase == kNoPhase) continue;
    PhaseShift& p = phases[static_cast<std::size_t>(m.meaning.places[i].phase)];
    const GpuEvent& event = m.trace.gpu_events[i];
    p.measured = std::min<Time>(p.measured, std::chrono::nanoseconds(event.start_ns));
    p.measured_end = std::max<Time>(p.measured_end, std::chrono::nanoseconds(event.end_ns));
    p.baseline = std::min(p.baseline, baseline.spans[base.of_event[i]].start);
    p.start = std::min(p.start, after.spans[changed.of_event[i]].start);
    p.end = std::max(p.end, after.spans[changed.of_event[i]].end);
  }
  std::stable_sort(phases.begin(), phases.end(),
                   [](const PhaseShift& a, const PhaseShift& b) { return a.measured < b.measured; });
  return phases;
}

struct Replayed {
  ReplayGraph replay;
  Timeline timeline;
};

Replayed replayed(const Measured& m, const WhatIf& what_if) {
  ReplayGraph graph = replay_graph(m, what_if);
  Timeline timeline = simulate(graph.graph);
  return {std::move(graph), std::move(timeline)};
}

// Messages about names say which option has them; those about times that no longer fit know of no option.
Replayed replayed_with(const Measured& m, const WhatIf& what_if, const ReplayOptions& options) {
  try {
    return replayed(m, what_if);
  } catch (const SpecError& error) {
    const std::string message = error.what();
    if (message.starts_with("--") || options.scales.empty()) throw;
    throw SpecError(fmt::format("--scale {}: {}", fmt::join(options.scales, ", "), message));
  }
}

void count(const Dependency& edge, Edges& edges) {
  ++edges.all;
  if (edge.evidence.is_stated()) return;
  ++edges.inferred;
  if (edge.evidence.seen == 1) ++edges.seen_once;
}

Result replay(const Measured& m, const WhatIf& what_if, const ReplayOptions& options) {
  Result result;
  const auto [base, baseline] = replayed(m, {});
  const auto [changed, after] = replayed_with(m, what_if, options);
  result.measured_span = measured_span(m.trace);
  result.baseline_span = gpu_span(base, baseline);
  result.span = gpu_span(changed, after);
  result.tasks = base.graph.size();
  result.edges = base.graph.edges();
  for (const Dependency& edge : m.dependencies) count(edge, result.reasons[static_cast<std::size_t>(edge.reason)]);
  result.phases = shifts(m, base, baseline, changed, after);
  for (const PhaseShift& p : result.phases) {
    const Time off = p.baseline > p.measured ? p.baseline - p.measured : p.measured - p.baseline;
    result.worst_phase_start = std::max(result.worst_phase_start, off);
  }
  result.unexplained = unexplained_waits(m, release_times(m));
  return result;
}

double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

// "flash::FlashAttnBwd in attn(B) of layer 3"
std::string name_of(const Measured& m, std::uint32_t event) {
  const std::string phase = phase_name(m, event);
  return kernel_name(m, event) + (phase.empty() ? "" : " in " + phase);
}

// All of what replay prints.
struct ReplayReport {
  const Measured& measured;
  const Result& result;
  const ReplayOptions& options;
};

As any_number() { return {.least = kAny}; }

// As Reason has them.
constexpr std::array<const char*, kReasons> kReasonMeanings = {"the kernel before it on its stream",
                                                               "its launch",
                                                               "the host's order",
                                                               "a wait of the host",
                                                               "an event of another stream",
                                                               "an arrow of the trace",
                                                               "start times that no call explains"};

Fields<Result> reason_fields() {
  Fields<Result> fields;
  for (std::size_t i = 0; i < kReasonMeanings.size(); ++i) {
    fields.add(name_of(static_cast<Reason>(i)), kReasonMeanings[i], [=](auto& r) { return r.reasons[i].all; });
  }
  return fields;
}

Edges sum_of(const Result& r) {
  Edges sum;
  for (const Edges& each : r.reasons) {
    sum.all += each.all;
    sum.inferred += each.inferred;
    sum.seen_once += each.seen_once;
  }
  return sum;
}

Fields<Edges> inferred_fields() {
  return Fields<Edges>()
      .add("edges", "that the trace does not state", &Edges::inferred)
      .add("seen_once", "of them, those that no other layer repeats", &Edges::seen_once);
}

Fields<PhaseShift> phase_fields(const Measured* m) {
  return Fields<PhaseShift>()
      .add("rank", "rank", [=](auto& p) { return m->trace.gpus[p.phase->gpu].rank; }, {.least = -1})
      .add("layer", "layer", [](auto& p) { return p.phase->place.layer; })
      .add("micro_batch", "micro-batch", [](auto& p) { return p.phase->place.micro_batch; })
      .add("phase", "its name", [](auto& p) { return p.phase->name; })
      .add("measured_start_us", "us", &PhaseShift::measured, any_number())
      .add("measured_end_us", "us", &PhaseShift::measured_end, any_number())
      .add("baseline_start_us", "replayed as it was", &PhaseShift::baseline, any_number())
      .add("start_us", "with the change", &PhaseShift::start, any_number())
      .add("end_us", "with the change", &PhaseShift::end, any_number());
}

Fields<Unexplained> unexplained_fields(const Measured* m) {
  return Fields<Unexplained>()
      .add("kernel", "kernel, and its phase", [=](auto& w) { return name_of(*m, w.event); })
      .add("wait_us", "us", [](auto& w) { return us(w.wait_ns); })
      .add("for_sms", "it waited for SMs; left out with other times", &Unexplained::for_sms)
      .add(
          "start_us", "us in the trace", [=](auto& w) { return us(m->trace.gpu_events[w.event].start_ns); },
          any_number());
}

Fields<Result> result_fields_of(const Measured* m) {
  return Fields<Result>()
      .add("measured_span_us", "us", &Result::measured_span)
      .add("baseline_span_us", "us, replayed as it was", &Result::baseline_span)
      .add("span_us", "us, replayed with the change", &Result::span)
      .add("tasks", "tasks of the graph", &Result::tasks)
      .add("edges", "edges", &Result::edges)
      .add("worst_phase_start_us", "us by which a phase starts otherwise than measured, replayed as it was",
           &Result::worst_phase_start)
      .object("reasons", "edges by what they stand for", std::identity(), reason_fields())
      .object("inferred", "how sure they are", sum_of, inferred_fields())
      .list("phases", "phases", &Result::phases, phase_fields(m))
      .list("unexplained", "waits of no known reason", &Result::unexplained, unexplained_fields(m));
}

Fields<ReplayReport> replay_fields(const Measured* measured) {
  return output_fields<ReplayReport>()
      .add("trace", "file", [](auto& r) { return r.options.input.path; })
      .add("scale", "--scale", [](auto& r) { return r.options.scales; })
      .add("remove", "--remove", [](auto& r) { return r.options.removed; })
      .all(
          [](auto& r) -> auto& { return r.result; }, result_fields_of(measured));
}

std::string waits_text(const Measured& m, const Result& r, bool for_sms) {
  std::size_t count = 0;
  std::int64_t sum_ns = 0;
  std::string longest;
  for (const Unexplained& wait : r.unexplained) {
    if (wait.for_sms != for_sms) continue;
    constexpr std::size_t kShown = 8;
    if (++count <= kShown) {
      longest += fmt::format("  {:>8.0f} us before {}\n", us(wait.wait_ns), name_of(m, wait.event));
    }
    sum_ns += wait.wait_ns;
  }
  if (count == 0) return "";
  return fmt::format("\n{} waits of {:.0f} us or more {}, {:.0f} us in all; {}:\n", count, us(kUnexplainedNs),
                     for_sms ? "were for SMs" : "have no reason in the graph", us(sum_ns),
                     for_sms ? "replays leave them out, since with other times kernels would not meet so"
                             : "replays keep them") +
         longest;
}

std::string phases_table(const std::vector<PhaseShift>& phases) {
  if (phases.empty()) return "";
  std::string text = fmt::format("\n{:>5} {:<14} {:>12} {:>12} {:>10} {:>12} {:>12}\n", "layer", "phase", "start us",
                                 "then us", "shift us", "length us", "then us");
  const Time then_zero = phases.front().start;
  const Time zero = phases.front().baseline;
  for (const PhaseShift& p : phases) {
    text += fmt::format("{:>5} {:<14} {:>12.0f} {:>12.0f} {:>+10.0f} {:>12.0f} {:>12.0f}\n", p.phase->place.layer,
                        short_phase_name(p.phase->name), to_us(p.baseline - zero), to_us(p.start - then_zero),
                        to_us(p.start - then_zero) - to_us(p.baseline - zero), to_us(p.measured_end - p.measured),
                        to_us(p.end - p.start));
  }
  return text;
}

std::string to_table(const Measured& m, const Result& r, const ReplayOptions& options) {
  std::string text = fmt::format("{}: {} tasks, {} edges\n", options.input.path, r.tasks, r.edges);
  for (int i = 0; i < kReasons; ++i) {
    const Edges& edges = r.reasons[static_cast<std::size_t>(i)];
    text += fmt::format("  {:<13} {:>8}", name_of(static_cast<Reason>(i)), edges.all);
    if (edges.inferred > 0)
      text += fmt::format("   {} inferred, {} of them seen once", edges.inferred, edges.seen_once);
    text += "\n";
  }
  text += fmt::format("\n{:<26} {:>12.3f} ms\n", "measured span", to_us(r.measured_span) / 1e3);
  text += fmt::format("{:<26} {:>12.3f} ms {:>+8.2f} %", "replayed as it was", to_us(r.baseline_span) / 1e3,
                      100 * ratio_error(r.baseline_span, r.measured_span));
  if (!r.phases.empty()) {
    text += fmt::format("   phases start within {:.1f} us of the measured ones", to_us(r.worst_phase_start));
  }
  text += "\n";
  const std::string asked =
      fmt::format("{}{}{}", fmt::join(options.scales, ", "),
                  options.scales.empty() || options.removed.empty() ? "" : ", ", fmt::join(options.removed, ", "));
  if (!asked.empty()) {
    text += fmt::format("{:<26} {:>12.3f} ms {:>+8.2f} % of the replay\n", "after the change", to_us(r.span) / 1e3,
                        100 * ratio_error(r.span, r.baseline_span));
    text += fmt::format("  changed: {}\n", asked);
    text += phases_table(r.phases);
  }
  text += waits_text(m, r, true) + waits_text(m, r, false);
  return text;
}

WhatIf what_if_of(const ReplayOptions& options) {
  WhatIf what_if;
  try {
    for (const std::string& text : options.scales) what_if.scales.push_back(parse_scale(text));
    for (const std::string& text : options.removed) what_if.removed.push_back(parse_removed(text));
  } catch (const SpecError& error) {
    throw UsageError(error.what());  // wrong usage, whatever the trace
  }
  return what_if;
}

void replay_command(const ReplayOptions& options, const Console& console) {
  const WhatIf what_if = what_if_of(options);
  check_output({"--graph", options.graph, options.graph_kind()}, {options.input.path, options.input.map},
               options.force);
  const Measured measured = load_measured(options.input, console);
  const Result result = replay(measured, what_if, options);
  if (!options.graph.empty()) {
    const bool graphviz = options.graph_kind() == FileKind::graphviz;
    write_text(options.graph, graphviz ? to_graphviz(measured) : to_graph_json(measured));
  }
  console.print(options.format == "json" ? replay_fields(&measured).json({measured, result, options})
                                         : to_table(measured, result, options));
}

constexpr const char* kReplayDefinitions =
    R"(The trace becomes a task graph: one task per GPU event and per launch; edges for the order of each stream, launches,
the host's order and its waits, event waits, and start times that no call explains. A task starts its measured gap after
the last thing it waited for, so the graph replays to its own span; what no edge explains is listed. An edge that the
trace does not state is inferred from when kernels started: from as many layers as repeat it, or seen once. Waits for SMs
that most layers do not have are left out: with other times, those kernels would not have met.
--scale NAME=FACTOR (several combine):
  a phase              all kernels of that annotation, or phase of the mapping file
  compute              all kernels that compute
  transfer             dispatch and combine kernels, and collectives; barrier, dispatch, combine: these kernels
  kernel:CLASS         attention, gemm, grouped_gemm, memory, ...
  gaps                 what lies between a kernel and the last thing it waited for, from the GPU's first event on
  host                 the host's time between launches, and the latency of a launch
A kernel of which nothing is known that it waited for keeps its distance to the one that started before it.
--remove 'A->B' drops the waits of phase B for kernels of phase A on other streams; --remove REASON all of a kind.
Times keep the contention they were measured with: what becomes free is not given to other kernels.)";

}  // namespace

std::string replay_schema() {
  return output_schema("replay", "`moeline replay TRACE --format json`: as it was, and with something changed",
                       replay_fields(nullptr).described());
}

Command make_replay(Console& console) {
  auto options = std::make_shared<ReplayOptions>();
  return {
      .name = "replay",
      .about = "replay a measured trace, as it was and with one thing changed",
      .options = joined(
          {measured_input_options(options->input),
           {single_words(
                {"--scale", &options->scales, "NAME=FACTOR: transfer=1.4, barrier=0, kernel:grouped_gemm=0.8"}),
            single_words({"--remove", &options->removed, "'A->B': B no longer waits for A; or the name of a reason"}),
            {"--graph", &options->graph, "write the graph: .dot or .gv for Graphviz, else JSON", NotEmpty{}},
            force_option(options->force),
            format_option(options->format, {"table", "json"})}}),
      .footer = fmt::format("{}\n{}", kReplayDefinitions, kWindowHelp),
      .run = [options, &console] { replay_command(*options, console); }};
}

}  // namespace moeline
