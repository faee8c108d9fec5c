// A whole step of training as a program reads it.
#include "experiments/cli/output/known_time.hpp"
#include "experiments/cli/output/step_output.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "schedules/pipeline/stages.hpp"

namespace moeline {
namespace {

void add_memory(Json& json, const StepMemory& m) {
  json.add("weights_gib", gib(m.weights)).add("gradients_gib", gib(m.gradients));
  json.add("optimizer_gib", gib(m.optimizer)).add("activations_gib", gib(m.activations));
  json.add("workspace_gib", gib(m.workspace)).add("communication_gib", gib(m.communication));
  json.add("total_gib", gib(m.total()));
}

void add_parts(Json& json, const StepParts& parts) {
  for (const NamedPart& part : kStepParts) json.add(part.key, to_us(parts.*part.time) / 1e3, 6);
}

void add_step_metrics(Json& json, const Run& run) {
  const Metrics& m = run.metrics;
  json.open("metrics").add("step_ms", to_us(m.span) / 1e3, 6);
  add_parts(json, run.step()->mean);
  if (is_whole_step(run)) {
    json.add("tokens_per_s_per_gpu", tokens_per_s(run));
    json.add("gpu_hours_per_trillion_tokens", gpu_hours_per_trillion_tokens(run));
    json.add("flops_per_token", flops_per_token(run, true), 0);
    json.add("flops_per_token_non_causal", flops_per_token(run, false), 0);
    json.add("mfu_non_causal", mfu_non_causal(run), 5);
  }
  json.add("mfu", mfu(run), 5);
  json.add("compute_busy_us", to_us(m.compute_busy)).add("comm_busy_us", to_us(m.comm_busy));
  json.add("exposed_comm_us", to_us(m.exposed_comm)).add("overlap_fraction", m.overlap_fraction(), 5);
  json.add("bubble_fraction", bubble_fraction(run), 5).add("sm_use", m.sm_use, 5);
  if (run.setup.scenario.level == Level::by_operator) json.add("barrier_us", barrier_us(run));
  if (clock_matters(run.setup)) json.add("clock_mhz", clock_mhz(run.setup));
  json.add("memory_gib", gib(memory_bytes(run)));
  add_known_shares(json, known_time(run));
  json.add("ranks", run.program.ranks);
  json.add("tasks", run.program.graph.size()).add("simulate_ms", run.simulate_ms);
  json.close();
}

// Peak and course of each rank's memory.
void add_ranks(Json& json, const Run& run) {
  json.open_list("ranks");
  for (std::size_t rank = 0; rank < run.step()->ranks.size(); ++rank) {
    const RankStep& step = run.step()->ranks[rank];
    json.open().add("rank", rank);
    add_parts(json, step.parts);
    json.open("memory");
    add_memory(json, step.peak);
    if (step.host > 0) json.add("host_gib", gib(step.host));
    json.add("peak_at_ms", to_us(step.peak_at) / 1e3, 6).add("most_activations", step.most_passes);
    const auto over_time = [&](const char* key, double MemoryChange::*bytes) {  // ms, GiB
      json.open_list(key);
      for (const MemoryChange& change : step.memory) json.item({to_us(change.at) / 1e3, gib(change.*bytes)}, 3);
      json.close_list();
    };
    over_time("activations_over_time", &MemoryChange::activations);
    if (run.setup.scenario.training.offload_optimizer) over_time("optimizer_over_time", &MemoryChange::optimizer);
    json.close().close();
  }
  json.close_list();
}

}  // namespace

void add_step(Json& json, const Run& run) {
  add_step_metrics(json, run);
  std::vector<std::string> stages;
  for (const StageBlocks& blocks : run.step()->layout.stages) stages.push_back(describe(blocks));
  json.add("stages", stages);
  add_ranks(json, run);
}

}  // namespace moeline
