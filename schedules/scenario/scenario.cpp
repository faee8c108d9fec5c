#include "schedules/scenario/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "architecture/draft.hpp"
#include "base/file.hpp"
#include "base/spec.hpp"
#include "schedules/scenario/comm_parts.hpp"
#include "schedules/scenario/expert_parts.hpp"
#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/launch_parts.hpp"
#include "schedules/scenario/parallelism_parts.hpp"
#include "schedules/scenario/pipeline_parts.hpp"
#include "schedules/scenario/precision_parts.hpp"
#include "schedules/scenario/scenario_parts.hpp"
#include "schedules/scenario/stage_parts.hpp"
#include "schedules/scenario/training_model.hpp"
#include "schedules/scenario/training_parts.hpp"

namespace moeline {
namespace {

constexpr const char* kOverrides = "hardware_overrides";

// What is set on the command line comes after the file's own, and replaces it.
std::vector<std::string> overrides_of(const Spec& spec, const std::vector<std::string>& set) {
  if (!spec.has(kOverrides)) return set;
  std::vector<std::string> overrides = spec.texts(kOverrides);
  overrides.insert(overrides.end(), set.begin(), set.end());
  return overrides;
}

void check_overrides(const Spec& spec, const Scenario& s) {
  if (!spec.has(kOverrides)) return;
  (void)at_key(spec, "hardware", [&] { return known_profile(s.hardware, {}, s.file); });
  try {
    (void)known_profile(s.hardware, spec.texts(kOverrides), s.file);
  } catch (const SpecError& error) {
    throw spec.error(kOverrides, std::string("is refused: ") + error.what());
  }
}

void read_layers(const Spec& spec, const Architecture& model, Scenario& scenario) {
  const bool all = !spec.has("layers") || same_but_for_case(spec.text("layers"), "all");
  // Training's chunk and its sequential schedule are of MoE layers alone.
  scenario.whole_model = all && (scenario.phase() != WorkloadPhase::train || scenario.kind().pipeline);
  scenario.layers = all ? model.main_layers() : keys::top().at("layers").integer(spec);
}

void check_model(const Spec& spec, const Setup& setup) {
  const Architecture& model = setup.model;
  const bool dense = model.n_routed_experts == 0;
  if (dense && !spec.map_or_empty("routing").keys().empty()) {
    throw spec.error("routing", fmt::format("does not apply: '{}' has no routed experts", model.name));
  }
  if (dense && !setup.scenario.kind().plan.empty()) {
    throw spec.error("schedule", fmt::format("{} overlaps the all-to-all of MoE layers, and '{}' has none",
                                             setup.scenario.schedule, model.name));
  }
}

std::string read_schedule(const Spec& spec) {
  std::vector<std::string> names = schedule_names();
  names.emplace_back(kAutoSchedule);
  const std::string written = spec.text("schedule");
  std::string schedule = at_key(spec, "schedule", [&] { return expect_name("schedule", written, names); });
  if (schedule == kAutoSchedule) throw spec.error("schedule", "is auto, and one is needed here");
  return schedule;
}

void read_model(const Spec& spec, Setup& setup) {
  Scenario& s = setup.scenario;
  s.model = spec.text("model");
  setup.model = at_key(spec, "model", [&] { return load_architecture(s.model, s.file); });
  s.model = spelt_as(setup.model.name, s.model);
}

std::shared_ptr<const HardwareProfile> read_machine(const Spec& spec, Setup& setup) {
  Scenario& s = setup.scenario;
  s.hardware = spec.text("hardware");
  s.kernels = spec.text_or("kernels", "");
  check_overrides(spec, s);
  auto profile = at_key(spec, "hardware", [&] { return known_profile(s.hardware, s.hardware_overrides, s.file); });
  s.hardware = spelt_as(profile->name, s.hardware);
  setup.machine = {profile->name, profile->facts};
  return profile;
}

// By default the newest set that has kernels for this phase itself.
void read_kernels(const Spec& spec, const std::shared_ptr<const HardwareProfile>& profile, Setup& setup) {
  Scenario& s = setup.scenario;
  if (profile->kernel_sets.empty() && profile->carried_over.empty()) {
    throw spec.error("hardware", fmt::format("'{}' has no kernel set; see `moeline calibrate`", s.hardware));
  }
  const bool of_deepseek = s.phase() == WorkloadPhase::train && !s.training.by_megatron();
  const std::string needed = of_deepseek ? "attention_backward" : "";
  setup.prices = at_key(spec, "kernels", [&] { return prices_of(profile, s.kernels, needed); });
  s.kernels = setup.kernels().name;
}

std::vector<std::string> overlap_words(const ScheduleKind& kind) {
  if (kind.may_combine()) return {"default", "none", kCombined};
  if (kind.pipeline && !kind.plan.empty()) return {"default", "none"};
  return {"default"};
}

// A word, or the path of a plan.
std::string read_overlap(const Spec& spec, const Scenario& scenario) {
  const std::string written = spec.text_or("overlap", "default");
  const ScheduleKind& kind = scenario.kind();
  if (const std::optional<std::string> word = known_name(written, overlap_words(kind))) return *word;
  if (kind.plan.empty() && !kind.may_combine()) {
    throw spec.error("overlap", fmt::format("does not apply to the schedule {}", scenario.schedule));
  }
  if (same_but_for_case(written, "none")) {
    throw spec.error("overlap", fmt::format("none belongs to pipelines; {} has the schedule sequential beside it",
                                            scenario.schedule));
  }
  if (same_but_for_case(written, kCombined)) {
    throw spec.error("overlap", fmt::format("combined belongs to 1f1b and interleaved-1f1b; {} overlaps by a plan",
                                            scenario.schedule));
  }
  std::filesystem::path plan = beside(scenario.file, written);
  std::error_code failed;
  if (!std::filesystem::exists(plan, failed)) throw spec.error("overlap", fmt::format("'{}': no such file", written));
  return plan.string();
}

void check_overlap(const Spec& spec, const Scenario& scenario) {
  if (scenario.kind().may_combine() && overlaps_passes(scenario) && !sends_tokens(scenario.comm.mode)) {
    throw spec.error("overlap", "hides an all-to-all behind another pass, and there is none: ep is 1");
  }
}

// A pipeline of given slots needs neither model nor machine, but what it names must be there.
void read_pipeline(const Spec& spec, Setup& setup) {
  Scenario& s = setup.scenario;
  s.workload = read_workload(spec.map("workload"), s.kind());
  if (s.kind().may_combine()) s.overlap = read_overlap(spec, s);
  s.slot_costs = read_slot_costs(spec, s);
  s.parallelism = read_pipeline_parallelism(spec.map("parallelism"), s.kind());
  check_pipeline(spec, s);
  if (spec.has("model")) read_model(spec, setup);
  if (spec.has("hardware") || spec.has("kernels") || !s.hardware_overrides.empty()) {
    const auto profile = read_machine(spec, setup);
    if (spec.has("kernels")) read_kernels(spec, profile, setup);
  }
  spec.map_or_empty("comm").expect(keys::comm().names());
  spec.map_or_empty("routing").expect(keys::routing().names());
  check_training_keys(spec, s.kind());
  for (const keys::Row& key : keys::top().rows()) {
    const bool enters = key.enters_slots || (key.name == "overlap" && s.kind().may_combine());
    if (spec.has(key.name) && !enters) s.without_use.push_back(key.name);
  }
}

}  // namespace

bool is_training_step(const Scenario& scenario) { return scenario.kind().pipeline.has_value() && !scenario.slot_costs; }

bool overlaps_passes(const Scenario& scenario) {
  const ScheduleKind& kind = scenario.kind();
  if (scenario.phase() != WorkloadPhase::train || scenario.overlap == "none") return false;
  return kind.may_combine() ? scenario.overlap != "default" : !kind.plan.empty();
}

StageSplit stage_split(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  return {p.ep, p.tp, p.moe_tp, scenario.training.operators};
}

bool is_staged(const Scenario& scenario) {
  return scenario.parallelism.pp > 1 && scenario.phase() != WorkloadPhase::train;
}

int passes(const Scenario& scenario) {
  if (!is_staged(scenario)) return 1;
  const DecodeWorkload* decode = decode_of(scenario.workload);
  return decode != nullptr ? std::min(scenario.parallelism.pp, decode->batch_size)
                           : steps_per_prompt(*prefill_of(scenario.workload));
}

int micro_batches(const Scenario& scenario) {
  const TrainWorkload& w = as_train(scenario.workload);
  return static_cast<int>(w.global_batch_size / (std::int64_t{scenario.parallelism.dp} * w.micro_batch_size));
}

double mean_seq_len(const Scenario& scenario) {
  const TrainWorkload& w = as_train(scenario.workload);
  if (w.seq_lens.empty()) return w.seq_len;
  double tokens = 0;
  const int count = micro_batches(scenario);
  for (int i = 0; i < count; ++i) tokens += seq_len_of(w, i);
  return tokens / count;
}

Setup load_setup(const std::filesystem::path& path, const std::vector<std::string>& assignments) {
  return read_setup(Spec::load(path), assignments);
}

Setup read_setup(Spec spec, const std::vector<std::string>& assignments) {
  const std::vector<std::string> hardware_overrides = apply_changes(assignments, spec);
  return read_scenario(spec, hardware_overrides);
}

std::vector<std::string> apply_changes(const std::vector<std::string>& assignments, Spec& spec) {
  constexpr std::string_view kHardware = "hardware.";
  std::vector<std::string> overrides;
  for (const std::string& assignment : assignments) {
    if (assignment.starts_with(kHardware)) {
      overrides.push_back(assignment.substr(kHardware.size()));
    } else {
      spec.set(assignment);
    }
  }
  return overrides;
}

void check_keys(const Spec& spec) {
  spec.expect(keys::top().names());
  (void)keys::top().at("schema").integer(spec);
}

bool leaves_schedule_open(const Spec& spec) {
  const std::vector<std::string> words = spec.words("schedule");
  return words.size() == 1 && same_but_for_case(words.front(), kAutoSchedule);
}

Setup read_scenario(const Spec& spec, const std::vector<std::string>& hardware_overrides) {
  Setup setup;
  Scenario& s = setup.scenario;
  s.file = spec.file();
  check_keys(spec);
  s.hardware_overrides = overrides_of(spec, hardware_overrides);
  s.schedule = read_schedule(spec);
  if (spec.has("slot_costs_ms")) {
    read_pipeline(spec, setup);
    return setup;
  }
  read_model(spec, setup);
  const auto profile = read_machine(spec, setup);
  if (spec.has("precision")) read_precision(spec.map("precision"), setup);
  const int gpus_per_node = static_cast<int>(setup.machine.facts.gpus_per_node);
  s.workload = read_workload(spec.map("workload"), s.kind());
  if (const DecodeWorkload* decode = decode_of(s.workload); decode != nullptr && decode->draft_layers > 0) {
    setup.model = with_draft(setup.model, decode->draft_layers);
  }
  if (s.phase() == WorkloadPhase::train) read_training_operators(spec, setup);
  check_model(spec, setup);
  read_kernels(spec, profile, setup);
  const Spec routing = spec.map_or_empty("routing");
  read_distribution(routing, s);
  const Spec parallelism = spec.map("parallelism");
  s.parallelism = read_parallelism(parallelism, s, setup.model, gpus_per_node);
  read_comm(spec.map_or_empty("comm"), setup);
  check_widths(parallelism, setup);
  if (is_staged(s) && kv_transfer_MB(s.workload) > 0) {
    throw spec.map("workload").error("kv_transfer_MB", "goes with pp 1: beside a pipeline it is not modelled");
  }
  s.moe_backend = read_moe_backend(spec, setup);
  read_layers(spec, setup.model, s);
  read_routing(routing, setup.model, gpus_per_node, s);
  s.overlap = read_overlap(spec, s);
  check_overlap(spec, s);
  read_launch(spec, setup);
  s.shared_experts = read_shared_experts(spec, setup);
  read_ranks(spec, setup);
  read_clock(spec, setup);
  s.stage_layers = read_stages(spec, setup);
  read_training(spec, setup);
  keys::top().read(spec, "seed", setup);
  draw(setup, s.seed);
  return setup;
}

}  // namespace moeline
