#include "experiments/cli/output/scenario_json.hpp"

#include <algorithm>

#include "base/file.hpp"
#include "schedules/scenario/expert_parts.hpp"
#include "schedules/scenario/launch_parts.hpp"
#include "schedules/scenario/training_parts.hpp"

namespace moeline {
namespace {

void add(Json& json, const TrainWorkload& w) {
  json.add("micro_batch_size", w.micro_batch_size);
  w.seq_lens.empty() ? json.add("seq_len", w.seq_len) : json.add("seq_len", w.seq_lens);
  if (w.global_batch_size > 0) json.add("global_batch_size", w.global_batch_size);
}

void add_kv_transfer(Json& json, double mb) {
  if (mb > 0) json.exact("kv_transfer_MB", mb);
}

void add(Json& json, const PrefillWorkload& w) {
  json.add("tokens", w.tokens).add("prompt_len", w.prompt_len).add("cached_len", w.cached_len);
  add_kv_transfer(json, w.kv_transfer_MB);
}

void add(Json& json, const DecodeWorkload& w) {
  json.add("batch_size", w.batch_size).add("kv_len", w.kv_len).exact("kv_len_spread", w.kv_len_spread);
  if (w.batch_size_spread > 0) json.exact("batch_size_spread", w.batch_size_spread);
  add_kv_transfer(json, w.kv_transfer_MB);
  json.add("query_len", w.query_len);
  if (w.draft_layers > 0) json.add("draft_layers", w.draft_layers);
  if (w.query_len == 1) return;
  if (w.mtp_acceptance.size() == 1) {
    json.exact("mtp_acceptance", w.mtp_acceptance.front());
  } else {
    json.exact("mtp_acceptance", w.mtp_acceptance);
  }
}

void add(Json& json, const MixedWorkload& w) {
  add(json, w.decode);
  add(json, w.prefill);
}

void add_workload(Json& json, const Workload& workload) {
  json.open("workload").add("phase", word_of(phase_of(workload)));
  std::visit([&](const auto& w) { add(json, w); }, workload);
  json.close();
}

void add_routing(Json& json, const Scenario& s) {
  const Routing& r = s.routing;
  json.open("routing").add("distribution", word_of(r.distribution));
  if (!r.forward_rows.empty()) {
    json.open("rows").add("forward", r.forward_rows).add("backward", r.backward_rows).close();
  }
  if (r.distribution == Distribution::power_law) json.exact("alpha", r.alpha);
  if (r.distribution == Distribution::file) json.add("file", beside(s.file, r.file).string());
  if (r.step >= 0) json.add("step", r.step);
  if (r.placed_before >= 0) json.add("placed_before", r.placed_before);
  if (r.has_loads()) json.add("placement", word_of(r.placement));
  if (r.rows_spread > 0) json.exact("rows_spread", r.rows_spread);
  if (r.redundant_experts > 0) json.add("redundant_experts", r.redundant_experts);
  json.close();
}

void add_parallelism(Json& json, const Parallelism& p) {
  json.open("parallelism").add("tp", p.tp).add("pp", p.pp);
  if (p.cp > 1) json.add("cp", p.cp);
  if (p.moe_tp > 1) json.add("moe_tp", p.moe_tp);
  if (p.virtual_pp > 1) json.add("virtual_pp", p.virtual_pp);
  json.add("ep", p.ep).add("dp", p.dp).close();
}

void add_slot_costs(Json& json, const SlotCosts& costs) {
  json.open("slot_costs_ms").exact("F", costs.f).exact("B", costs.b);
  if (costs.w > 0) json.exact("W", costs.w);
  if (costs.f_and_b > 0) json.exact("F&B", costs.f_and_b);
  json.close();
}

void add_training(Json& json, const Setup& setup) {
  const Scenario& s = setup.scenario;
  const TrainingChoices& c = s.training;
  json.open("training").add("operators", word_of(c.operators));
  if (c.by_megatron() && c.recompute == Recompute::selective) {
    json.add("recompute", recomputed_modules(c.modules));
  } else {
    json.add("recompute", word_of(c.recompute));
  }
  const bool narrows = !c.by_megatron() && c.recompute != Recompute::full;
  if (narrows) json.add("activations", c.narrow_activations ? "fp8" : "bf16");
  if (is_training_step(s)) {
    json.add("gradients", c.fp32_gradients ? "fp32" : "bf16");
    json.add("moments", c.fp32_moments ? "fp32" : "bf16").add("zero", c.zero);
    json.flag("overlap_gradients", c.overlap_gradients).flag("overlap_sends", c.overlap_sends).flag("mtp", c.mtp);
    if (c.by_megatron()) json.flag("overlap_parameters", c.overlap_parameters);
    if (c.offload.any()) json.add("offload", offloaded_modules(c.offload));
    if (c.by_megatron()) json.flag("offload_optimizer", c.offload_optimizer);
    if (s.overlap == kCombined) json.flag("delay_weight_gradients", c.delay_weights);
  }
  json.close();
}

// A name, or a path that leads to the file also from where the object is read again, below the same folder.
std::string written(const Scenario& s, const std::string& reference, const char* folder) {
  const std::vector<std::string> names = names_in(folder);
  if (std::find(names.begin(), names.end(), reference) != names.end()) return reference;
  return beside(s.file, reference).string();
}

void add_comm(Json& json, const Scenario& s) {
  const Comm& c = s.comm;
  json.open("comm").add("mode", word_of(c.mode)).add("num_sms", c.num_sms);
  if (sends_tokens(c.mode)) json.add("dispatch_dtype", name_of(c.dispatch));
  json.add("combine_dtype", name_of(c.combine)).add("neighbours", word_of(c.neighbours));
  if (s.parallelism.cp > 1) json.add("context", word_of(c.context));
  json.close();
}

}  // namespace

// What enters, and no more.
void add_pipeline_scenario(Json& json, const Scenario& s) {
  json.open("scenario").add("schema", 1).add("schedule", s.schedule);
  add_parallelism(json, s.parallelism);
  add_workload(json, s.workload);
  add_slot_costs(json, *s.slot_costs);
  if (overlaps_passes(s) && s.kind().may_combine()) json.add("overlap", s.overlap);
  json.close();
}

void add_scenario(Json& json, const Setup& setup) {
  const Scenario& s = setup.scenario;
  json.open("scenario").add("schema", 1).add("model", written(s, s.model, "model/zoo"));
  json.add("hardware", written(s, s.hardware, "hwprofiles"));
  json.add("hardware_overrides", s.hardware_overrides).add("kernels", s.kernels).add("schedule", s.schedule);
  add_parallelism(json, s.parallelism);
  add_workload(json, s.workload);
  add_comm(json, s);
  if (runs_fused(setup)) json.add("moe_backend", word_of(s.moe_backend));
  if (serves_shared_experts(setup)) json.add("shared_experts", word_of(s.shared_experts));
  json.open("precision").add("linear", s.precision.linear).add("experts", s.precision.experts);
  json.add("kv_cache", s.precision.kv_cache).close();
  if (setup.model.n_routed_experts > 0) add_routing(json, s);
  if (s.whole_model) {
    json.add("layers", "all");
  } else {
    json.add("layers", s.layers);
  }
  json.add("overlap", s.overlap);
  s.graphs.any() ? json.add("launch", graph_part_names(s.graphs)) : json.add("launch", word_of(s.launch));
  if (s.phase() == WorkloadPhase::train) add_training(json, setup);
  if (is_staged(s)) json.add("stages", s.stage_layers);
  if (is_training_step(s)) {
    s.stage_layers.empty() ? json.add("stages", "balanced") : json.add("stages", s.stage_layers);
    json.add("level", word_of(s.level));
  }
  json.add("ranks", setup.every_rank ? "all" : "folded");
  json.add("jitter", word_of(s.jitter)).add("clock", word_of(s.clock));
  json.exact("speed_spread", s.speed_spread);
  json.add("seed", s.seed).add("samples", s.samples);
  json.close();
}

}  // namespace moeline
