// Where a sequence of kernels begins anew.
#include "trace/repetitions.hpp"

#include <doctest/doctest.h>

#include <algorithm>

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

// Where each repetition begins, and where the last one ends.
Starts starts_of(const Sequence& sequence, const std::set<std::uint32_t>& attention = {}) {
  Starts starts;
  for (const Repetition& each : repetitions(sequence, attention)) {
    if (starts.empty()) starts.push_back(each.begin);
    CHECK(starts.back() == each.begin);
    starts.push_back(each.end);
  }
  return starts;
}

Sequence joined(const std::vector<Sequence>& parts) {
  Sequence all;
  for (const Sequence& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Kernels of a decoder's layer by what they are.
enum Kernel : std::uint32_t {
  norm = 1,
  qkv,
  rope,
  full_attention,
  sliding_attention,
  reduce,
  out,
  router,
  top_k,
  sort,
  experts_up,
  activation,
  experts_down,
  finalize,
  dense_up,
  dense_down,
  linear_in,
  convolution,
  delta_rule,
  gated_norm,
  embedding,
  positions,
  vocabulary,
  sampling
};
const std::set<std::uint32_t> kAttention = {full_attention, sliding_attention};

const Sequence kPrologue = {positions, embedding};
const Sequence kEpilogue = {norm, vocabulary, sampling, sampling, sampling};
const Sequence kExperts = {norm, router, top_k, sort, experts_up, activation, experts_down, finalize};
const Sequence kDense = {norm, dense_up, activation, dense_down};
const Sequence kFull = {norm, qkv, rope, full_attention, reduce, out};
const Sequence kSliding = {norm, qkv, rope, sliding_attention, out};
const Sequence kLinear = {norm, linear_in, convolution, delta_rule, gated_norm, out};

// Layers in order, between what comes before and behind them.
Sequence model(const std::vector<Sequence>& layers) { return joined({kPrologue, joined(layers), kEpilogue}); }

// Groups of `most` layers of one kind and one of another, as long as `layers` last.
std::vector<Sequence> in_turn(const Sequence& common, std::size_t most, const Sequence& rare, std::size_t layers) {
  std::vector<Sequence> all;
  for (std::size_t i = 0; i < layers; ++i) all.push_back(i % (most + 1) < most ? common : rare);
  return all;
}

// As the layers were put in.
Starts put_in(const std::vector<Sequence>& layers) {
  Starts starts = {kPrologue.size()};
  for (const Sequence& layer : layers) starts.push_back(starts.back() + layer.size());
  return starts;
}

}  // namespace

TEST_CASE("a sequence that repeats is cut where it begins anew, an element more or less aside") {
  const Sequence once = {1, 2, 3, 2, 4, 5, 6, 2, 7, 8};
  CHECK(starts_of(repeated(once, 3)) == Starts{0, 10, 20, 30});
  CHECK(starts_of(repeated(once, 5)) == Starts{0, 10, 20, 30, 40, 50});
  CHECK(starts_of(repeated(once, 2)).empty());
  Sequence longer = repeated(once, 4);
  longer.insert(longer.begin() + 16, 9);  // one more kernel in the second layer
  CHECK(starts_of(longer) == Starts{0, 10, 21, 31, 41});
}

TEST_CASE("the last repetition counts where it is whole, whatever comes behind") {
  const Sequence once = {1, 2, 3, 2, 4, 5, 6, 2, 7, 8};
  Sequence cut_off = repeated(once, 4);
  cut_off.resize(34);
  CHECK(starts_of(cut_off) == Starts{0, 10, 20, 30});
  Sequence more = repeated(once, 3);
  more.insert(more.end(), {20, 21, 22});
  CHECK(starts_of(more) == Starts{0, 10, 20, 30});
}

TEST_CASE("what does not repeat, or repeats too shortly, has no layers") {
  CHECK(starts_of({}).empty());
  CHECK(starts_of({1, 2, 3}).empty());
  CHECK(starts_of(repeated({1}, 100)).empty());
  CHECK(starts_of(repeated({1, 2}, 50)).empty());
  Sequence unlike;
  for (std::uint32_t i = 0; i < 100; ++i) unlike.push_back(i % 10 == 0 ? 0 : i);
  CHECK(starts_of(unlike).empty());
}

TEST_CASE("layers whose attention slides and is full in turn are layers each, by whatever ratio") {
  const Sequence common = joined({kSliding, kExperts});
  const Sequence rare = joined({kFull, kExperts});
  for (const std::size_t ratio : {1U, 2U, 3U, 5U}) {
    for (const std::size_t number : {12U, 24U, 47U}) {
      CAPTURE(ratio);
      CAPTURE(number);
      const std::vector<Sequence> layers = in_turn(common, ratio, rare, number);
      CHECK(starts_of(model(layers), kAttention) == put_in(layers));
    }
  }
}

TEST_CASE("linear attention in most layers and full attention now and then make layers of each") {
  const Sequence common = joined({kLinear, kExperts});
  const Sequence rare = joined({kFull, kExperts});
  for (const std::size_t ratio : {2U, 3U, 5U, 7U}) {
    CAPTURE(ratio);
    const std::vector<Sequence> layers = in_turn(common, ratio, rare, 48);
    CHECK(starts_of(model(layers), kAttention) == put_in(layers));
    CHECK(starts_of(model(layers)) == put_in(layers));  // though nothing is known to be attention
  }
}

TEST_CASE("dense layers before those with experts are layers, and so are dense ones in between") {
  const Sequence dense = joined({kFull, kDense});
  const Sequence experts = joined({kFull, kExperts});
  for (const std::size_t first : {1U, 3U}) {
    for (const std::size_t number : {8U, 27U, 61U}) {
      CAPTURE(first);
      CAPTURE(number);
      std::vector<Sequence> layers(number, experts);
      std::fill_n(layers.begin(), first, dense);
      CHECK(starts_of(model(layers), kAttention) == put_in(layers));
    }
  }
  const std::vector<Sequence> in_between = in_turn(dense, 1, experts, 24);
  CHECK(starts_of(model(in_between), kAttention) == put_in(in_between));
}

TEST_CASE("attention and feed-forward network of one layer are no two layers, though most of their kernels are alike") {
  const Sequence slow_norm = {31, 32, 33, 34, 35};
  const Sequence attention = joined({slow_norm, {40, rope, full_attention, 40, 41}});
  const Sequence network = joined({slow_norm, {40, activation, 40, 41}});
  std::vector<Sequence> layers(20, joined({attention, network}));
  CHECK(starts_of(model(layers), kAttention) == put_in(layers));
  CHECK(starts_of(model(layers)) == put_in(layers));
}

TEST_CASE("without a word on what is attention two kinds in turn that differ are taken as pairs") {
  const std::vector<Sequence> layers = in_turn(joined({kSliding, kDense}), 1, joined({kFull, kDense}), 24);
  CHECK(repetitions(model(layers)).size() == 12);
  CHECK(repetitions(model(layers), kAttention).size() == 24);
}

TEST_CASE("what stands before the first layer and behind the last is none, though it has a kernel of theirs") {
  // Megatron's GPT with unfused attention: a copy stands in each layer, before the first and behind the last.
  constexpr std::uint32_t kCopy = 50;
  const Sequence layer = {norm, qkv, 51, 52, 53, kCopy, out, 54, norm, 55, dense_up, 56, 55, dense_down, 54};
  for (const std::size_t number : {12U, 40U}) {
    const Sequence all = joined({{positions, embedding, kCopy},
                                 joined(std::vector<Sequence>(number, layer)),
                                 {norm, 55, vocabulary, kCopy, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69}});
    const Starts starts = starts_of(all);
    REQUIRE(starts.size() == number + 1);
    CHECK(starts.front() == 3);
    CHECK(starts.back() == 3 + number * layer.size());
  }
}

TEST_CASE("a repetition that goes on with something else ends where the others do") {
  const Sequence once = {1, 2, 3, 4, 5, 6, 7, 8};
  Sequence sequence = repeated(once, 24);
  for (std::uint32_t i = 0; i < 20; ++i) sequence.insert(sequence.begin() + 48, 100 + i);
  const std::vector<Repetition> found = repetitions(sequence);
  REQUIRE(found.size() == 24);
  CHECK(found[5] == Repetition{40, 48});
  CHECK(found[6] == Repetition{68, 76});
}

TEST_CASE("a hundred thousand elements are searched in a moment") {
  Sequence sequence;
  std::uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) sequence.push_back((state = state * 1'664'525 + 1'013'904'223) >> 22U);
  CHECK(starts_of(sequence).empty());
}

}  // TEST_SUITE("trace/repetition")
