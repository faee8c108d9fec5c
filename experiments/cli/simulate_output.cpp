#include "experiments/cli/simulate_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/cli/json.hpp"

namespace moeline {
namespace {

void add_scenario(Json& json, const Setup& setup) {
  const Scenario& s = setup.scenario;
  json.open("scenario");
  json.add("schema", 1).add("model", s.model).add("hardware", s.hardware).add("kernels", s.kernels);
  json.add("schedule", s.schedule);
  json.open("parallelism");
  json.add("tp", s.parallelism.tp).add("pp", s.parallelism.pp).add("ep", s.parallelism.ep).add("dp", s.parallelism.dp);
  json.close();
  json.open("workload").add("phase", s.workload.phase).add("micro_batch_size", s.workload.micro_batch_size);
  json.add("seq_len", s.workload.seq_len);
  if (s.workload.global_batch_size > 0) json.add("global_batch_size", s.workload.global_batch_size);
  json.close();
  json.open("comm").add("mode", s.comm.mode).add("num_sms", s.comm.num_sms);
  json.add("dispatch_dtype", s.comm.dispatch_dtype).add("combine_dtype", s.comm.combine_dtype).close();
  json.open("routing").add("distribution", s.routing.distribution);
  if (!s.routing.forward_rows.empty()) {
    json.open("rows").add("forward", s.routing.forward_rows).add("backward", s.routing.backward_rows).close();
  }
  json.close();
  json.add("layers", s.layers).add("overlap", s.overlap).add("launch", s.launch).add("seed", s.seed);
  json.add("hardware_overrides", s.hardware_overrides);
  json.close();
}

void add_metrics(Json& json, const Run& run) {
  const Metrics& m = run.metrics;
  json.open("metrics");
  json.add("step_ms", to_us(m.span) / 1e3, 6).add("layer_us", run.layer_us()).add("mfu", run.mfu(), 5);
  json.add("compute_busy_us", to_us(m.compute_busy)).add("comm_busy_us", to_us(m.comm_busy));
  json.add("exposed_comm_us", to_us(m.exposed_comm)).add("overlap_fraction", m.overlap_fraction(), 5);
  json.add("bubble_fraction", m.bubble_fraction(), 5).add("tasks", run.program.graph.size());
  json.add("simulate_ms", run.simulate_ms);
  json.close();
}

void add_phases(Json& json, const Run& run) {
  json.open_list("phases");
  for (const PhaseTimes& phase : run.phases) {
    json.open().add("rank", phase.rank).add("micro_batch", phase.micro_batch).add("layer", phase.layer);
    json.add("phase", phase.phase).add("stream", phase.stream);
    json.add("start_us", to_us(phase.start)).add("end_us", to_us(phase.end));
    json.add("busy_us", to_us(phase.busy)).add("solo_us", to_us(phase.solo)).close();
  }
  json.close_list();
}

void add_provenance(Json& json, const Run& run) {
  json.open_list("provenance");
  for (const ProvenanceUse& use : run.program.provenance) {
    json.open().add("family", name_of(use.family)).add("provenance", name_of(use.provenance));
    json.add("kernels", use.kernels).add("solo_us", use.solo_us).add("kernel_set", run.setup.kernels.name);
    json.close();
  }
  json.close_list();
}

// Mean span of each phase over the layers, in order of first appearance.
std::vector<std::pair<std::string, double>> mean_spans(const std::vector<PhaseTimes>& phases) {
  std::vector<std::pair<std::string, double>> means;
  std::map<std::string, std::pair<double, int>> sums;
  for (const PhaseTimes& phase : phases) {
    auto& [sum, count] = sums[phase.phase];
    if (count == 0) means.emplace_back(phase.phase, 0);
    sum += to_us(phase.span());
    ++count;
  }
  for (auto& [name, mean] : means) mean = sums[name].first / sums[name].second;
  return means;
}

std::string phase_table(const Run& run, const Run* baseline) {
  std::map<std::string, double> beside;
  if (baseline != nullptr) {
    for (const auto& [phase, us] : mean_spans(baseline->phases)) beside[phase] = us;
  }
  std::string text = fmt::format("{:<14} {:>12}", "phase", "us per layer");
  if (baseline != nullptr) text += fmt::format(" {:>12} {:>9}", "sequential", "ratio");
  text += "\n";
  for (const auto& [phase, us] : mean_spans(run.phases)) {
    text += fmt::format("{:<14} {:>12.0f}", phase, us);
    if (baseline != nullptr) text += fmt::format(" {:>12.0f} {:>9.2f}", beside[phase], us / beside[phase]);
    text += "\n";
  }
  return text;
}

std::string metric_table(const Run& run, const Run* baseline) {
  std::string text;
  const auto row = [&](const char* name, const char* format, auto value) {
    text += fmt::format("{:<26} ", name) + fmt::format(fmt::runtime(format), value(run));
    if (baseline != nullptr) text += fmt::format(" {}", fmt::format(fmt::runtime(format), value(*baseline)));
    text += "\n";
  };
  if (baseline != nullptr) {
    text += fmt::format("{:<26} {:>12} {:>12}\n", "", run.setup.scenario.schedule, "sequential");
  }
  row("step, ms", "{:>12.3f}", [](const Run& r) { return to_us(r.metrics.span) / 1e3; });
  row("layer, us", "{:>12.0f}", [](const Run& r) { return r.layer_us(); });
  row("compute busy, us", "{:>12.0f}", [](const Run& r) { return to_us(r.metrics.compute_busy); });
  row("communication busy, us", "{:>12.0f}", [](const Run& r) { return to_us(r.metrics.comm_busy); });
  row("exposed communication, us", "{:>12.0f}", [](const Run& r) { return to_us(r.metrics.exposed_comm); });
  row("overlap, %", "{:>12.1f}", [](const Run& r) { return 100 * r.metrics.overlap_fraction(); });
  row("MFU of BF16 peak, %", "{:>12.1f}", [](const Run& r) { return 100 * r.mfu(); });
  row("extrapolated, %", "{:>12.1f}", [](const Run& r) { return 100 * r.extrapolated_share(); });
  return text;
}

std::string class_table(const Run& run) {
  std::string text = fmt::format("{:<14} {:>14} {:>14}\n", "class", "busy us/layer", "solo us/layer");
  const double layers = run.setup.scenario.layers;
  for (const ClassTimes& times : run.metrics.classes) {
    text +=
        fmt::format("{:<14} {:>14.0f} {:>14.0f}\n", times.name, to_us(times.busy) / layers, to_us(times.solo) / layers);
  }
  return text;
}

}  // namespace

std::string to_json(const Run& run) {
  Json json;
  json.open().add("schema_version", 1);
  add_scenario(json, run.setup);
  add_metrics(json, run);
  json.open_list("classes");
  const double layers = run.setup.scenario.layers;
  for (const ClassTimes& times : run.metrics.classes) {
    json.open().add("class", times.name).add("busy_us_per_layer", to_us(times.busy) / layers);
    json.add("solo_us_per_layer", to_us(times.solo) / layers).close();
  }
  json.close_list();
  add_phases(json, run);
  add_provenance(json, run);
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

std::string to_table(const Run& run, const Run* baseline) {
  const Scenario& s = run.setup.scenario;
  std::string text = fmt::format("{}: {} on {} ({}), EP{}, {} tokens per GPU, {} layers, {} communication SMs\n\n",
                                 s.schedule, s.model, s.hardware, s.kernels, s.parallelism.ep,
                                 s.workload.micro_batch_size * s.workload.seq_len, s.layers, s.comm.num_sms);
  text += metric_table(run, baseline) + "\n" + phase_table(run, baseline) + "\n" + class_table(run);
  text += fmt::format("\n{} tasks; {} fitted constants; {:.1f} % of the solo time in kernels of a fixed cost\n",
                      run.program.graph.size(), kConstants, 100 * run.lumped_share());
  return text;
}

}  // namespace moeline
