#include "experiments/run/inference_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moe/tensor_parallel.hpp"
#include "schedules/lowering/prepared_phases.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {
namespace {

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

Memory fullest(const std::vector<Memory>& stages) {
  return *std::max_element(stages.begin(), stages.end(),
                           [](const Memory& a, const Memory& b) { return a.total() < b.total(); });
}

CacheRoom cache_room(const Setup& setup, const Memory& memory) {
  const DecodeWorkload* decode = decode_of(setup.scenario.workload);
  CacheRoom room{.keys = 1.0 * (decode != nullptr ? decode->kv_len : prefill_of(setup.scenario.workload)->prompt_len)};
  const double usable = setup.scenario.memory.fraction * setup.machine.facts.memory_gib * (1 << 30);
  const double left = usable - (memory.total() - memory.kv_cache), each = RequestCache(setup).bytes(room.keys);
  if (each > 0) room.requests = std::max(0.0, left / each);
  return room;
}

std::string breakdown(const Memory& m) {
  return fmt::format("weights {:.1f}, KV cache {:.1f}, activations {:.1f}, communication buffers {:.1f}",
                     gib(m.weights), gib(m.kv_cache), gib(m.activations), gib(m.communication));
}

}  // namespace moeline
