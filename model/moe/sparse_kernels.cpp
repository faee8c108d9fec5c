#include "moe/sparse_kernels.hpp"

#include <algorithm>
#include <cmath>

#include "moe/kernels.hpp"

namespace moeline {

using namespace kernels;

double causal_pairs(double batch, double query_len, double kv_len) {
  return batch * query_len * (kv_len - (query_len - 1) / 2);
}

Operator index_scores(const IndexShape& shape, double keys) {
  const bool fp8 = shape.precision == Precision::fp8;
  const double number = number_bytes(shape.precision);
  Operator op;
  op.name = "indexer scores";
  op.family = Family::index_scores;
  op.precision = shape.precision;
  op.attention = {.batch = shape.batch,
                  .heads = shape.heads,
                  .kv_heads = 1,
                  .query_len = shape.query_len,
                  .kv_len = shape.kv_len,
                  .qk_dim = shape.dim,
                  .v_dim = 0,
                  .math = shape.precision};
  op.flops = 2 * shape.pairs * shape.heads * shape.dim;
  const double queries = shape.batch * shape.query_len * shape.heads * shape.dim * number;
  op.bytes = queries + keys * (shape.dim * number + (fp8 ? kFp32 : 0)) + shape.pairs / shape.block * kFp32;
  if (fp8 && shape.block == 1) op.measured_as = "indexer_scores";
  return op;
}

Operator index_choice(const IndexShape& shape) {
  const double queries = shape.batch * shape.query_len, scores = shape.pairs / shape.block;
  const double chosen = std::min(scores, queries * shape.top_k);
  Operator op = memory(Family::streaming, "top-k of the scores", (scores + chosen) * kFp32);
  op.blocks = static_cast<int>(std::ceil(std::max(1.0, queries)));
  op.items = scores;
  op.m = queries;
  op.n = shape.top_k;
  op.hot = true;  // the kernel in front of it wrote the scores
  op.attention = {.batch = shape.batch, .query_len = shape.query_len, .kv_len = shape.kv_len / shape.block};
  if (shape.block == 1) op.measured_as = "indexer_choice";
  return op;
}

Operator mix_streams(StreamPart part, double rows, double hidden, double streams) {
  const bool pre = part == StreamPart::pre;
  Operator op = pre ? norm("mix hidden states", rows, hidden, streams + 1)
                    : norm("add to hidden states", rows, hidden, 2 * streams + 1);
  op.m = rows;
  op.k = hidden;
  op.measured_as = pre ? "hyper_connection_pre" : "hyper_connection_post";
  return op;
}

}  // namespace moeline
