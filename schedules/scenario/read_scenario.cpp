#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "architecture/draft.hpp"
#include "base/file.hpp"
#include "base/spec.hpp"
#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/scenario.hpp"
#include "schedules/scenario/stack_habits.hpp"

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
    throw spec.error("hardware", fmt::format("'{}' {}", s.hardware, kNoKernelSet));
  }
  const bool of_deepseek = s.phase() == WorkloadPhase::train && !s.training.by_megatron();
  const std::string needed = of_deepseek ? "attention_backward" : "";
  setup.prices = at_key(spec, "kernels", [&] { return prices_of(profile, s.kernels, needed); });
  const LearntKernels& learnt = setup.kernels().learnt;
  if (!learnt.empty() && learnt.phase != word_of(s.phase())) {  // what a trace says of another phase misleads
    setup.unused_learnt_set = setup.kernels().name;
    setup.prices = prices_of(profile, learnt.over, needed);
  }
  s.kernels = setup.kernels().name;
  const bool trains = s.phase() == WorkloadPhase::train;
  const Stack stack = setup.kernels().stack;
  if (trains && stack == Stack::vllm) throw spec.error("kernels", "vllm serves, and this is training");
  if (!trains && stack == Stack::megatron) throw spec.error("kernels", "megatron trains, and this is no training");
  if (stack == Stack::megatron && !s.training.by_megatron()) {
    throw spec.error("kernels", "megatron has operators of its own: training.operators is megatron");
  }
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
  spec.map_or_empty("memory").expect(keys::memory().names());
  check_training_keys(spec, s.kind());
  for (const keys::Row& key : keys::top().rows()) {
    const bool enters = key.enters_slots || (key.name == "overlap" && s.kind().may_combine());
    if (spec.has(key.name) && !enters) s.without_use.push_back(key.name);
  }
}

// Which clock the SMs have.
void read_clock(const Spec& spec, Setup& setup) {
  keys::top().read(spec, "clock", setup);
  const MachineFacts& machine = setup.machine.facts;
  const bool capped = setup.scenario.clock == ClockChoice::sustained && machine.power_cap_w > 0;
  if (capped && machine.power_cap_w <= machine.idle_w) {
    throw spec.error("hardware", fmt::format("draws {} W at rest (idle_w), and power_cap_w is {}", machine.idle_w,
                                             machine.power_cap_w));
  }
}

// One rank of each stage is simulated.
void check_folded(const Spec& spec, const Scenario& s, bool ranks_differ) {
  if (s.ranks == RankChoice::all || s.samples > 1) {
    const std::string instead = is_staged(s) ? "" : "; dualpipe-chunk simulates all of one";
    throw spec.error(s.ranks == RankChoice::all ? "ranks" : "samples",
                     "does not go with a whole pipeline, which folds the ranks of a stage" + instead);
  }
  if (!ranks_differ) return;
  throw spec.error(s.routing.has_loads() ? "routing" : "workload",
                   "does not go with a whole pipeline: it makes ranks differ, and one of each stage is simulated");
}

// Which ranks are simulated, and how they differ.
void read_ranks(const Spec& spec, Setup& setup) {
  Scenario& s = setup.scenario;
  constexpr int kMostTogether = 8192;                // resources are numbered with 16 bits
  constexpr std::int64_t kMostRankLayers = 1 << 17;  // a graph of eight million tasks in decode
  const double measured = setup.kernels()[Constant::speed_spread];
  s.speed_spread = std::isnan(measured) ? 0 : measured;
  for (const char* key : {"ranks", "samples", "jitter", "speed_spread"}) keys::top().read(spec, key, setup);
  const DecodeWorkload* decode = decode_of(s.workload);
  const bool requests_vary = decode != nullptr && decode->batch_size_spread > 0;
  const bool keys_vary = decode != nullptr && decode->kv_len_spread > 0;
  const bool no_expectation = s.routing.has_loads() || requests_vary;
  if (s.ranks == RankChoice::folded && no_expectation) {
    throw spec.error("ranks", fmt::format("folded does not go with {}: ranks differ by more than chance",
                                          s.routing.has_loads() ? "unequal loads" : "batch_size_spread"));
  }
  const bool differ = no_expectation || s.routing.rows_spread > 0 || keys_vary || s.samples > 1;
  if (s.ranks == RankChoice::folded && s.samples > 1) {
    throw spec.error("samples", "above 1 have nothing to draw where ranks are folded");
  }
  if (is_training_step(s) || is_staged(s)) return check_folded(spec, s, is_staged(s) && no_expectation);
  const std::int64_t rank_layers = std::int64_t{s.parallelism.ep} * s.layers;
  const bool few = s.parallelism.ep <= kMostTogether && rank_layers <= kMostRankLayers;
  setup.every_rank = s.ranks == RankChoice::all ||
                     (s.ranks == RankChoice::automatic && differ && (few || no_expectation || s.samples > 1));
  if (setup.every_rank && !few) {
    throw spec.error("ranks", fmt::format("all: {} ranks of {} layers are too many to simulate together",
                                          s.parallelism.ep, s.layers));
  }
}

void read_memory(const Spec& spec, Setup& setup) {
  MemoryChoices& choices = setup.scenario.memory;
  if (setup.scenario.phase() == WorkloadPhase::train) {
    if (spec.has("memory")) throw spec.error("memory", "belongs to prefill, decode and serve, not train");
    return;
  }
  const Spec memory = spec.map_or_empty("memory");
  memory.expect(keys::memory().names());
  choices.stack = read_choice(memory, "stack", setup.kernels().stack);
  choices.fraction = habits::memory_fraction(setup);
  keys::memory().read_all(memory, choices);
}

// Of every draw.
void check_graph_batch(const Spec& spec, Setup setup) {
  constexpr const char* kKey = "graph_batch";
  const auto* decode = std::get_if<DecodeWorkload>(&setup.scenario.workload);
  if (decode == nullptr || decode->graph_choice != GraphBatch::given) return;
  if (setup.scenario.launch == Launch::stream) {
    throw spec.error(kKey, "does not apply with launch: stream, which captures no CUDA graph");
  }
  const int draws = decode->batch_size_spread > 0 ? setup.scenario.samples : 1;
  for (int i = 0; i < draws; ++i, ++setup.scenario.seed) {
    if (i > 0) setup.variation = draw_ranks(setup.scenario);
    if (const int most = setup.most_requests(); decode->graph_batch < most) {
      throw spec.error(kKey, fmt::format("must be at least {}, the requests of the fullest attention group, not {}",
                                         most, decode->graph_batch));
    }
  }
}

}  // namespace

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
  share_out_requests(spec.map("workload"), s);
  read_comm(spec.map_or_empty("comm"), setup);
  check_widths(parallelism, setup);
  if (is_staged(s) && kv_transfer_MB(s.workload) > 0) {
    throw spec.map("workload").error("kv_transfer_MB", "goes with pp 1: beside a pipeline it is not modelled");
  }
  read_layers(spec, setup.model, s);
  read_routing(routing, setup.model, gpus_per_node, s);
  s.overlap = read_overlap(spec, s);
  check_overlap(spec, s);
  read_launch(spec, setup);
  read_cpu_sync(spec.map_or_empty("comm"), setup);
  s.shared_experts = read_shared_experts(spec, setup);
  read_ranks(spec, setup);
  read_clock(spec, setup);
  read_memory(spec, setup);
  read_training(spec, setup);
  s.stage_layers = read_stages(spec, setup);  // whose layouts have the MTP layers that are trained
  keys::top().read(spec, "seed", setup);
  draw(setup, s.seed);
  check_graph_batch(spec.map("workload"), setup);
  read_backends(spec, profile, setup);
  return setup;
}

}  // namespace moeline
