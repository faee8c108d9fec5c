// MLA's decode kernel and the merge of its splits, on a machine of fibers.
#include "calib/bench/attention/mla_decode_plan.hpp"

#include <doctest/doctest.h>

#include "tests/calib/bench/attention_data.hpp"
#include "tests/support/simt.hpp"

TEST_SUITE("calib/bench/mla_decode") {

using namespace moeline::testing;
namespace bench = moeline::bench;

namespace {

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

// Of all rows the largest error.
double decode_error(const bench::DecodeShape& shape, int tiles_per_split) {
  const std::size_t rows_of_batch = size(shape.query_len * shape.heads), rows = size(shape.batch) * rows_of_batch;
  const Bf16Tensor query = random_tensor(rows * bench::kLatentKeyDim, 1);
  const Bf16Tensor cache = random_tensor(size(shape.batch * shape.kv_len) * bench::kLatentKeyDim, 2);
  bench::DecodePlan plan = bench::plan_decode(shape, 132);
  plan.tiles_per_split = tiles_per_split;
  plan.splits = bench::divide_up(bench::divide_up(shape.kv_len, bench::kDecodeKeys), tiles_per_split);
  const bool split = plan.splits > 1;
  Bf16Tensor output(rows * bench::kLatentDim);
  std::vector<float> split_output(size(plan.splits) * rows * bench::kLatentDim),
      split_log_sum(size(plan.splits) * rows);
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

  const std::vector<double> queries = numbers(query), latents = numbers(cache);
  WorstError error(output);
  for (std::size_t row = 0; row < rows; ++row) {
    const double* of_batch = latents.data() + row / rows_of_batch * size(shape.kv_len) * bench::kLatentKeyDim;
    const bench::Rows keys{of_batch, bench::kLatentKeyDim, bench::kLatentKeyDim};
    const bench::Rows values{of_batch, bench::kLatentKeyDim, bench::kLatentDim};
    const std::size_t position = row / size(shape.heads) % size(shape.query_len);
    const bench::Attended expected = bench::attend(queries.data() + row * bench::kLatentKeyDim, keys, values,
                                                   size(shape.kv_len - shape.query_len + 1) + position, double{scale});
    error.add(row, expected.output);
  }
  return error.value();
}

constexpr double kTolerance = 0.015;  // as of the forward kernel

}  // namespace

TEST_CASE("MLA decode: 128 heads in two blocks, one part of the cache") {
  CHECK(decode_error({1, 128, 1, 130}, 3) < kTolerance);
}

TEST_CASE("MLA decode: 16 heads, one query or two, parts of the cache of unequal size") {
  CHECK(decode_error({2, 16, 1, 200}, 3) < kTolerance);
  CHECK(decode_error({1, 16, 2, 200}, 1) < kTolerance);
}

TEST_CASE("MLA decode: 128 heads of two queries, in four blocks") {
  CHECK(decode_error({1, 128, 2, 100}, 1) < kTolerance);
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

}  // TEST_SUITE("calib/bench/mla_decode")
