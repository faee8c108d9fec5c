// The machine of fibers keeps its promises: else a kernel that passes on it says little.
#include "tests/support/simt.hpp"

#include <doctest/doctest.h>

TEST_SUITE("support/simt") {

using namespace moeline::testing;
namespace bench = moeline::bench;

namespace {

void store_own_word() { bench::store_shared(threadIdx.x * 4, static_cast<float>(threadIdx.x)); }
float load_neighbours_word() { return bench::load_shared((threadIdx.x + 1) % 64 * 4); }

void launch(const std::function<void()>& body) { simt::launch({1, 1, 1}, 64, 1024, body); }

}  // namespace

TEST_CASE("simt: a barrier carries what one thread wrote to another") {
  int right = 0;
  launch([&] {
    store_own_word();
    bench::synchronize_block();
    right += load_neighbours_word() == static_cast<float>((threadIdx.x + 1) % 64);
  });
  CHECK(right == 64);
}

TEST_CASE("simt: a missing barrier is found, whichever thread comes first") {
  CHECK_THROWS_AS(launch([] {
                    store_own_word();
                    load_neighbours_word();
                  }),
                  simt::KernelError);
  CHECK_THROWS_AS(launch([] {
                    load_neighbours_word();
                    store_own_word();
                  }),
                  simt::KernelError);
}

TEST_CASE("simt: a barrier that some threads never reach is found") {
  CHECK_THROWS_AS(launch([] {
                    if (threadIdx.x != 5) bench::synchronize_block();
                  }),
                  simt::KernelError);
}

TEST_CASE("simt: a copy lands when it is waited for, not before") {
  alignas(16) const float source[4] = {1, 2, 3, 4};
  CHECK_THROWS_AS(launch([&] {
                    bench::copy_async(threadIdx.x * 16, source, true);
                    bench::load_shared(threadIdx.x * 16);
                  }),
                  simt::KernelError);
  CHECK_THROWS_AS(launch([&] { bench::copy_async(threadIdx.x * 16, source, true); }), simt::KernelError);
  float sum = 0;
  launch([&] {
    bench::copy_async(threadIdx.x * 16, source, threadIdx.x % 2 == 0);
    bench::wait_copies();
    sum += bench::load_shared(threadIdx.x * 16 + 12);
  });
  CHECK(sum == 32 * 4);
}

TEST_CASE("simt: rows of a matrix in the same banks are found") {
  CHECK_THROWS_AS(launch([] {
                    for (unsigned word = 0; word < 4; ++word) bench::store_shared(threadIdx.x * 16 + word * 4, 0.0f);
                    bench::synchronize_block();
                    bench::Fragment matrices;
                    bench::load_matrices(matrices, threadIdx.x % 8 * 128);
                  }),
                  simt::KernelError);
}

TEST_CASE("simt: lanes of a warp at different collectives are found") {
  CHECK_THROWS_AS(launch([] {
                    bench::Fragment a{};
                    float sum[4] = {};
                    if (threadIdx.x % 2 == 0)
                      bench::shuffle_xor(0, 1);
                    else
                      bench::multiply_add(sum, a, 0, 0);
                  }),
                  simt::KernelError);
}

// Example of the PTX ISA: lane 7 is in group 1 and the fourth of it, so its sums are row 1 and 9, columns 6 and 7.
TEST_CASE("simt: a product with the identity returns operand b where the PTX ISA says") {
  float sums[64][4] = {};
  launch([&] {
    const unsigned group = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const auto one_at = [&](unsigned column, unsigned row) {
      return bench::pack_bf16(column == row ? 1.0f : 0.0f, column + 1 == row ? 1.0f : 0.0f);
    };
    const bench::Fragment a = {one_at(2 * t, group), one_at(2 * t, group + 8), one_at(2 * t + 8, group),
                               one_at(2 * t + 8, group + 8)};
    const auto b = [&](unsigned row) {
      return bench::pack_bf16(static_cast<float>(8 * row + group), static_cast<float>(8 * (row + 1) + group));
    };
    bench::multiply_add(sums[threadIdx.x], a, b(2 * t), b(2 * t + 8));
  });
  CHECK(sums[7][0] == 8 * 1 + 6);
  CHECK(sums[7][1] == 8 * 1 + 7);
  CHECK(sums[7][2] == 8 * 9 + 6);
  CHECK(sums[7][3] == 8 * 9 + 7);
}

TEST_CASE("simt: BF16 rounds to nearest, ties to even") {
  CHECK(bench::to_float(bench::to_bf16(1.0f + 0x1p-8f)) == 1.0f);
  CHECK(bench::to_float(bench::to_bf16(1.0f + 0x1.8p-7f)) == 1.0f + 0x1p-6f);
  CHECK(bench::to_float(bench::to_bf16(-1.0f - 0x1.2p-8f)) == -1.0f - 0x1p-7f);
}

}  // TEST_SUITE("support/simt")
