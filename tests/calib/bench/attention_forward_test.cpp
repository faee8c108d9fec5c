// The forward attention kernel itself, on a machine of fibers.
#include "calib/bench/attention_forward_kernel.cuh"

#include <doctest/doctest.h>

#include "tests/calib/bench/attention_data.hpp"
#include "tests/support/simt.hpp"

using namespace moeline::testing;

namespace {

template <int kQkDim, int kVDim>
double forward_error(const bench::AttentionShape& shape, int heads_at_once = 1) {
  const AttentionProblem problem(shape, kQkDim, kVDim);
  Bf16Tensor output(problem.output_gradient.size());
  std::vector<float> log_sum(problem.rows(bench::padded_queries(shape.query_len), shape.heads));
  const bench::ForwardArguments arguments{
      shape,         heads_at_once, problem.query.data(), problem.key.data(), problem.value.data(),
      output.data(), log_sum.data()};
  using Tile = bench::ForwardTile<kQkDim, kVDim>;
  const int tiles = bench::divide_up(shape.query_len, Tile::kQueries);
  simt::launch({static_cast<unsigned>(shape.batch * shape.heads * tiles), 1, 1}, Tile::kThreads, Tile::kSharedBytes,
               [&] { bench::attention_forward<kQkDim, kVDim>(arguments); });
  return worst_error(output, reference_attention(problem).output);
}

constexpr double kTolerance = 4e-3;

}  // namespace

TEST_CASE("attention forward: MLA's head dimensions, several query tiles, none of them full") {
  CHECK(forward_error<192, 128>({1, 2, 2, 200, 200}, 2) < kTolerance);
}

TEST_CASE("attention forward: grouped queries read the key head of their group") {
  CHECK(forward_error<128, 128>({2, 4, 2, 70, 70}, 3) < kTolerance);
}

TEST_CASE("attention forward: a chunk of queries sees all keys before it") {
  CHECK(forward_error<192, 128>({1, 1, 1, 33, 161}) < kTolerance);
  CHECK(forward_error<128, 128>({1, 1, 1, 129, 192}) < kTolerance);
}

TEST_CASE("attention forward: one query, one key") { CHECK(forward_error<128, 128>({1, 1, 1, 1, 1}) < kTolerance); }
