#include "experiments/cli/output/simulate_output.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "experiments/cli/output/left_out_output.hpp"
#include "experiments/cli/output/memory_output.hpp"
#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/cli/output/scenario_json.hpp"
#include "experiments/cli/output/serve_output.hpp"
#include "experiments/report/fields.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/stack_choices.hpp"

namespace moeline {
namespace {

struct Simulated {
  const Run& run;
  const Beside& beside;
  std::vector<StackChoice> choices;
};

Simulated simulated(const Run& run, const Beside& beside) {
  const bool has_choices = kind_of(run) != RunKind::given_slots;
  return {run, beside, has_choices ? stack_choices(run.setup) : std::vector<StackChoice>{}};
}

Fields<TriedSchedule> tried_fields() {
  auto fields =
      Fields<TriedSchedule>().add("schedule", "what runs when", &TriedSchedule::schedule, {.words = schedule_names()});
  add_metric(fields, "step_ms", [](auto& tried) { return only_if(tried.ran(), tried.step_ms); });
  add_metric(fields, "ttft_ms", &TriedSchedule::ttft_ms);
  add_metric(fields, "memory_gib", &TriedSchedule::memory_gib);
  return fields
      .add("fits_memory", "the GPU has that much memory",
           [](auto& tried) { return only_if(tried.memory_gib.has_value(), tried.fits_memory); })
      .add("refused", "why it does not apply", [](auto& tried) { return if_any(tried.refused); });
}

// What a program asks first: which schedule it was, and where memory is known whether it suffices.
Fields<Simulated> verdict_fields(RunKind kind) {
  auto fields = output_fields<Simulated>();
  if (kind != RunKind::given_slots) {
    fields.add("fits_memory", "the GPU has as much memory as is needed; absent where memory is not known",
               [](auto& s) { return only_if(knows_memory(s.run), fits_memory(s.run)); });
  }
  return fields
      .add("schedule", "the schedule that was simulated", [](auto& s) { return s.run.setup.scenario.schedule; },
           {.words = schedule_names()})
      .list(
          "schedules", "With schedule auto: every schedule that was tried",
          [](auto& s) { return s.run.tried.empty() ? nullptr : &s.run.tried; }, tried_fields());
}

void add_scenario_fields(Fields<Simulated>& fields, RunKind kind) {
  if (kind == RunKind::given_slots) {
    fields.written(
        "scenario", "What of the scenario enters, with every default resolved",
        [](Json& json, const Simulated& s) { add_pipeline_scenario(json, s.run.setup.scenario); },
        [](Json& json) { describe_keys(json, "pipeline"); });
  } else {
    fields.written(
        "scenario", "The scenario with every default resolved",
        [](Json& json, const Simulated& s) { add_scenario(json, s.run.setup); },
        [](Json& json) { json.add("$ref", "#/definitions/scenario"); });
  }
}

Fields<StageResult> stage_fields() {
  auto fields = Fields<StageResult>()
                    .add("blocks", "what the stage holds", &StageResult::blocks)
                    .add("busy_us", "us in which it is busy, of each round or step", &StageResult::busy);
  add_metric(fields, "memory_gib", [](auto& stage) { return gib(stage.memory.total()); });
  return fields.all([](auto& stage) { return parts_of(stage.memory); }, parts_fields());
}

const std::vector<StageResult>* stages_of_layers(const Simulated& s) {
  return is_staged(s.run.setup.scenario) ? &s.run.inference()->stages : nullptr;
}

struct ClassOfLayer {
  const ClassTimes& times;
  double layers;  // that they are of
};

std::vector<ClassOfLayer> classes_of(const Simulated& s) {
  std::vector<ClassOfLayer> classes;
  for (const ClassTimes& times : s.run.steady().metrics.classes) classes.push_back({times, s.run.steady().layers});
  return classes;
}

Fields<ClassOfLayer> class_fields() {
  return Fields<ClassOfLayer>()
      .add("class", "class of kernels", [](auto& c) { return c.times.name; })
      .add("busy_us_per_layer", "us, union of its kernels", [](auto& c) { return to_us(c.times.busy) / c.layers; })
      .add("solo_us_per_layer", "us, sum of its kernels' times alone",
           [](auto& c) { return to_us(c.times.solo) / c.layers; });
}

constexpr const char* kBarrier = "us in barriers before its transfer";
constexpr const char* kWait = "us in which the compute stream waited for it";

Fields<PhaseTimes> phase_fields() {
  return Fields<PhaseTimes>()
      .add("rank", "rank that it ran on", &PhaseTimes::rank)
      .add("micro_batch", "micro-batch", &PhaseTimes::micro_batch)
      .add("layer", "layer, by position in order of execution; of a pipeline the chunk of the rank's model",
           &PhaseTimes::layer)
      .add("phase", "its name", &PhaseTimes::phase)
      .add("stream", "stream of the rank", &PhaseTimes::stream)
      .add("start_us", "us from the step's begin to its first kernel", &PhaseTimes::start)
      .add("end_us", "us to the end of its last kernel", &PhaseTimes::end)
      .add("busy_us", "us, union of its kernels", &PhaseTimes::busy)
      .add("solo_us", "us, sum of its kernels' times alone", &PhaseTimes::solo)
      .add("barrier_us", kBarrier, [](auto& p) { return only_if(p.barrier > Time::zero(), p.barrier); })
      .add("wait_us", kWait, [](auto& p) { return only_if(p.wait > Time::zero(), p.wait); });
}

// How the time of kernels is known, or of what runs between them.
struct KnownPrice {
  std::string family;
  Provenance provenance;
  double solo_us;
  std::optional<std::int64_t> kernels{};
  double corrected_us = 0;
  std::string kernel_set{}, note{};
  std::string choice{};  // of the stack, by which these kernels run
};

// What of a stack's choices a family is about; "": nothing.
const char* chosen_as(Family family) {
  switch (row_of(family).kind) {
    case FamilyKind::attention:
      return "attention";
    case FamilyKind::gemm:
      return name_of(family).ends_with("grouped") || name_of(family).ends_with("masked") ? "experts" : "";
    case FamilyKind::normal:
    case FamilyKind::low_latency:
      return "tokens to experts";
    default:
      return "";
  }
}

KnownPrice price_of(const ProvenanceUse& use) {
  constexpr double kRounding = 1e-6;  // of means over ranks
  return {.family = name_of(use.family),
          .provenance = use.provenance,
          .solo_us = use.solo_us,
          .kernels = static_cast<std::int64_t>(std::ceil(use.kernels - kRounding)),
          .corrected_us = use.corrected_us,
          .kernel_set = use.kernel_set,
          .note = use.note.text()};
}

std::vector<KnownPrice> known_prices(const Simulated& s) {
  const Run& run = s.run;
  std::vector<KnownPrice> prices;
  for (const ProvenanceUse& use : run.program.provenance) {
    prices.push_back(price_of(use));
    for (const StackChoice& choice : s.choices) {
      if (choice.what == chosen_as(use.family)) prices.back().choice = line_of(choice);
    }
  }
  const bool graph = run.setup.scenario.launch == Launch::graph;
  const bool borrowed = graph && kernel_gap_of(run.setup) != Constant::graph_gap;
  prices.push_back({.family = "launch_gap",
                    .provenance = borrowed ? Provenance::extrapolated : Provenance::interpolated,
                    .solo_us = run.program.gaps_us,
                    .note = borrowed ? "measured in an eager stream" : ""});
  if (run.program.waits_us > 0) {
    prices.push_back({.family = "wait_for_slowest_rank",
                      .provenance = Provenance::extrapolated,
                      .solo_us = run.program.waits_us,
                      .note = "an expectation, from the jitter of kernels"});
  }
  return prices;
}

Fields<KnownPrice> known_price_fields() {
  return Fields<KnownPrice>()
      .add("family", "family of kernels, launch_gap or wait_for_slowest_rank", &KnownPrice::family)
      .add("provenance", kHowKnown, [](auto& p) { return name_of(p.provenance); },
           {.words = words_to(Provenance::datasheet)})
      .add("kernels", "kernels of it", &KnownPrice::kernels)
      .add("solo_us", "us, sum of their times alone", &KnownPrice::solo_us)
      .add("corrected_us", "us of these whose curve was corrected",
           [](auto& p) { return only_if(p.corrected_us > 0, p.corrected_us); })
      .add("kernel_set", "whose constants", [](auto& p) { return if_any(p.kernel_set); })
      .add("provenance_note", "what speaks against the price", [](auto& p) { return if_any(p.note); })
      .add("choice", "why these kernels run, where a stack's habit or a key says so",
           [](auto& p) { return if_any(p.choice); });
}

Fields<StackChoice> stack_choice_fields() {
  return Fields<StackChoice>()
      .add("choice", "what was left open: tokens to experts, experts, attention, ...", &StackChoice::what)
      .add("taken", "what runs", &StackChoice::taken)
      .add("why", "by whose habit, or which key", &StackChoice::why)
      .add("key", "that overrules it", &StackChoice::key)
      .add("source", "of the habit", [](auto& c) { return if_any(c.source); })
      .add("layer_us", "us of a layer's kernels that it is about, alone",
           [](auto& c) { return only_if(c.layer_us > 0, c.layer_us); })
      .list("others", "other libraries' kernels in the same place", &StackChoice::others,
            Fields<OtherKernels>()
                .add("name", "the key's word", &OtherKernels::name)
                .add("layer_us", "us of a layer's kernels, alone", &OtherKernels::layer_us));
}

// The other end of a band: what a rested GPU would do.
Fields<Run> burst_fields() {
  Fields<Run> fields;
  for (const char* name : {"clock_mhz", "step_ms", "layer_us"}) add_metric(fields, *metric_named(name), Has::always);
  for (const char* name : {"tokens_per_s_per_gpu", "tpot_ms", "ttft_ms"})
    add_metric(fields, *metric_named(name), Has::sometimes);
  return fields;
}

Fields<Band> band_fields() {
  return Fields<Band>()
      .add("median", "median", &Band::median, {.least = kAny})
      .add("p5", "5 % quantile", &Band::p5, {.least = kAny})
      .add("p95", "95 % quantile", &Band::p95, {.least = kAny});
}

Fields<PhaseBand> phase_band_fields() {
  return Fields<PhaseBand>()
      .add("micro_batch", "micro-batch", &PhaseBand::micro_batch)
      .add("layer", "layer", &PhaseBand::layer)
      .add("phase", "its name", &PhaseBand::phase)
      .object("barrier_us", kBarrier, &PhaseBand::barrier_us, band_fields())
      .object("wait_us", kWait, &PhaseBand::wait_us, band_fields());
}

Fields<Samples> sample_fields() {
  return Fields<Samples>()
      .add("count", "draws", &Samples::count, {.least = 2})
      .map("metrics", "by metric", &Samples::metrics, band_fields())
      .list("phases", "of communication", &Samples::phases, phase_band_fields());
}

Fields<Simulated> simulate_fields(RunKind kind) {
  const auto run = [](auto& s) -> auto& { return s.run; };
  auto fields = verdict_fields(kind);
  add_scenario_fields(fields, kind);
  fields.object("metrics", "Of the step; means over the ranks that were simulated", run, metric_fields(kind));
  if (kind == RunKind::training_step) {
    fields.object("memory", "Of the fullest GPU", run, training_memory_fields()).all(run, step_fields());
  }
  if (kind == RunKind::layers) {
    fields.object(
        "memory", "Of the fullest GPU, in prefill and decode",
        [](auto& s) { return s.run.inference() != nullptr ? &s.run : nullptr; }, inference_memory_fields());
    fields.list("stages", "of pipelines in prefill and decode", stages_of_layers, stage_fields())
        .list("classes", "Kernels by class, per steady-state MoE layer", classes_of, class_fields());
  }
  fields.list(
      "phases", "Phases of the simulated ranks; of a whole pipeline its slots",
      [](auto& s) -> auto& { return s.run.phases; }, phase_fields());
  if (kind != RunKind::given_slots) {
    fields.list("provenance", "How the prices of the kernels are known, by family", known_prices, known_price_fields());
    fields.object(
        "carried_over", kCarriedOver, [](auto& s) { return carried_over(s.run); }, carried_over_fields());
    fields.list(
        "choices", "What the stack runs by habit; none where the kernel set is no stack's",
        [](auto& s) -> auto& { return s.choices; }, stack_choice_fields());
  }
  if (kind == RunKind::layers) {
    fields
        .object(
            "burst", "The same run at the SMs' highest clock; absent where power lowers no clock",
            [](auto& s) { return s.beside.burst; }, burst_fields())
        .object(
            "samples", "Of several draws", [](auto& s) { return s.beside.samples; }, sample_fields());
  }
  return fields.add(
      "warnings", "what the reader should know", [](auto& s) -> auto& { return s.run.warnings; });
}

}  // namespace

std::string to_json(const Run& run, const Beside& beside) {
  return simulate_fields(kind_of(run)).json(simulated(run, beside));
}

std::string simulate_schema() {
  const std::string schema = output_schema(
      "simulate",
      "`moeline simulate SCENARIO --format json`, and metrics.json of a run's folder: of a step or chunk, a whole step "
      "of training, a pipeline of given slots, or requests",
      {{"A step, or a chunk of training", simulate_fields(RunKind::layers).described()},
       {"A whole step of training", simulate_fields(RunKind::training_step).described()},
       {"A pipeline of slots of given length", simulate_fields(RunKind::given_slots).described()},
       {"Requests served one by one", served_requests()}},
      printed_keys());
  return with_keys(schema, Scenarios::printed);
}

std::string to_csv(const Run& run) {
  std::string text = "rank,micro_batch,layer,phase,stream,start_us,end_us,busy_us,solo_us\n";
  for (const PhaseTimes& p : run.phases) {
    text += fmt::format("{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f}\n", p.rank, p.micro_batch, p.layer, p.phase,
                        p.stream, to_us(p.start), to_us(p.end), to_us(p.busy), to_us(p.solo));
  }
  return text;
}

}  // namespace moeline
