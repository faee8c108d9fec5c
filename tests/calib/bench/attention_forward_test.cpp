// The forward attention kernel itself, on a machine of fibers.
#include <doctest/doctest.h>

#include "tests/calib/bench/run_forward.hpp"

using namespace moeline::testing;
namespace bench = moeline::bench;

namespace {

template <int kQkDim, int kVDim>
double forward_error(const bench::AttentionShape& shape, int heads_at_once = 1) {
  const AttentionProblem problem(shape, kQkDim, kVDim);
  return worst_error(run_forward<kQkDim, kVDim>(problem, heads_at_once).output, reference_attention(problem).output);
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
