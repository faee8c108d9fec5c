// Where a sequence of kernels begins anew.
#include "trace/steps.hpp"

#include <doctest/doctest.h>

TEST_SUITE("trace/repetition") {

using namespace moeline;

namespace {

using Sequence = std::vector<std::uint32_t>;

Sequence repeated(const Sequence& once, int times) {
  Sequence all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), once.begin(), once.end());
  return all;
}

using Starts = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a sequence that repeats is cut where it begins anew, an element more or less aside") {
  const Sequence once = {1, 2, 3, 2, 4, 5, 6, 2, 7, 8};
  CHECK(repetitions(repeated(once, 3)) == Starts{0, 10, 20, 30});
  CHECK(repetitions(repeated(once, 5)) == Starts{0, 10, 20, 30, 40, 50});
  CHECK(repetitions(repeated(once, 2)).empty());
  Sequence longer = repeated(once, 4);
  longer.insert(longer.begin() + 16, 9);  // one more kernel in the second layer
  CHECK(repetitions(longer) == Starts{0, 10, 21, 31, 41});
}

TEST_CASE("the last repetition counts where it is whole, whatever comes behind") {
  const Sequence once = {1, 2, 3, 2, 4, 5, 6, 2, 7, 8};
  Sequence cut_off = repeated(once, 4);
  cut_off.resize(34);
  CHECK(repetitions(cut_off) == Starts{0, 10, 20, 30});
  Sequence more = repeated(once, 3);
  more.insert(more.end(), {20, 21, 22});
  CHECK(repetitions(more) == Starts{0, 10, 20, 30});
}

TEST_CASE("what does not repeat, or repeats too shortly, has no layers") {
  CHECK(repetitions({}).empty());
  CHECK(repetitions({1, 2, 3}).empty());
  CHECK(repetitions(repeated({1}, 100)).empty());
  CHECK(repetitions(repeated({1, 2}, 50)).empty());
  Sequence unlike;
  for (std::uint32_t i = 0; i < 100; ++i) unlike.push_back(i % 10 == 0 ? 0 : i);
  CHECK(repetitions(unlike).empty());
}

TEST_CASE("a hundred thousand elements are searched in a moment") {
  Sequence sequence;
  std::uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) sequence.push_back((state = state * 1'664'525 + 1'013'904'223) >> 22U);
  CHECK(repetitions(sequence).empty());
}

}  // TEST_SUITE("trace/repetition")
