// MLA's decode kernel and the merge of its splits, on a machine of fibers.
#include "calib/bench/mla_decode_plan.hpp"

#include <doctest/doctest.h>

#include "tests/calib/bench/attention_data.hpp"
#include "tests/support/simt.hpp"

using namespace moeline::testing;
namespace bench = moeline::bench;

namespace {

// One latent head is a key of 576 and, without the tail, a value of 512 for every head of a query.
std::vector<double> reference_decode(const bench::DecodeShape& s, const Bf16Tensor& query, const Bf16Tensor& cache,
                                     double scale) {
  const auto dim = AttentionProblem::dim;
  std::vector<double> output(query.size() / bench::kLatentKeyDim * bench::kLatentDim);
  for (int row = 0; row < s.batch * s.query_len * s.heads; ++row) {
    const int batch = row / (s.query_len * s.heads), position = row / s.heads % s.query_len;
    const int visible = s.kv_len - s.query_len + 1 + position;
    const bench::Bf16* own = query.data() + dim(row) * bench::kLatentKeyDim;
    const bench::Bf16* keys = cache.data() + dim(batch) * dim(s.kv_len) * bench::kLatentKeyDim;
    std::vector<double> weights(dim(visible));
    for (int j = 0; j < visible; ++j)
      weights[dim(j)] = scale * dot(own, keys + j * bench::kLatentKeyDim, bench::kLatentKeyDim);
    weights = softmax(weights);
    for (int j = 0; j < visible; ++j)
      add_scaled(output.data() + dim(row) * bench::kLatentDim, keys + j * bench::kLatentKeyDim, weights[dim(j)],
                 bench::kLatentDim);
  }
  return output;
}

void launch_decode(const bench::DecodePlan& plan, const bench::DecodeArguments& arguments) {
  const auto run = [&]<int kRows>() {
    using Tile = bench::DecodeTile<kRows>;
    simt::launch({static_cast<unsigned>(plan.row_tiles), static_cast<unsigned>(plan.splits),
                  static_cast<unsigned>(arguments.shape.batch)},
                 Tile::kThreads, Tile::kSharedBytes, [&] { bench::mla_decode<kRows>(arguments); });
  };
  if (plan.rows_per_block == 16) return run.operator()<16>();
  if (plan.rows_per_block == 32) return run.operator()<32>();
  run.operator()<64>();
}

double decode_error(const bench::DecodeShape& shape, int tiles_per_split) {
  const auto dim = AttentionProblem::dim;
  const std::size_t rows = dim(shape.batch) * dim(shape.query_len) * dim(shape.heads);
  const Bf16Tensor query = random_tensor(rows * bench::kLatentKeyDim, 1);
  const Bf16Tensor cache = random_tensor(dim(shape.batch) * dim(shape.kv_len) * bench::kLatentKeyDim, 2);
  bench::DecodePlan plan = bench::plan_decode(shape, 132);
  plan.tiles_per_split = tiles_per_split;
  plan.splits = bench::divide_up(bench::divide_up(shape.kv_len, bench::kDecodeKeys), tiles_per_split);
  const bool split = plan.splits > 1;
  Bf16Tensor output(rows * bench::kLatentDim);
  std::vector<float> split_output(dim(plan.splits) * rows * bench::kLatentDim), split_log_sum(dim(plan.splits) * rows);
  const float scale = 0.2f;  // a softmax with a few keys that matter
  const bench::DecodeArguments arguments{shape,
                                         scale,
                                         tiles_per_split,
                                         query.data(),
                                         cache.data(),
                                         output.data(),
                                         split ? split_output.data() : nullptr,
                                         split ? split_log_sum.data() : nullptr};
  launch_decode(plan, arguments);
  if (split)
    simt::launch({static_cast<unsigned>(rows), 1, 1}, bench::kMergeThreads, 0,
                 [&] { bench::mla_decode_merge(arguments, plan.splits); });
  return worst_error(output, reference_decode(shape, query, cache, double{scale}));
}

constexpr double kTolerance = 4e-3;

}  // namespace

TEST_CASE("MLA decode: 128 heads in two blocks, one part of the cache") {
  CHECK(decode_error({1, 128, 1, 130}, 3) < kTolerance);
}

TEST_CASE("MLA decode: 16 heads, one query or two, parts of the cache of unequal size") {
  CHECK(decode_error({2, 16, 1, 200}, 3) < kTolerance);
  CHECK(decode_error({1, 16, 2, 200}, 1) < kTolerance);
}

TEST_CASE("MLA decode: heads that do not fill a block") { CHECK(decode_error({1, 20, 2, 70}, 2) < kTolerance); }

TEST_CASE("MLA decode: the first of two queries sees no key of the last part") {
  CHECK(decode_error({1, 64, 2, 129}, 1) < kTolerance);
}

TEST_CASE("MLA decode: a cache of one key") { CHECK(decode_error({1, 16, 1, 1}, 1) < kTolerance); }

TEST_CASE("MLA decode is split where the batch alone leaves SMs idle, and not where it fills them") {
  const bench::DecodePlan alone = bench::plan_decode({1, 128, 1, 32768}, 132);
  CHECK(alone.rows_per_block == 64);
  CHECK(alone.row_tiles * alone.splits > 100);
  CHECK(alone.row_tiles * alone.splits <= 132);
  CHECK(bench::plan_decode({132, 64, 1, 4096}, 132).splits == 1);
  CHECK(bench::plan_decode({1, 16, 1, 64}, 132).splits == 1);
}
