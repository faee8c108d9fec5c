#include "experiments/cli/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "engine/simulate.hpp"

namespace moeline {
namespace {

// Mean of the given rows, relative to balanced routing of the same tokens; 1 where none are given.
double rows_over_balanced(const Setup& setup) {
  const Routing& routing = setup.scenario.routing;
  if (routing.distribution != "given") return 1;
  const LayerWork work = setup.layer_work(true, 0);
  const double balanced = balanced_load(setup.model, static_cast<int>(work.tokens()), work.ep, setup.spread).rows;
  double sum = 0;
  for (const auto& rows : {routing.forward_rows, routing.backward_rows})
    sum += std::accumulate(rows.begin(), rows.end(), 0.0);
  return sum / (2.0 * setup.scenario.layers) / balanced;
}

std::vector<std::string> warnings_of(const Run& run) {
  std::vector<std::string> warnings;
  for (const ProvenanceUse& use : run.program.provenance) {
    if (use.provenance == Provenance::roofline) {
      warnings.push_back(fmt::format("{}: no measurement of this family; priced at the roofline", name_of(use.family)));
    }
  }
  if (const double share = run.extrapolated_share(); share > 0) {
    warnings.push_back(
        fmt::format("{:.1f} % of the solo time is extrapolated: sizes or SM counts outside what the "
                    "kernel set was fitted on, or another machine (listed under provenance in --format json)",
                    100 * share));
  }
  const Scenario& s = run.setup.scenario;
  if (s.parallelism.pp > 1 || s.workload.global_batch_size > 0) {
    warnings.emplace_back(
        "pp and global_batch_size do not enter: this is the work of one stage, without pipeline communication, bubbles "
        "and optimizer");
  }
  if (const double share = rows_over_balanced(run.setup); share < 0.7 || share > 1.4) {
    warnings.push_back(fmt::format("routing.rows are {:.2f} of what this many tokens give when balanced", share));
  }
  if (s.layers > run.setup.model.moe_layers()) {
    warnings.push_back(
        fmt::format("{} layers simulated; the model has {} MoE layers", s.layers, run.setup.model.moe_layers()));
  }
  return warnings;
}

}  // namespace

double Run::layer_us() const {
  const Scenario& s = setup.scenario;
  const bool equal_layers = s.routing.distribution == "balanced";
  if (!equal_layers || s.layers < 3) return to_us(metrics.span) / s.layers;
  const auto period = [&](const std::string& name) {
    Time last{};
    Time before{};
    for (const PhaseTimes& phase : phases) {
      if (phase.phase != name) continue;
      before = last;
      last = phase.start;
    }
    return to_us(last - before);
  };
  const bool one_pass = s.schedule != "sequential";  // forward and backward layers alternate
  return one_pass ? period("attn(F)") : period("attn(F)") + period("attn(B)");
}

double Run::mfu() const { return program.model_flops / (to_us(metrics.span) * setup.machine.facts.bf16_tflops * 1e6); }

double Run::solo_us() const {
  double sum = 0;
  for (const ProvenanceUse& use : program.provenance) sum += use.solo_us;
  return sum;
}

double Run::lumped_share() const { return program.lumped_us / std::max(solo_us(), 1.0); }

double Run::extrapolated_share() const {
  double outside = 0;
  for (const ProvenanceUse& use : program.provenance) {
    if (use.provenance == Provenance::extrapolated) outside += use.solo_us;
  }
  return outside / std::max(solo_us(), 1.0);
}

bool Run::all_measured() const {
  return std::none_of(program.provenance.begin(), program.provenance.end(), [](const ProvenanceUse& use) {
    return use.provenance == Provenance::extrapolated || use.provenance == Provenance::roofline;
  });
}

Run run_scenario(const Setup& setup, bool record_changes) {
  Program program = build_program(setup);
  const auto before = std::chrono::steady_clock::now();
  Timeline timeline = simulate(program.graph, {.record_changes = record_changes});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
  Run run{setup, std::move(program), std::move(timeline), {}, {}, took.count(), {}};
  run.metrics = measure(run.program.graph, run.timeline);
  run.phases = phase_times(run.program.graph, run.timeline);
  run.warnings = warnings_of(run);
  return run;
}

}  // namespace moeline
