// The forward attention kernel itself, on a machine of fibers.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/calib/bench/run_forward.hpp"

TEST_SUITE("calib/bench/attention_forward") {

using namespace moeline::testing;
namespace bench = moeline::bench;

namespace {

// Weights and output are rounded to BF16 once each, 1/512 of their size at worst; the largest of a row's elements is
// some three times its root mean square.
constexpr double kTolerance = 0.015;

template <int kQkDim, int kVDim>
void check_forward(const bench::AttentionShape& shape, int heads_at_once = 1) {
  const AttentionProblem problem(shape, kQkDim, kVDim);
  const ForwardRun run = run_forward<kQkDim, kVDim>(problem, heads_at_once);
  const AttentionReference reference(problem);
  WorstError output(run.output);
  double log_sum_error = 0;
  for (int batch = 0; batch < shape.batch; ++batch)
    for (int head = 0; head < shape.heads; ++head)
      for (int i = 0; i < shape.query_len; ++i) {
        const bench::Attended& expected = reference.attended(batch, head, i);
        const int padded = bench::padded_queries(shape.query_len);
        const double log_sum = double{run.log_sum[size((batch * shape.heads + head) * padded + i)]};
        output.add(reference.query_row(batch, head, i), expected.output);
        log_sum_error = std::max(log_sum_error, std::abs(log_sum - expected.log_sum));
      }
  CHECK(output.value() < kTolerance);
  CHECK(log_sum_error < 1e-4);
}

}  // namespace

TEST_CASE("attention forward: MLA's head dimensions, several query tiles, none of them full") {
  check_forward<192, 128>({1, 2, 2, 200, 200}, 2);
}

TEST_CASE("attention forward: grouped queries read the key head of their group") {
  check_forward<128, 128>({2, 4, 2, 70, 70}, 3);
}

TEST_CASE("attention forward: a chunk of queries sees all keys before it") {
  check_forward<192, 128>({1, 1, 1, 33, 161});
  check_forward<128, 128>({1, 1, 1, 129, 192});
}

TEST_CASE("attention forward: one query, one key") { check_forward<128, 128>({1, 1, 1, 1, 1}); }

TEST_CASE("attention's blocks take every tile of every head once, the longest of some heads first") {
  const bench::AttentionShape shape{2, 5, 5, 1, 1};
  constexpr int kTiles = 3, kHeadsAtOnce = 4;  // ten heads: four, four and two
  std::set<std::array<int, 3>> seen;
  int rank = 0;
  for (int block = 0; block < 10 * kTiles; ++block) {
    const bench::Assignment work = bench::assign(block, shape, kTiles, kHeadsAtOnce);
    CHECK((work.batch < 2 && work.head < 5 && work.rank < kTiles));
    seen.insert({work.batch, work.head, work.rank});
    if (block % (kTiles * kHeadsAtOnce) != 0) CHECK(work.rank >= rank);
    rank = work.rank;
  }
  CHECK(seen.size() == 10 * kTiles);
}

}  // TEST_SUITE("calib/bench/attention_forward")
