#include "experiments/plan_training/training_job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "architecture/architecture.hpp"
#include "experiments/plan/plan_keys.hpp"
#include "schedules/scenario/schedule_kinds.hpp"

namespace moeline {
namespace {

constexpr int kMostGpus = 1 << 17;

std::vector<std::string> pipelines() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (kind.pipeline) names.push_back(kind.name);
  }
  return names;
}

std::vector<std::string> words(const Spec& spec, const char* key, const char* what,
                               const std::vector<std::string>& known) {
  if (!spec.has(key)) return {};
  std::vector<std::string> found;
  for (const std::string& word : each_once(spec, key, spec.texts(key))) {
    found.push_back(at_key(spec, key, [&] { return expect_name(what, word, known); }));
  }
  return found;
}

LayoutSpace read_space(const Spec& spec) {
  spec.expect({"tp", "cp", "pp", "ep", "micro_batch_size", "virtual_pp", "schedule", "overlap", "recompute", "offload",
               "offload_optimizer"});
  LayoutSpace space;
  space.tp = integers_or_none(spec, "tp", 1, 4096);
  space.cp = integers_or_none(spec, "cp", 1, 4096);
  space.pp = integers_or_none(spec, "pp", 1, 4096);
  space.ep = integers_or_none(spec, "ep", 1, 4096);
  space.micro_batch_size = integers_or_none(spec, "micro_batch_size", 1, 1 << 20);
  space.virtual_pp = integers_or_none(spec, "virtual_pp", 2, 1024);
  space.schedule = words(spec, "schedule", "pipeline", pipelines());
  space.overlap = words(spec, "overlap", "overlap", {"none", "combined"});
  if (spec.has("recompute")) space.recompute = each_once(spec, "recompute", spec.texts("recompute"));
  if (spec.has("offload")) space.offload = each_once(spec, "offload", spec.texts("offload"));
  if (spec.has("offload_optimizer")) {
    space.offload_optimizer.clear();
    for (const std::string& word : words(spec, "offload_optimizer", "choice", {"false", "true"})) {
      space.offload_optimizer.push_back(word == "true");
    }
  }
  return space;
}

// What the search itself writes into a scenario.
void check_changes(const Spec& spec, const std::vector<std::string>& changes) {
  static const std::vector<std::string> kDecided = {"schema",      "model",    "hardware", "kernels", "schedule",
                                                    "parallelism", "workload", "overlap",  "level",   "speed_spread",
                                                    "layers",      "stages",   "samples",  "ranks",   "slot_costs_ms"};
  for (const std::string& change : changes) {
    const std::string key = change.substr(0, change.find_first_of("=."));
    const bool recompute = change.starts_with("training.recompute") || change.starts_with("training=");
    if (recompute || std::find(kDecided.begin(), kDecided.end(), key) != kDecided.end()) {
      throw spec.error("set",
                       fmt::format("has '{}', which the plan itself decides", change.substr(0, change.find('='))));
    }
  }
}

}  // namespace

bool is_training_job(const std::filesystem::path& file) { return Spec::load(file).has("training"); }

TrainingJob load_training_job(const std::filesystem::path& file) {
  const Spec spec = Spec::load(file);
  spec.expect({"schema", "model", "hardware", "training", "memory_reserve", "search", "set"});
  (void)spec.integer("schema", 1, 1);
  TrainingJob job;
  job.file = file;
  job.model = spec.text("model");
  const Architecture model = at_key(spec, "model", [&] { return load_architecture(job.model, file.string()); });
  job.model = spelt_as(model.name, job.model);
  job.hardware = read_plan_hardware(spec, file);
  const Spec training = spec.map("training");
  training.expect({"gpus", "global_batch_size", "seq_len", "tokens"});
  job.gpus = training.integer("gpus", 1, kMostGpus);
  job.global_batch_size = training.integer("global_batch_size", 1, 1 << 30);
  job.seq_len = training.integer("seq_len", 1, 1 << 24);
  if (training.has("tokens")) job.tokens = training.number("tokens", 1, 1e18);
  if (spec.has("memory_reserve")) job.memory_reserve = spec.number("memory_reserve", 0, 0.9);
  job.space = read_space(spec.map_or_empty("search"));
  const LayoutSpace& space = job.space;
  check_combinations(spec, "search",
                     {space.tp.size(), space.cp.size(), space.pp.size(), space.ep.size(), space.micro_batch_size.size(),
                      space.virtual_pp.size(), space.schedule.size(), space.overlap.size(), space.recompute.size(),
                      space.offload.size(), space.offload_optimizer.size()});
  if (spec.has("set")) job.set = spec.texts("set");
  check_changes(spec, job.set);
  return job;
}

}  // namespace moeline
