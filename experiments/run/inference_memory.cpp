#include "experiments/run/inference_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moeline {

Memory memory_of(const Setup& setup) {
  InferenceWork work = setup.inference_work(0, 1);
  for (int rank = 1; setup.requests_differ() && rank < setup.simulated_ranks(); rank += work.tp) {
    InferenceWork other = setup.inference_work(0, 1, 0, rank);
    if (other.requests * other.kv_len > work.requests * work.kv_len) work = std::move(other);
  }
  GpuWork d;
  for (const RoutedLayer& layer : setup.routed) d.busiest_rank = std::max(d.busiest_rank, layer.imbalance());
  d.tp = work.tp;
  d.ep = work.ep;
  d.moe_tp = work.moe_tp;
  d.redundant_experts = work.redundant_experts;
  d.micro_batches = setup.scenario.kind().micro_batches;
  d.tokens = work.tokens();
  d.requests = work.requests;
  d.logit_rows = work.decode ? d.tokens : std::ceil(d.requests);
  d.kv_len = work.kv_len;
  if (!work.decode) d.kv_len = std::max<double>(d.kv_len, as_prefill(setup.scenario.workload).prompt_len);
  d.decode = work.decode;
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
