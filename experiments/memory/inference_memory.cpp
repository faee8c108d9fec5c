#include "experiments/memory/inference_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/memory/parts.hpp"
#include "moe/tensor_parallel.hpp"
#include "schedules/lowering/prepared_phases.hpp"
#include "schedules/scenario/stack_habits.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

constexpr double kGib = 1 << 30;

double cached_keys(const InferenceWork& work) { return work.decode.requests * work.decode.kv_len; }

// Without stages, of all layers and requests.
GpuWork gpu_work(const Setup& setup, bool drafts) {
  const int parts = passes(setup.scenario);
  InferenceWork work = setup.inference_work({0, parts});
  for (int rank = 1; setup.requests_differ() && rank < setup.simulated_ranks(); rank += work.tp) {
    InferenceWork other = setup.inference_work({0, parts}, 0, rank);
    if (cached_keys(other) > cached_keys(work)) work = std::move(other);
  }
  GpuWork d;
  for (const RoutedLayer& layer : setup.routed) d.busiest_rank = std::max(d.busiest_rank, layer.imbalance());
  d.tp = work.tp;
  d.ep = work.ep;
  d.cp = work.cp;
  d.gathers_keys = gathers_keys(work);
  d.moe_tp = work.moe_tp;
  d.expert_padding = work.expert_padding;
  d.redundant_experts = work.redundant_experts;
  d.micro_batches = setup.scenario.kind().micro_batches;
  d.decode = work.decode;
  d.prefill = work.prefill;
  if (const PrefillWorkload* prompts = prefill_of(setup.scenario.workload)) {
    d.prefill.kv_len = std::max<double>(d.prefill.kv_len, prompts->prompt_len);
  }
  d.mtp = drafts || setup.drafted_tokens() > 0;
  d.mode = work.mode;
  d.dispatch = work.dispatch;
  d.comm_sms = transfer_sms(setup);
  d.gpus_per_node = work.gpus_per_node;
  d.elastic = work.elastic;
  return d;
}

// Requests whose keys a stage keeps, over those of a pass: all that decode; prompts until their last chunk has left the
// pipeline, while the next ones have begun.
double caches_of_stage(const Setup& setup, const GpuWork& pass) {
  if (const DecodeWorkload* w = decode_of(setup.scenario.workload)) return w->batch_size / pass.decode.requests;
  const int chunks = passes(setup.scenario);
  return 1 + (setup.scenario.parallelism.pp - 2 + chunks) / chunks;  // NOLINT: whole prompts
}

// Of the whole model, whatever is simulated of it.
std::vector<StageBlocks> whole_stages(const Setup& setup) {
  const Scenario& s = setup.scenario;
  const bool listed = s.whole_model && !s.stage_layers.empty();
  return given_stages(blocks_of(setup.model, 0),
                      listed ? s.stage_layers : even_stages(setup, setup.model.num_hidden_layers));
}

// Without a pipeline one.
std::vector<GpuWork> work_of_stages(const Setup& setup, bool drafts) {
  GpuWork d = gpu_work(setup, drafts);
  if (!is_staged(setup.scenario)) return {std::move(d)};
  d.caches = caches_of_stage(setup, d);
  std::vector<GpuWork> works;
  for (StageBlocks& stage : whole_stages(setup)) {
    GpuWork& work = works.emplace_back(d);
    work.mtp = d.mtp && stage.back().kind == BlockKind::head;  // MTP modules lie on the last stage
    work.stage = std::move(stage);
  }
  return works;
}

}  // namespace

std::vector<Memory> memory_of_stages(const Setup& setup, bool drafts) {
  std::vector<Memory> memories;
  for (const GpuWork& work : work_of_stages(setup, drafts)) memories.push_back(memory_per_gpu(setup.model, work));
  return memories;
}

Memory memory_of(const Setup& setup, bool drafts) { return fullest(memory_of_stages(setup, drafts)); }

RequestCache::RequestCache(const Setup& setup, bool drafts) : model_(setup.model) {
  for (const GpuWork& work : work_of_stages(setup, drafts)) stages_.push_back(cached_layers(model_, work));
}

double RequestCache::bytes(double tokens) const {
  double most = 0;
  for (const CachedLayers& stage : stages_) most = std::max(most, cache_of_request(model_, stage, tokens));
  return most;
}

double RequestCache::bytes_of_token() const {
  constexpr int kUsualLength = 2048;
  return bytes(kUsualLength) / kUsualLength;
}

Memory fullest(const std::vector<Memory>& stages) {
  return *std::max_element(stages.begin(), stages.end(),
                           [](const Memory& a, const Memory& b) { return a.total() < b.total(); });
}

// Card less what was free before weights were loaded, in logs of starts: one GPU 0.8 GiB (MI355X, SGLang's issue 18262)
// and 0.7 (B200, vLLM's pull request 21489); two to eight 1.9 (H20), 2.1 (B200), 3.1 (H200; SGLang's pull request
// 12978, issue 12421, pull request 11716) and 2.5 (B200, vLLM's issue 57936).
double runtime_bytes(const Setup& setup) {
  constexpr double kAloneGib = 0.75, kTogetherGib = 2.4;
  return (setup.scenario.parallelism.world() == 1 ? kAloneGib : kTogetherGib) * kGib;
}

double room_for_caches(const Setup& setup, const Memory& memory) {
  const double capacity = setup.machine.facts.memory_gib * kGib, fraction = setup.scenario.memory.fraction;
  const double runtime = runtime_bytes(setup), rest = memory.total() - memory.kv_cache;
  const double free = capacity - runtime - rest;
  switch (habits::fraction_of(setup.scenario.memory.stack)) {
    case habits::FractionOf::static_parts:
      return std::min(free, fraction * (capacity - runtime) - memory.weights);
    case habits::FractionOf::rest:
      return free > 0 ? fraction * free : free;
    case habits::FractionOf::all:
      break;
  }
  const double start = std::max(0.0, habits::start_bytes(setup) - memory.activations);
  return std::min(free, fraction * capacity - runtime - rest - start);
}

GpuMemory gpu_memory(const Setup& setup, const Memory& held) {
  return {.held = held,
          .room = room_for_caches(setup, held),
          .capacity = setup.machine.facts.memory_gib * kGib,
          .runtime = runtime_bytes(setup)};
}

Memory of_both(const Memory& a, const Memory& b, bool in_one_step) {
  return {.weights = std::max(a.weights, b.weights),
          .draft_model = std::max(a.draft_model, b.draft_model),
          .kv_cache = a.kv_cache + b.kv_cache,
          .states = a.states + b.states,
          .activations = in_one_step ? a.activations + b.activations : std::max(a.activations, b.activations),
          .communication = a.communication + b.communication};
}

int largest_that_fits(int least, int most, const std::function<bool(int)>& fits) {
  int low = least - 1, high = most + 1;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

std::string what_is_over(const Setup& setup, const Memory& memory) {
  const double gpu = setup.machine.facts.memory_gib, room = gib(room_for_caches(setup, memory));
  const double runtime = gib(runtime_bytes(setup));
  const std::string all =
      fmt::format("{:.1f} GiB per GPU ({}) beside {:.1f} of CUDA and its libraries, and the GPU has {:.0f}",
                  gib(memory.total()), breakdown(parts_of(memory)), runtime, gpu);
  if (gib(memory.total()) + runtime > gpu) return all;
  const std::string option = habits::fraction_option(setup.scenario.memory.stack);
  return fmt::format("{}, of which {}memory.fraction {:.3g} leaves {:.1f} to the KV cache", all,
                     option.empty() ? "" : option + " by ", setup.scenario.memory.fraction, std::max(0.0, room));
}

CacheRoom cache_room(const Setup& setup, const Memory& memory) {
  const DecodeWorkload* decode = decode_of(setup.scenario.workload);
  CacheRoom room{.keys = 1.0 * (decode != nullptr ? decode->kv_len : prefill_of(setup.scenario.workload)->prompt_len)};
  const RequestCache cache(setup);
  room.parts = cache.parts();
  const double each = cache.bytes(room.keys);
  if (each > 0) room.requests = std::max(0.0, room_for_caches(setup, memory) / each);
  return room;
}

}  // namespace moeline
