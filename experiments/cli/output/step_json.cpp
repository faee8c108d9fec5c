// A whole step of training as a program reads it.
#include "experiments/cli/output/step_output.hpp"
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
  std::vector<std::string> stages;
  for (const StageBlocks& blocks : run.step()->layout.stages) stages.push_back(describe(blocks));
  json.add("stages", stages);
  add_ranks(json, run);
}

}  // namespace moeline
