// Causal attention's forward pass, by a kernel of our own: the device need not have cuDNN.
#include <cmath>
#include <memory>

#include "attention_grid.hpp"
#include "attention_operands.cuh"
#include "compare.hpp"
#include "facts.hpp"

namespace moeline::bench {
namespace {

void check_head(const ForwardOperands& o, int batch, int head) {
  const AttentionShape& s = o.dims.shape;
  const int kv_head = head / (s.heads / s.kv_heads);
  const HeadRows keys(o.key.at(0), batch, s.kv_len, s.kv_heads, kv_head, o.dims.qk_dim);
  const HeadRows values(o.value.at(0), batch, s.kv_len, s.kv_heads, kv_head, o.dims.v_dim);
  for (const auto place : sampled_places(s.query_len, 5)) {
    const int i = static_cast<int>(place);
    const auto query = fetch_row(o.query.at(0), batch, s.query_len, i, s.heads, head, o.dims.qk_dim);
    const auto expected =
        attend(query.data(), keys.rows(), values.rows(), static_cast<std::size_t>(i + s.kv_len - s.query_len + 1),
               1 / std::sqrt(o.dims.qk_dim));
    require_close(fetch_row(o.output.at(0), batch, s.query_len, i, s.heads, head, o.dims.v_dim), expected.output,
                  kAttentionTolerance);
  }
}

Kernel prepare(const Bench& bench, const Case& c) {
  const AttentionCase dims = attention_case(c);
  allow_forward(dims, bench.device);
  auto o = std::make_shared<ForwardOperands>(dims, cold_sets(bench.device, forward_bytes(dims)));
  o->fill_inputs(bench.stream);
  return {[o](cudaStream_t stream, int turn) { launch_forward(*o, stream, turn); },
          [o](cudaStream_t stream) {
            launch_forward(*o, stream, 0);
            CHECK_STATUS(cudaStreamSynchronize(stream));
            check_head(*o, 0, 0);
            check_head(*o, o->dims.shape.batch - 1, o->dims.shape.heads - 1);
          }};
}

}  // namespace

Fact attention_forward_fact() {
  return kernel_fact(
      "attention_forward", needs_ampere, [](const Device&, Preset preset) { return attention_forward_cases(preset); },
      prepare);
}

}  // namespace moeline::bench
