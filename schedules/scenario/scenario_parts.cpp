#include "schedules/scenario/scenario_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/pipeline_parts.hpp"

namespace moeline {
namespace {

std::vector<std::string> joined(std::vector<std::string> keys, const std::vector<std::string>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::vector<std::string> workload_keys(WorkloadPhase phase) {
  if (phase == WorkloadPhase::train) return keys::train().names();
  if (phase == WorkloadPhase::prefill) return keys::prefill().names();
  if (phase == WorkloadPhase::decode) return keys::decode().names();
  return joined(keys::prefill().names(), keys::decode().names());
}

TrainWorkload read_training(const Spec& spec, const ScheduleKind& schedule) {
  const keys::Row& seq_len = keys::train().at("seq_len");
  TrainWorkload w;
  w.micro_batch_size = 1;
  keys::train().read(spec, "micro_batch_size", w);
  if (spec.has("seq_len") && spec.is_list("seq_len")) {
    if (!schedule.pipeline) throw spec.error("seq_len", "lists one for each micro-batch of a whole pipeline alone");
    w.seq_lens = seq_len.integers(spec);
    if (w.seq_lens.empty()) throw spec.error("seq_len", "lists no lengths");
    w.seq_len = *std::max_element(w.seq_lens.begin(), w.seq_lens.end());
  } else {
    w.seq_len = seq_len.integer(spec);
  }
  if (1.0 * w.micro_batch_size * w.seq_len > seq_len.type.most) {
    throw spec.error("micro_batch_size",
                     fmt::format("x seq_len is more than {:.0f} tokens per GPU", seq_len.type.most));
  }
  keys::train().read(spec, "global_batch_size", w);
  return w;
}

PrefillWorkload read_prefill(const Spec& spec) {
  PrefillWorkload w;
  keys::prefill().read_all(spec, w);
  if (w.cached_len >= w.prompt_len) {
    throw spec.error("cached_len", fmt::format("must be below prompt_len: {} leaves nothing of {} to compute",
                                               w.cached_len, w.prompt_len));
  }
  return w;
}

// Of one phase alone.
constexpr const char* kKvTransfer = "kv_transfer_MB";

DecodeWorkload read_decode(const Spec& spec) {
  DecodeWorkload w;
  for (const char* key : {"batch_size", "query_len", "kv_len"}) keys::decode().read(spec, key, w);
  if (w.kv_len < w.query_len) {
    throw spec.error("kv_len", fmt::format("counts the new tokens: {} is below query_len, {}", w.kv_len, w.query_len));
  }
  w.kv_len_spread = spec.has("kv_len_spread") ? spec.number("kv_len_spread", 0, 10.0 * w.kv_len) : 0;
  w.batch_size_spread = spec.has("batch_size_spread") ? spec.number("batch_size_spread", 0, w.batch_size) : 0;
  read_drafts(spec, w);
  keys::decode().read(spec, kKvTransfer, w);
  return w;
}

Workload read_phase(const Spec& spec, WorkloadPhase phase, const ScheduleKind& schedule) {
  switch (phase) {
    case WorkloadPhase::train:
      return read_training(spec, schedule);
    case WorkloadPhase::prefill:
      return read_prefill(spec);
    case WorkloadPhase::decode:
      return read_decode(spec);
    case WorkloadPhase::mixed:
      break;
  }
  if (spec.has(kKvTransfer)) throw spec.error(kKvTransfer, "is of prefill and of decode, each on GPUs of its own");
  return MixedWorkload{read_decode(spec), read_prefill(spec)};
}

void check_schedule(const Spec& spec, WorkloadPhase phase, const ScheduleKind& schedule) {
  if (schedule.is_for(phase)) return;
  throw spec.error("phase", fmt::format("'{}' does not go with the schedule {}, which is for {}", word_of(phase),
                                        schedule.name, fmt::join(words_of(schedule.phases), ", ")));
}

void check_micro_batches(const Spec& spec, const Workload& workload, const ScheduleKind& schedule) {
  const auto check = [&](const char* key, int count) {
    if (count >= schedule.micro_batches) return;
    throw spec.error(key, fmt::format("must be at least {}: one for each micro-batch", schedule.micro_batches));
  };
  if (const DecodeWorkload* decode = decode_of(workload)) check("batch_size", decode->batch_size);
  if (const PrefillWorkload* prefill = prefill_of(workload)) check("tokens", prefill->tokens);
}

// Padded rows that one rank can get at most: every token of the group chooses as many of its experts as it may.
int most_rows(const Scenario& scenario, const Architecture& model) {
  constexpr double kMost = 1 << 30;
  const int experts = model.n_routed_experts / scenario.parallelism.ep;
  const TrainWorkload& w = as_train(scenario.workload);
  const double tokens = static_cast<double>(w.micro_batch_size) * w.seq_len;
  const double rows = tokens * scenario.parallelism.ep * std::min(model.num_experts_per_tok, experts);
  return static_cast<int>(std::min(kMost, rows + experts * kRowPadding));
}

std::vector<int> read_rows(const Spec& rows, const char* key, const Scenario& scenario, const Architecture& model) {
  std::vector<int> values = rows.integers(key, 1, most_rows(scenario, model));
  if (values.size() != static_cast<std::size_t>(scenario.layers)) {
    throw rows.error(
        key, fmt::format("must list one value per layer: {}, not {} (or set routing={{distribution: balanced}})",
                         scenario.layers, values.size()));
  }
  return values;
}

}  // namespace

// One acceptance for all drafted tokens, or one for each.
void read_drafts(const Spec& spec, DecodeWorkload& w) {
  for (const char* key : {"mtp_acceptance", "draft_layers"}) {
    if (spec.has(key) && w.query_len == 1) throw spec.error(key, "does not apply: query_len 1 drafts no tokens");
  }
  keys::decode().read(spec, "draft_layers", w);
  if (!spec.has("mtp_acceptance")) return;
  const keys::Row& acceptance = keys::decode().at("mtp_acceptance");
  if (!spec.is_list("mtp_acceptance")) {
    w.mtp_acceptance = {acceptance.real(spec)};
    return;
  }
  w.mtp_acceptance = acceptance.reals(spec);
  if (static_cast<int>(w.mtp_acceptance.size()) != w.query_len - 1) {
    throw spec.error("mtp_acceptance", fmt::format("has {} numbers, and {} tokens are drafted (query_len {})",
                                                   w.mtp_acceptance.size(), w.query_len - 1, w.query_len));
  }
}

std::string modelled(const Spec& spec, const std::string& key, const std::vector<std::string>& values,
                     const std::vector<std::string>& real) {
  const std::string value = spec.text_or(key, values.front());
  if (!known_name(value, values) && known_name(value, real)) {
    throw spec.error(key, fmt::format("'{}' is not modelled; there is: {}", value, fmt::join(values, ", ")));
  }
  return spec.has(key) ? spec.choice(key, values) : value;
}

Workload read_workload(const Spec& spec, const ScheduleKind& schedule) {
  const std::vector<std::string> of_any =
      joined(workload_keys(WorkloadPhase::train), workload_keys(WorkloadPhase::mixed));
  spec.expect(joined({"phase"}, of_any));
  (void)spec.text("phase");
  const auto phase = choice_of<WorkloadPhase>(spec.choice("phase", words_of<WorkloadPhase>()));
  check_schedule(spec, phase, schedule);
  spec.expect(joined({"phase"}, workload_keys(phase)));
  const Workload w = read_phase(spec, phase, schedule);
  check_micro_batches(spec, w, schedule);
  return w;
}

namespace {

// A key that goes with one distribution alone.
void check_belongs(const Spec& spec, const char* key, Distribution distribution, const Routing& routing) {
  if (!spec.has(key) || routing.distribution == distribution) return;
  throw spec.error(
      key, fmt::format("belongs to the distribution {}, not {}", word_of(distribution), word_of(routing.distribution)));
}

void read_load_steps(const Spec& spec, Scenario& s) {
  Routing& r = s.routing;
  keys::routing().need(spec, "file", s);
  keys::routing().read(spec, "step", s);
  if (!spec.has("placed_before")) return;
  if (r.placement != PlacementRule::eplb) throw spec.error("placed_before", "is of the placement eplb");
  if (r.step < 0) return keys::routing().read(spec, "placed_before", s);
  r.placed_before = spec.integer("placed_before", 0, r.step);
}

void check_placement(const Spec& spec, const Scenario& scenario, const Architecture& model, int gpus_per_node) {
  const PlacementShape shape = placement_shape(scenario, model, gpus_per_node);
  const std::string broken = scenario.routing.placement == PlacementRule::eplb ? broken_rule(shape) : "";
  if (!broken.empty()) throw spec.error("placement", "eplb: " + broken);
}

}  // namespace

PlacementShape placement_shape(const Scenario& scenario, const Architecture& model, int gpus_per_node) {
  const int ep = scenario.parallelism.ep;
  return {model.n_routed_experts, model.n_routed_experts + scenario.routing.redundant_experts, model.n_group,
          std::max(1, ep / gpus_per_node), ep};
}

void read_distribution(const Spec& spec, Scenario& s) {
  spec.expect(keys::routing().names());
  const bool training = s.phase() == WorkloadPhase::train;
  const std::vector<std::string>& all = words_of<Distribution>();
  const std::vector<std::string> drawn(all.begin(), all.end() - 1);  // but for `given`
  s.routing.distribution = choice_of<Distribution>(modelled(spec, "distribution", training ? all : drawn, all));
  if (training && spec.has("redundant_experts")) {
    throw spec.error("redundant_experts", "belongs to prefill and decode");
  }
  keys::routing().read(spec, "redundant_experts", s);
}

void read_routing(const Spec& spec, const Architecture& model, int gpus_per_node, Scenario& s) {
  Routing& r = s.routing;
  check_belongs(spec, "alpha", Distribution::power_law, r);
  for (const char* key : {"file", "step", "placed_before"}) check_belongs(spec, key, Distribution::file, r);
  check_belongs(spec, "rows", Distribution::given, r);
  for (const char* key : {"alpha", "placement"}) keys::routing().read(spec, key, s);
  if (r.distribution == Distribution::file) read_load_steps(spec, s);
  if (r.has_loads()) check_placement(spec, s, model, gpus_per_node);
  if (spec.has("rows_spread") && r.has_loads()) {
    throw spec.error("rows_spread", "does not go with loads: they say what each rank gets");
  }
  keys::routing().read(spec, "rows_spread", s);
  if (r.distribution == Distribution::given) {
    const Spec rows = spec.map("rows");
    rows.expect({"forward", "backward"});
    r.forward_rows = read_rows(rows, "forward", s, model);
    r.backward_rows = read_rows(rows, "backward", s, model);
  }
}

void read_clock(const Spec& spec, Setup& setup) {
  keys::top().read(spec, "clock", setup);
  const MachineFacts& machine = setup.machine.facts;
  const bool capped = setup.scenario.clock == ClockChoice::sustained && machine.power_cap_w > 0;
  if (capped && machine.power_cap_w <= machine.idle_w) {
    throw spec.error("hardware", fmt::format("draws {} W at rest (idle_w), and power_cap_w is {}", machine.idle_w,
                                             machine.power_cap_w));
  }
}

namespace {

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

}  // namespace

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

}  // namespace moeline
