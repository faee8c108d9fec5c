// Causal attention's backward pass: the time of its three kernels together.
#include "attention_backward_kernel.cuh"

#include <algorithm>
#include <cmath>
#include <memory>

#include "attention_grid.hpp"
#include "attention_operands.cuh"
#include "compare.hpp"
#include "facts.hpp"

namespace moeline::bench {
namespace {

struct Operands {
  Operands(const AttentionCase& c, int sets);

  ForwardOperands forward;
  Operand<__nv_bfloat16> output_gradient, query_gradient, key_gradient, value_gradient;
  Operand<float> output_dot, query_sum;               // between the kernels
  Operand<__nv_bfloat16> key_by_head, value_by_head;  // where heads share keys
};

bool heads_share_keys(const AttentionCase& c) { return c.shape.heads != c.shape.kv_heads; }

std::int64_t rows_by_head(const AttentionCase& c) {
  return heads_share_keys(c) ? std::int64_t{c.shape.batch} * c.shape.kv_len * c.shape.heads : 0;
}

Operands::Operands(const AttentionCase& c, int sets)
    : forward(c, sets),
      output_gradient(c.query_rows() * c.v_dim, sets),
      query_gradient(c.query_rows() * c.qk_dim, sets),
      key_gradient(c.key_rows() * c.qk_dim, sets),
      value_gradient(c.key_rows() * c.v_dim, sets),
      output_dot(c.statistics(), sets),
      query_sum(c.query_rows() * c.qk_dim, sets),
      key_by_head(std::max(rows_by_head(c) * c.qk_dim, std::int64_t{1}), sets),
      value_by_head(std::max(rows_by_head(c) * c.v_dim, std::int64_t{1}), sets) {}

std::int64_t bytes_of(const AttentionCase& c) {
  const std::int64_t gradients = 2 * (c.query_rows() + c.key_rows() + rows_by_head(c)) * (c.qk_dim + c.v_dim);
  return forward_bytes(c) + gradients + 4 * (c.query_rows() * c.qk_dim + c.statistics());
}

BackwardArguments arguments_of(const Operands& o, int turn) {
  const ForwardArguments forward = o.forward.arguments(turn);
  const bool sharing = heads_share_keys(o.forward.dims);
  return {forward.shape,
          forward.heads_at_once,
          forward.query,
          forward.key,
          forward.value,
          forward.output,
          bits(o.output_gradient.at(turn)),
          forward.log_sum,
          o.output_dot.at(turn),
          o.query_sum.at(turn),
          bits(sharing ? o.key_by_head.at(turn) : o.key_gradient.at(turn)),
          bits(sharing ? o.value_by_head.at(turn) : o.value_gradient.at(turn)),
          bits(o.query_gradient.at(turn)),
          bits(o.key_gradient.at(turn)),
          bits(o.value_gradient.at(turn))};
}

void launch(const Operands& o, cudaStream_t stream, int turn) {
  const AttentionCase& dims = o.forward.dims;
  const BackwardArguments arguments = arguments_of(o, turn);
  const BackwardGrids grids = backward_grids(dims.shape, dims.qk_dim, dims.v_dim);
  with_dims(dims, [&]<int kQkDim, int kVDim>() {
    using Tile = BackwardTile<kQkDim, kVDim>;
    attention_backward_prepare<kQkDim, kVDim><<<grids.prepare, kPrepareThreads, 0, stream>>>(arguments);
    attention_backward<kQkDim, kVDim><<<grids.main, Tile::kThreads, Tile::kSharedBytes, stream>>>(arguments);
    attention_backward_finish<kQkDim, kVDim><<<grids.finish, kFinishThreads, 0, stream>>>(arguments);
    CHECK_LAUNCH();
  });
}

double scale_of(const AttentionCase& c) { return 1 / std::sqrt(c.qk_dim); }

/// Rows with few keys are left out: their terms cancel to less than their rounding.
constexpr int kFewestKeys = 64;

void check_queries(const Operands& o, int batch, int head) {
  const AttentionCase& c = o.forward.dims;
  const AttentionShape& s = c.shape;
  const int kv_head = head / (s.heads / s.kv_heads);
  const HeadRows keys(o.forward.key.at(0), batch, s.kv_len, s.kv_heads, kv_head, c.qk_dim);
  const HeadRows values(o.forward.value.at(0), batch, s.kv_len, s.kv_heads, kv_head, c.v_dim);
  for (const auto place : sampled_places(s.query_len, 5)) {
    const int i = static_cast<int>(place), visible = i + s.kv_len - s.query_len + 1;
    if (visible < kFewestKeys) continue;
    const auto row = [&](const Operand<__nv_bfloat16>& tensor, int dim) {
      return fetch_row(tensor.at(0), batch, s.query_len, i, s.heads, head, dim);
    };
    const auto attended = attend(row(o.forward.query, c.qk_dim).data(), keys.rows(), values.rows(),
                                 static_cast<std::size_t>(visible), scale_of(c));
    require_close(
        row(o.query_gradient, c.qk_dim),
        query_gradient(attended, row(o.output_gradient, c.v_dim).data(), keys.rows(), values.rows(), scale_of(c)),
        kAttentionTolerance);
  }
}

/// Statistics of one head's queries, as the forward kernel left them.
std::vector<double> fetch_log_sum(const Operands& o, int batch, int head) {
  const AttentionShape& s = o.forward.dims.shape;
  const std::int64_t first = std::int64_t{batch * s.heads + head} * padded_queries(s.query_len);
  return numbers(fetch(o.forward.log_sum.at(0) + first, s.query_len));
}

void check_keys(const Operands& o, int batch, int kv_head) {
  const AttentionCase& c = o.forward.dims;
  const AttentionShape& s = c.shape;
  const int sharing = s.heads / s.kv_heads;
  const auto row = [&](const Operand<__nv_bfloat16>& tensor, std::int64_t j, int dim) {
    return fetch_row(tensor.at(0), batch, s.kv_len, static_cast<int>(j), s.kv_heads, kv_head, dim);
  };
  const auto places = sampled_places(s.kv_len, 4);
  const KeyGradient none{std::vector<double>(static_cast<std::size_t>(c.qk_dim)),
                         std::vector<double>(static_cast<std::size_t>(c.v_dim))};
  std::vector<KeyGradient> expected(places.size(), none);
  for (int head = kv_head * sharing; head < (kv_head + 1) * sharing; ++head) {
    const auto all = [&](const Operand<__nv_bfloat16>& tensor, int dim) {
      return HeadRows(tensor.at(0), batch, s.query_len, s.heads, head, dim);
    };
    const HeadRows query = all(o.forward.query, c.qk_dim), output = all(o.forward.output, c.v_dim),
                   gradient = all(o.output_gradient, c.v_dim);
    const auto log_sum = fetch_log_sum(o, batch, head);
    for (std::size_t i = 0; i < places.size(); ++i)
      add_queries(
          expected[i], row(o.forward.key, places[i], c.qk_dim).data(), row(o.forward.value, places[i], c.v_dim).data(),
          {query.rows(), output.rows(), gradient.rows(), log_sum.data(), log_sum.size()},
          static_cast<std::size_t>(std::max<std::int64_t>(places[i] - (s.kv_len - s.query_len), 0)), scale_of(c));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    require_close(row(o.key_gradient, places[i], c.qk_dim), expected[i].key, kAttentionTolerance);
    require_close(row(o.value_gradient, places[i], c.v_dim), expected[i].value, kAttentionTolerance);
  }
}

Kernel prepare(const Bench& bench, const Case& c) {
  const AttentionCase dims = attention_case(c);
  allow_forward(dims, bench.device);
  with_dims(dims, [&]<int kQkDim, int kVDim>() {
    allow_shared(attention_backward<kQkDim, kVDim>, BackwardTile<kQkDim, kVDim>::kSharedBytes, bench.device);
  });
  const int sets = cold_sets(bench.device, bytes_of(dims));
  auto o = std::make_shared<Operands>(dims, sets);
  o->forward.fill_inputs(bench.stream);
  fill(o->output_gradient, 4, -1, 1, bench.stream);
  for (int set = 0; set < sets; ++set) launch_forward(o->forward, bench.stream, set);
  return {[o](cudaStream_t stream, int turn) { launch(*o, stream, turn); },
          [o](cudaStream_t stream) {
            launch(*o, stream, 0);
            CHECK_STATUS(cudaStreamSynchronize(stream));
            const AttentionShape& s = o->forward.dims.shape;
            check_queries(*o, 0, 0);
            check_queries(*o, s.batch - 1, s.heads - 1);
            check_keys(*o, s.batch - 1, s.kv_heads - 1);
          }};
}

}  // namespace

Fact attention_backward_fact() {
  return kernel_fact(
      "attention_backward", needs_ampere, [](const Device&, Preset preset) { return attention_backward_cases(preset); },
      prepare);
}

}  // namespace moeline::bench
