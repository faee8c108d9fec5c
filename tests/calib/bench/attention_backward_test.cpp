// The three kernels of attention's backward pass, on a machine of fibers, after the forward kernel.
#include "calib/bench/attention_backward_kernel.cuh"

#include <doctest/doctest.h>

#include "tests/calib/bench/run_forward.hpp"

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
  const auto dim = AttentionProblem::dim;
  Gradients result{Bf16Tensor(p.query.size()), Bf16Tensor(p.key.size()), Bf16Tensor(p.value.size())};
  Bf16Tensor key_by_head(p.rows(shape.kv_len, shape.heads) * dim(kQkDim));
  Bf16Tensor value_by_head(p.rows(shape.kv_len, shape.heads) * dim(kVDim));
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

constexpr double kTolerance = 6e-3;

template <int kQkDim, int kVDim>
void check_gradients(const bench::AttentionShape& shape, int heads_at_once = 1) {
  const AttentionProblem problem(shape, kQkDim, kVDim);
  const Gradients got = run_backward<kQkDim, kVDim>(problem, heads_at_once);
  const AttentionResult expected = reference_attention(problem);
  CHECK(worst_error(got.query, expected.query_gradient) < kTolerance);
  CHECK(worst_error(got.key, expected.key_gradient) < kTolerance);
  CHECK(worst_error(got.value, expected.value_gradient) < kTolerance);
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
  CHECK(worst_error(got.value, reference_attention(problem).value_gradient) < kTolerance);
  for (bench::Bf16 x : got.query) CHECK(std::abs(bench::to_float(x)) < 0.02f);
}
