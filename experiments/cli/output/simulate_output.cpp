#include "experiments/cli/output/simulate_output.hpp"

#include <fmt/format.h>

#include <cmath>

#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/scenario_json.hpp"
#include "experiments/cli/output/step_output.hpp"
#include "experiments/report/json.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/sustained_clock.hpp"

namespace moeline {
namespace {

// The other end of a band: what a rested GPU would do.
void add_burst(Json& json, const Run& burst) {
  json.open("burst");
  add_metric(json, *metric_named("clock_mhz"), clock_mhz(burst.setup));
  for (const char* name : {"step_ms", "layer_us", "tokens_per_s_per_gpu", "tpot_ms", "ttft_ms"}) {
    const Metric& metric = *metric_named(name);
    if (metric.applies(burst)) add_metric(json, metric, metric.value(burst));
  }
  json.close();
}

void add_classes(Json& json, const Run& run) {
  json.open_list("classes");
  for (const ClassTimes& times : run.steady().metrics.classes) {
    json.open().add("class", times.name).add("busy_us_per_layer", to_us(times.busy) / run.steady().layers);
    json.add("solo_us_per_layer", to_us(times.solo) / run.steady().layers).close();
  }
  json.close_list();
}

void add_stages(Json& json, const InferenceResult& result) {
  json.open_list("stages");
  for (const StageResult& stage : result.stages) {
    json.open().add("blocks", stage.blocks).add("busy_us", to_us(stage.busy));
    json.add("memory_gib", gib(stage.memory.total()));
    add_memory_parts(json, stage.memory);
    json.close();
  }
  json.close_list();
}

void add_phases(Json& json, const Run& run) {
  json.open_list("phases");
  for (const PhaseTimes& phase : run.phases) {
    json.open().add("rank", phase.rank).add("micro_batch", phase.micro_batch).add("layer", phase.layer);
    json.add("phase", phase.phase).add("stream", phase.stream);
    json.add("start_us", to_us(phase.start)).add("end_us", to_us(phase.end));
    json.add("busy_us", to_us(phase.busy)).add("solo_us", to_us(phase.solo));
    if (phase.barrier > Time::zero()) json.add("barrier_us", to_us(phase.barrier));
    if (phase.wait > Time::zero()) json.add("wait_us", to_us(phase.wait));
    json.close();
  }
  json.close_list();
}

void add_provenance(Json& json, const Run& run) {
  constexpr double kRounding = 1e-6;  // of means over ranks
  json.open_list("provenance");
  for (const ProvenanceUse& use : run.program.provenance) {
    json.open().add("family", name_of(use.family)).add("provenance", name_of(use.provenance));
    json.add("kernels", static_cast<std::int64_t>(std::ceil(use.kernels - kRounding))).add("solo_us", use.solo_us);
    if (use.corrected_us > 0) json.add("corrected_us", use.corrected_us);
    if (!use.kernel_set.empty()) json.add("kernel_set", use.kernel_set);
    if (!use.note.empty()) json.add("provenance_note", use.note.text());
    json.close();
  }
  const Program& program = run.program;
  const bool graph = run.setup.scenario.launch == Launch::graph;
  const bool borrowed = graph && kernel_gap_of(run.setup) != Constant::graph_gap;
  json.open().add("family", "launch_gap").add("provenance", borrowed ? "extrapolated" : "interpolated");
  json.add("solo_us", program.gaps_us);
  if (borrowed) json.add("provenance_note", "measured in an eager stream");
  json.close();
  if (program.waits_us > 0) {
    json.open().add("family", "wait_for_slowest_rank").add("provenance", "extrapolated");
    json.add("solo_us", program.waits_us).add("provenance_note", "an expectation, from the jitter of kernels").close();
  }
  json.close_list();
}

void add_band(Json& json, const char* key, const Band& band) {
  json.open(key).add("median", band.median).add("p5", band.p5).add("p95", band.p95).close();
}

void add_samples(Json& json, const Samples& samples) {
  json.open("samples").add("count", samples.count).open("metrics");
  for (const MetricBand& metric : samples.metrics) add_band(json, metric.name.c_str(), metric.band);
  json.close().open_list("phases");
  for (const PhaseBand& phase : samples.phases) {
    json.open().add("micro_batch", phase.micro_batch).add("layer", phase.layer).add("phase", phase.phase);
    add_band(json, "barrier_us", phase.barrier_us);
    add_band(json, "wait_us", phase.wait_us);
    json.close();
  }
  json.close_list().close();
}

// What a program asks first: which schedule it was, and where memory is known whether it suffices.
void add_verdict(Json& json, const Run& run) {
  if (knows_memory(run)) json.flag("fits_memory", fits_memory(run));
  json.add("schedule", run.setup.scenario.schedule);
}

void add_tried(Json& json, const Run& run) {
  json.open_list("schedules");
  for (const TriedSchedule& tried : run.tried) {
    json.open().add("schedule", tried.schedule);
    if (tried.ran()) {
      json.add("step_ms", tried.step_ms, 6);
      if (tried.ttft_ms) json.add("ttft_ms", *tried.ttft_ms);
      if (tried.memory_gib) json.add("memory_gib", *tried.memory_gib).flag("fits_memory", tried.fits_memory);
    } else {
      json.add("refused", tried.refused);
    }
    json.close();
  }
  json.close_list();
}

}  // namespace

std::string to_json(const Run& run, const Beside& beside) {
  Json json;
  json.open().add("schema_version", 1);
  add_verdict(json, run);
  if (!run.tried.empty()) add_tried(json, run);
  if (run.step() != nullptr) {
    add_scenario(json, run.setup);
    add_metrics(json, run);
    add_step(json, run);
    add_phases(json, run);
    add_provenance(json, run);
  } else if (run.is_pipeline()) {
    add_pipeline_scenario(json, run.setup.scenario);
    add_metrics(json, run);
    add_phases(json, run);
  } else {
    add_scenario(json, run.setup);
    add_metrics(json, run);
    if (is_staged(run.setup.scenario)) add_stages(json, *run.inference());
    add_classes(json, run);
    add_phases(json, run);
    add_provenance(json, run);
  }
  if (beside.burst != nullptr) add_burst(json, *beside.burst);
  if (beside.samples != nullptr) add_samples(json, *beside.samples);
  json.add("warnings", run.warnings);
  return json.close().text();
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
