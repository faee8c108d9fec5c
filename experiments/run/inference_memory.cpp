#include "experiments/run/inference_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moeline {
namespace {

double cached_keys(const InferenceWork& work) { return work.decode.requests * work.decode.kv_len; }

}  // namespace

Memory memory_of(const Setup& setup) {
  InferenceWork work = setup.inference_work(0, 1);
  for (int rank = 1; setup.requests_differ() && rank < setup.simulated_ranks(); rank += work.tp) {
    InferenceWork other = setup.inference_work(0, 1, 0, rank);
    if (cached_keys(other) > cached_keys(work)) work = std::move(other);
  }
  GpuWork d;
  for (const RoutedLayer& layer : setup.routed) d.busiest_rank = std::max(d.busiest_rank, layer.imbalance());
  d.tp = work.tp;
  d.ep = work.ep;
  d.moe_tp = work.moe_tp;
  d.redundant_experts = work.redundant_experts;
  d.micro_batches = setup.scenario.kind().micro_batches;
  d.decode = work.decode;
  d.prefill = work.prefill;
  if (const PrefillWorkload* prompts = prefill_of(setup.scenario.workload)) {
    d.prefill.kv_len = std::max<double>(d.prefill.kv_len, prompts->prompt_len);
  }
  d.mtp = setup.drafted_tokens() > 0;
  d.mode = work.mode;
  d.dispatch = work.dispatch;
  d.comm_sms = setup.scenario.comm.num_sms;
  return memory_per_gpu(setup.model, d);
}

std::string breakdown(const Memory& m) {
  return fmt::format("weights {:.1f}, KV cache {:.1f}, activations {:.1f}, communication buffers {:.1f}",
                     gib(m.weights), gib(m.kv_cache), gib(m.activations), gib(m.communication));
}

}  // namespace moeline
