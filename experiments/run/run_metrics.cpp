#include "experiments/run/run_metrics.hpp"

#include <algorithm>

#include "architecture/parameters.hpp"
#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "hardware/provenance.hpp"
#include "schedules/lowering/inference_program.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

double training_layer_us(const Run& run) {
  const Scenario& s = run.setup.scenario;
  const bool equal_layers = s.routing.distribution != Distribution::given && !run.setup.every_rank;
  if (!equal_layers || s.layers < 3) return to_us(run.metrics.span) / s.layers;
  const auto period = [&](const std::string& name) {
    Time last{};
    Time before{};
    for (const PhaseTimes& phase : run.phases) {
      if (phase.phase != name) continue;
      before = last;
      last = phase.start;
    }
    return to_us(last - before);
  };
  const bool one_pass = !s.kind().plan.empty();  // forward and backward layers alternate
  return one_pass ? period("attn(F)") : period("attn(F)") + period("attn(B)");
}

}  // namespace

bool is_whole_step(const Run& run) { return run.setup.scenario.whole_model; }

bool decodes(const Run& run) { return decode_of(run.setup.scenario.workload) != nullptr; }

bool prefills(const Run& run) { return prefill_of(run.setup.scenario.workload) != nullptr; }

bool knows_memory(const Run& run) { return run.step() != nullptr || run.inference() != nullptr; }

bool has_imbalance(const Run& run) { return !run.setup.routed.empty(); }

bool has_chance_of_experts(const Run& run) {
  const Routing& routing = run.setup.scenario.routing;
  const bool alike = routing.distribution == Distribution::balanced;
  return run.inference() != nullptr && run.setup.model.n_routed_experts > 0 && (alike || routing.is_skewed());
}

double experts_hit(const Run& run) {
  const Routing& routing = run.setup.scenario.routing;
  const int layers = routing.skews.empty() ? 1 : static_cast<int>(routing.skews.size());
  double sum = 0;
  for (int layer = 0; layer < layers; ++layer) sum += experts_hit(run, routing.skew_of(layer));
  return sum / layers;
}

double experts_hit(const Run& run, double skew) {
  const Scenario& s = run.setup.scenario;
  return experts_hit(tokens_of_experts(s), expert_choice(s, run.setup.model, skew));
}

double layer_us(const Run& run) {
  return run.inference() != nullptr ? to_us(run.steady().metrics.span) / run.steady().layers : training_layer_us(run);
}

double us_of_layer(const Run& run, Time Metrics::*time) {
  return to_us(run.steady().metrics.*time) / run.steady().layers;
}

double mfu(const Run& run) {
  const double peak = run.setup.machine.facts.bf16_tflops * 1e6;  // FLOP per us
  if (run.step() != nullptr && is_whole_step(run)) return flops_per_token(run, true) * tokens_per_s(run) / 1e6 / peak;
  return run.program.model_flops / (to_us(run.metrics.span) * peak);
}

double mfu_non_causal(const Run& run) { return mfu(run) * flops_per_token(run, false) / flops_per_token(run, true); }

double flops_per_token(const Run& run, bool causal) {
  const auto of_length = causal ? train_flops_per_token : train_flops_per_token_non_causal;
  const TrainWorkload& w = as_train(run.setup.scenario.workload);
  if (w.seq_lens.empty()) return of_length(run.setup.model, w.seq_len);
  double flops = 0, tokens = 0;
  for (int i = 0; i < micro_batches(run.setup.scenario); ++i) {
    const double seq_len = seq_len_of(w, i);
    flops += seq_len * of_length(run.setup.model, seq_len);
    tokens += seq_len;
  }
  return flops / tokens;
}

double gpu_hours_per_trillion_tokens(const Run& run) { return 1e12 / tokens_per_s(run) / 3600; }

double bubble_ms(const Run& run) {
  if (run.step() != nullptr) return to_us(run.step()->mean.bubble) / 1e3;
  return to_us(run.metrics.span - run.metrics.compute_busy) / 1e3;
}

double bubble_fraction(const Run& run) {
  return run.step() != nullptr ? ratio(run.step()->mean.bubble, run.metrics.span) : run.metrics.bubble_fraction();
}

double tokens_per_s(const Run& run) {
  const Workload& workload = run.setup.scenario.workload;
  const double step_s = to_us(run.metrics.span) / 1e6;
  if (const auto* w = std::get_if<TrainWorkload>(&workload)) {
    const double tokens = w->global_batch_size * mean_seq_len(run.setup.scenario);
    return tokens / static_cast<double>(run.setup.scenario.parallelism.world()) / step_s;
  }
  const double gpus = run.setup.scenario.parallelism.gpus_of_request();
  const PrefillWorkload* prompts = prefill_of(workload);
  if (is_chunked(run) && !is_staged(run.setup.scenario))
    return (prompts->prompt_len - prompts->cached_len) / (run.inference()->ttft_ms / 1e3) / gpus;
  const DecodeWorkload* answers = decode_of(workload);
  const double decoded = answers == nullptr ? 0 : answers->batch_size * tokens_per_request(*answers);
  const double prefilled = prompts == nullptr ? 0 : prompts->tokens;
  return (decoded + prefilled) / step_s / gpus;
}

double tpot_ms(const Run& run) {
  return to_us(run.metrics.span) / 1e3 / tokens_per_request(*decode_of(run.setup.scenario.workload));
}

bool is_chunked(const Run& run) {
  const auto* w = std::get_if<PrefillWorkload>(&run.setup.scenario.workload);
  return w != nullptr && steps_per_prompt(*w) > 1;
}

double memory_bytes(const Run& run) {
  if (run.step() != nullptr) return run.step()->fullest().memory.peak.total();
  return run.inference() != nullptr ? run.inference()->memory.total() : 0;
}

bool fits_memory(const Run& run) {
  const InferenceResult* inference = run.inference();
  if (inference == nullptr) return gib(memory_bytes(run)) <= run.setup.machine.facts.memory_gib;
  const auto holds = [&](const StageResult& stage) { return fits(run.setup, stage.memory); };
  return fits(run.setup, inference->memory) && std::all_of(inference->stages.begin(), inference->stages.end(), holds);
}

double missing_gib(const Run& run) {
  if (run.inference() == nullptr)
    return gib(memory_bytes(run)) - (1 - kMemoryReserve) * run.setup.machine.facts.memory_gib;
  const auto missing = [&](const Memory& memory) {
    const GpuMemory gpu = gpu_memory(run.setup, memory);
    return gib(gpu.held.kv_cache - gpu.room);
  };
  double most = missing(run.inference()->memory);
  for (const StageResult& stage : run.inference()->stages) most = std::max(most, missing(stage.memory));
  return most;
}

double filled_share(const Run& run) {
  if (run.inference() == nullptr) return gib(memory_bytes(run)) / run.setup.machine.facts.memory_gib;
  const GpuMemory gpu = gpu_memory(run.setup, run.inference()->memory);
  return (gpu.rest() + std::max(gpu.room, gpu.held.kv_cache)) / gpu.capacity;
}

MemoryParts memory_parts(const Run& run) {
  if (run.step() != nullptr) return parts_of(run.step()->fullest().memory.peak);
  return parts_of(run.inference()->memory);
}

double solo_us(const Run& run) {
  double sum = 0;
  for (const ProvenanceUse& use : run.program.provenance) sum += use.solo_us;
  return sum;
}

double own_us(const Run& run) {
  std::vector<Block> layers = inference_blocks(run.setup);
  std::erase_if(layers, [](const Block& block) { return !is_layer(block.kind); });
  const bool shared_beside = run.setup.scenario.shared_experts == SharedExperts::beside;
  double own = 0;
  for (const PhaseTimes& phase : run.phases) {
    const bool routed = phase.phase == "mlp" && layers[phase.layer].kind == BlockKind::moe_layer;
    if (is_transfer(phase.phase) || routed || (phase.phase == "shared" && shared_beside)) continue;
    own += to_us(phase.span()) * run.setup.fold.repeats(static_cast<int>(phase.layer));
  }
  return own;
}

double barrier_us(const Run& run) {
  for (const ClassTimes& times : run.metrics.classes) {
    if (times.name == row_of(Family::notify).task_class) return to_us(times.busy);
  }
  return 0;
}

double compute_waits_us(const Run& run) {
  double sum = 0;
  for (const PhaseTimes& phase : run.phases) {
    sum += to_us(phase.wait) * run.setup.fold.repeats(static_cast<int>(phase.layer));
  }
  return sum;
}

double imbalance(const Run& run) {
  const std::size_t layers = std::min(run.setup.routed.size(), static_cast<std::size_t>(run.setup.scenario.layers));
  double sum = 0;
  for (std::size_t layer = 0; layer < layers; ++layer) sum += run.setup.routed[layer].imbalance();
  return sum / static_cast<double>(layers);
}

double share_of_solo(const Run& run, double us) { return us / std::max(solo_us(run), 1.0); }

void KnownTime::add(const KnownTime& other) {
  all_us += other.all_us;
  for (std::size_t i = 0; i < us.size(); ++i) us[i] += other.us[i];
  if (!carried) carried = other.carried;
}

KnownTime known_time(const Run& run) {
  KnownTime time{.all_us = solo_us(run), .carried = carried_over(run)};
  for (std::size_t i = 0; i < time.us.size(); ++i) time.us[i] = known_shares()[i].value(run) * time.all_us;
  return time;
}

double lumped_share(const Run& run) { return share_of_solo(run, run.program.lumped_us); }

namespace {

template <class IsMeant>
double share_of(const Run& run, IsMeant is_meant) {
  double us = 0;
  for (const ProvenanceUse& use : run.program.provenance) us += is_meant(use) ? use.solo_us : 0;
  return share_of_solo(run, us);
}

}  // namespace

double extrapolated_share(const Run& run) {
  return share_of(run, [](const ProvenanceUse& use) { return use.provenance == Provenance::extrapolated; });
}

double outside_share(const Run& run) {
  return share_of(run, [](const ProvenanceUse& use) { return !use.note.outside.empty(); });
}

double carried_over_share(const Run& run) {
  return share_of(run, [](const ProvenanceUse& use) { return use.note.reasons.contains(kOtherMachine); });
}

double roofline_share(const Run& run) {
  return share_of(run, [](const ProvenanceUse& use) { return use.provenance == Provenance::roofline; });
}

bool all_measured(const Run& run) {
  return std::all_of(run.program.provenance.begin(), run.program.provenance.end(),
                     [](const ProvenanceUse& use) { return is_covered(use.provenance); });
}

}  // namespace moeline
