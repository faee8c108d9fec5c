// The three kernels of attention's backward pass, on a machine of fibers, after the forward kernel.
#include "calib/bench/attention/attention_backward_kernel.cuh"

#include <doctest/doctest.h>

#include "tests/calib/bench/run_forward.hpp"

TEST_SUITE("calib/bench/attention_backward") {

using namespace moeline::testing;
namespace bench = moeline::bench;

namespace {

struct Gradients {
  Bf16Tensor query, key, value;
};

template <int kQkDim, int kVDim>
Gradients run_backward(const AttentionProblem& p, int heads_at_once) {
  const bench::AttentionShape& shape = p.shape;
  const ForwardRun forward = run_forward<kQkDim, kVDim>(p, heads_at_once);
  const bool sharing = shape.heads != shape.kv_heads;
  Gradients result{Bf16Tensor(p.query.size()), Bf16Tensor(p.key.size()), Bf16Tensor(p.value.size())};
  const std::size_t rows_by_head = p.key_rows() * size(shape.heads / shape.kv_heads);
  Bf16Tensor key_by_head(rows_by_head * size(kQkDim));
  Bf16Tensor value_by_head(rows_by_head * size(kVDim));
  std::vector<float> output_dot(forward.log_sum.size()), query_sum(p.query.size(), std::nanf(""));
  const bench::BackwardArguments arguments{shape,
                                           heads_at_once,
                                           p.query.data(),
                                           p.key.data(),
                                           p.value.data(),
                                           forward.output.data(),
                                           p.output_gradient.data(),
                                           forward.log_sum.data(),
                                           output_dot.data(),
                                           query_sum.data(),
                                           sharing ? key_by_head.data() : result.key.data(),
                                           sharing ? value_by_head.data() : result.value.data(),
                                           result.query.data(),
                                           result.key.data(),
                                           result.value.data()};
  const bench::BackwardGrids grids = bench::backward_grids(shape, kQkDim, kVDim);
  using Tile = bench::BackwardTile<kQkDim, kVDim>;
  simt::launch({grids.prepare, 1, 1}, bench::kPrepareThreads, 0,
               [&] { bench::attention_backward_prepare<kQkDim, kVDim>(arguments); });
  simt::launch({grids.main, 1, 1}, Tile::kThreads, Tile::kSharedBytes,
               [&] { bench::attention_backward<kQkDim, kVDim>(arguments); });
  simt::launch({grids.finish, 1, 1}, bench::kFinishThreads, 0,
               [&] { bench::attention_backward_finish<kQkDim, kVDim>(arguments); });
  return result;
}

// Outputs, weights, score gradients and results are rounded to BF16 once each.
constexpr double kTolerance = 0.04;

template <int kQkDim, int kVDim>
void check_gradients(const bench::AttentionShape& shape, int heads_at_once = 1) {
  const AttentionProblem problem(shape, kQkDim, kVDim);
  const Gradients got = run_backward<kQkDim, kVDim>(problem, heads_at_once);
  const AttentionReference reference(problem);
  WorstError query(got.query), key(got.key), value(got.value);
  for (int batch = 0; batch < shape.batch; ++batch) {
    for (int head = 0; head < shape.heads; ++head)
      for (int i = 0; i < shape.query_len; ++i)
        query.add(reference.query_row(batch, head, i), reference.query_gradient(batch, head, i));
    for (int head = 0; head < shape.kv_heads; ++head)
      for (int j = 0; j < shape.kv_len; ++j) {
        const bench::KeyGradient expected = reference.key_gradient(batch, head, j);
        key.add(reference.key_row(batch, head, j), expected.key);
        value.add(reference.key_row(batch, head, j), expected.value);
      }
  }
  CHECK(query.value() < kTolerance);
  CHECK(key.value() < kTolerance);
  CHECK(value.value() < kTolerance);
}

}  // namespace

TEST_CASE("attention backward: MLA's head dimensions, several tiles of keys and queries, none of them full") {
  check_gradients<192, 128>({1, 2, 2, 170, 170}, 2);
}

TEST_CASE("attention backward: heads that share keys add up their gradients") {
  check_gradients<128, 128>({2, 4, 2, 70, 70}, 3);
}

TEST_CASE("attention backward: a chunk of queries after keys of its past") {
  check_gradients<192, 128>({1, 1, 1, 33, 161});
  check_gradients<128, 128>({1, 1, 1, 129, 192});
}

TEST_CASE("attention backward: one query, one key: the score has no gradient") {
  const AttentionProblem problem({1, 1, 1, 1, 1}, 128, 128);
  const Gradients got = run_backward<128, 128>(problem, 1);
  for (std::size_t i = 0; i < 128; ++i) {
    CHECK(bench::to_float(got.value[i]) == doctest::Approx(bench::to_float(problem.output_gradient[i])));
    CHECK(std::abs(bench::to_float(got.query[i])) < 0.02f);
    CHECK(std::abs(bench::to_float(got.key[i])) < 0.02f);
  }
}

}  // TEST_SUITE("calib/bench/attention_backward")
