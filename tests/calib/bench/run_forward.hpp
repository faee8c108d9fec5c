// Runs the forward attention kernel on the machine of fibers.
#pragma once

#include "calib/bench/attention/attention_forward_kernel.cuh"
#include "tests/calib/bench/attention_data.hpp"
#include "tests/support/simt.hpp"

namespace moeline::testing {

struct ForwardRun {
  Bf16Tensor output;
  std::vector<float> log_sum;
};

template <int kQkDim, int kVDim>
ForwardRun run_forward(const AttentionProblem& problem, int heads_at_once) {
  const bench::AttentionShape& shape = problem.shape;
  ForwardRun run{Bf16Tensor(problem.output_gradient.size()),
                 std::vector<float>(size(shape.batch * shape.heads * bench::padded_queries(shape.query_len)))};
  const bench::ForwardArguments arguments{shape,
                                          heads_at_once,
                                          problem.query.data(),
                                          problem.key.data(),
                                          problem.value.data(),
                                          run.output.data(),
                                          run.log_sum.data()};
  using Tile = bench::ForwardTile<kQkDim, kVDim>;
  const int tiles = bench::divide_up(shape.query_len, Tile::kQueries);
  simt::launch({static_cast<unsigned>(shape.batch * shape.heads * tiles), 1, 1}, Tile::kThreads, Tile::kSharedBytes,
               [&] { bench::attention_forward<kQkDim, kVDim>(arguments); });
  return run;
}

}  // namespace moeline::testing
