// FP8 GEMMs: which tiles they are cut into, and how their prices move with shape, layout and machine.
#include <doctest/doctest.h>

#include <cmath>

#include "curves/curve.hpp"
#include "curves/gemm_tiles.hpp"
#include "hardware/price.hpp"
#include "moe/kernels.hpp"

TEST_SUITE("hardware/gemm_curve") {

using namespace moeline;

namespace {

const MachineFacts& h800() {
  static const MachineFacts facts = load_profile("h800").facts;
  return facts;
}

// Round figures near the fitted ones: what is tested here holds for any.
KernelSet kernel_set(TileSet tiles) {
  KernelSet set;
  set.tiles = tiles;
  set.fitted_on = h800();
  set.constants.fill(kUnknown);
  const auto know = [&](Constant constant, double value) { set.constants[static_cast<std::size_t>(constant)] = value; };
  know(Constant::gemm_startup, 4);
  know(Constant::gemm_mainloop, 1);
  know(Constant::gemm_epilogue, 0.7);
  know(Constant::gemm_ports, 0.8);
  know(Constant::gemm_memory, 1.0);
  for (const Family family : {Family::gemm_fp8, Family::gemm_fp8_grouped, Family::gemm_fp8_masked}) {
    set.fits[name_of(family)].tiles = tiles;
  }
  return set;
}

Operator dense(double m, double n, double k) { return kernels::gemm(Family::gemm_fp8, "g", m, n, k); }
Operator masked(double groups, double m, double n, double k) {
  return kernels::gemm(Family::gemm_fp8_masked, "g", groups * m, n, k, groups);
}
Operator contiguous(double groups, double m, double n, double k) {
  return kernels::gemm(Family::gemm_fp8_grouped, "g", groups * m, n, k, groups);
}

Price on(const Operator& op, int sms = 132, const MachineFacts& facts = h800(), TileSet tiles = TileSet::wide) {
  return price(op, {.sms = sms}, facts, kernel_set(tiles));
}

void check_tile(const Tile& tile, int m, int n) {
  CHECK(tile.m == m);
  CHECK(tile.n == n);
}

}  // namespace

TEST_CASE("tiles of late 2025 fill a wave: the documented example cuts 7168 columns by 112") {
  // DeepGEMM README: 256 x 7168 in tiles of 128 x 112 keeps 128 SMs busy, of 128 x 128 only 112
  check_tile(pick_tile(dense(256, 7168, 2048), 256, 132, TileSet::wide), 128, 112);
  check_tile(pick_tile(dense(4096, 4096, 7168), 4096, 132, TileSet::wide), 256, 128);
  check_tile(pick_tile(contiguous(4, 8192, 4096, 7168), 4 * 8192, 132, TileSet::wide), 128, 192);
  check_tile(pick_tile(masked(32, 64, 4096, 7168), 64, 132, TileSet::wide), 64, 192);
}

TEST_CASE("tiles of early 2025 are at most 128 x 128") {
  for (const double m : {16, 64, 128, 1024, 4096, 32768}) {
    for (const double n : {576, 2112, 7168, 24576}) {
      const Tile tile = pick_tile(dense(m, n, 7168), m, 132, TileSet::narrow);
      CHECK(tile.m <= 128);
      CHECK(tile.n <= 128);
    }
  }
  check_tile(pick_tile(dense(4096, 7168, 16384), 4096, 112, TileSet::narrow), 128, 128);
}

TEST_CASE("a family's tiles are those of the set that it was fitted for, also when borrowed or carried over") {
  const HardwareProfile profile = load_profile("h800");
  CHECK(profile.kernels("deepseek-2025-02").fits.at("gemm_fp8").tiles == TileSet::narrow);
  CHECK(profile.kernels("open-2025-late").fits.at("gemm_fp8").tiles == TileSet::wide);
  CHECK(profile.kernels("open-2025-late").fits.at("gemm_fp8_wgrad").tiles == TileSet::narrow);
  CHECK_FALSE(profile.kernels("open-2025-late").fits.at("gemm_fp8_wgrad").other_machine);
  const auto carried = load_profile("h100").kernels("").fits;
  CHECK(carried.at("gemm_fp8").tiles == TileSet::wide);
  CHECK(carried.at("gemm_fp8_wgrad").tiles == TileSet::narrow);
  CHECK(carried.at("gemm_fp8_wgrad").kernel_set == "h800: deepseek-2025-02");
  CHECK(carried.at("gemm_fp8_wgrad").other_machine);
  CHECK_FALSE(carried.at("low_latency").other_machine);
}

TEST_CASE("one column more than fills a wave costs most of another wave") {
  const double wave = 128 * 66;  // columns of 256 x 128 tiles, two rows of them
  CHECK(on(dense(512, wave + 1, 7168)).solo_us > 1.25 * on(dense(512, wave, 7168)).solo_us);
  CHECK(on(dense(512, wave - 127, 7168)).solo_us == doctest::Approx(on(dense(512, wave, 7168)).solo_us).epsilon(0.02));
}

TEST_CASE("slower tensor cores hide more of what goes by the clock, faster ones keep the efficiency") {
  const Operator op = dense(8192, 4096, 7168);
  const auto efficiency = [&](double times) {
    MachineFacts machine = h800();
    machine.fp8_tflops *= times;
    machine.bf16_tflops *= times;
    machine.hbm_GBps *= 10;  // not what is looked at
    return op.flops / (machine.fp8_tflops * 1e6) / on(op, 132, machine).solo_us;
  };
  CHECK(efficiency(0.15) > 1.15 * efficiency(1));  // H20 reaches 94 % of its peak, H800 70 %
  CHECK(efficiency(2) > 0.9 * efficiency(1));
}

TEST_CASE("a BF16 GEMM with FP8's constants takes the time of an FP8 GEMM with twice the k, where no scales straddle") {
  // twice the bytes and, at half the rate, four times the time of the products
  for (const double m : {64, 512, 4096}) {
    const Operator bf16 = kernels::gemm(Family::gemm_bf16, "g", m, 4096, 7168);
    Operator fp8 = kernels::gemm(Family::gemm_fp8, "g", m, 4096, 2 * 7168);
    fp8.bytes = bf16.bytes;
    const double us = on(bf16).solo_us;
    CHECK(us == doctest::Approx(on(fp8).solo_us).epsilon(1e-3));  // the peaks are 1979 and 989.5
  }
}

TEST_CASE("BF16 constants of a set's own are taken before FP8's") {
  KernelSet set = kernel_set(TileSet::wide);
  const Operator op = kernels::gemm(Family::gemm_bf16, "g", 4096, 4096, 7168);
  const double by_fp8 = price(op, {.sms = 132}, h800(), set).solo_us;
  for (std::size_t i = 0; i < 5; ++i) {
    set.constants[static_cast<std::size_t>(Constant::bf16_gemm_startup) + i] =
        2 * set.constants[static_cast<std::size_t>(Constant::gemm_startup) + i];
  }
  set.fits[name_of(Family::gemm_bf16)].tiles = TileSet::wide;
  CHECK(price(op, {.sms = 132}, h800(), set).solo_us == doctest::Approx(2 * by_fp8));
}

TEST_CASE("few rows cost what the weights cost: time does not depend on them") {
  const double few = on(masked(32, 8, 4096, 7168)).solo_us, more = on(masked(32, 64, 4096, 7168)).solo_us;
  CHECK(more == doctest::Approx(few).epsilon(0.05));
  CHECK(on(masked(32, 8, 4096, 7168)).bound_by == "memory");
  CHECK(on(dense(4096, 4096, 7168)).bound_by == "compute");
}

TEST_CASE("a masked GEMM of one group costs what a dense one of its rows does") {
  for (const double m : {64, 128, 256}) {
    CHECK(on(masked(1, m, 4096, 7168)).solo_us == doctest::Approx(on(dense(m, 4096, 7168)).solo_us).epsilon(0.01));
  }
}

TEST_CASE("masked groups without a row are not read") {
  const Operator half = masked(256, 0.5, 4096, 7168);  // 128 rows in all: at most 128 groups have one
  Operator read = half;
  read.bytes = kernels::gemm(Family::gemm_fp8_masked, "g", 128, 4096, 7168, 128).bytes;
  CHECK(on(read).solo_us == doctest::Approx(on(masked(256, 1, 4096, 7168)).solo_us / 2).epsilon(0.02));
}

TEST_CASE("rows that straddle the tile's height cost what their tiles do") {
  const Operator op = masked(2, 64, 4096, 7168);
  const auto us = [&](const std::vector<int>& rows) {
    return evaluate(masked_gemm_curve(op, 64, rows, 132, h800(), TileSet::wide), kernel_set(TileSet::wide).constants)
        .us;
  };
  CHECK(us({64, 64}) == doctest::Approx(on(op).solo_us));
  CHECK(us({65, 63}) > us({64, 64}));
  CHECK(us({65, 63}) == us({127, 1}));
}

TEST_CASE("twice the rows never make a GEMM faster, fewer SMs never either") {
  // Not so row by row: the library fills its last wave with tiles that are slower than others it has.
  for (double m = 64; m < 16384; m += 64) {
    CHECK(on(dense(m, 4096, 7168)).solo_us <= on(dense(2 * m, 4096, 7168)).solo_us);
  }
  for (int sms = 8; sms < 132; ++sms) {
    CHECK(on(contiguous(4, 4096, 4096, 7168), sms).solo_us >=
          on(contiguous(4, 4096, 4096, 7168), sms + 1).solo_us * (1 - 1e-9));
  }
}

TEST_CASE("no GEMM beats the peaks of the tensor cores and of HBM") {
  for (const double m : {1, 16, 64, 128, 512, 4096, 65536}) {
    for (const double n : {128, 576, 2112, 7168, 36864}) {
      for (const double k : {128, 576, 2048, 7168, 18432}) {
        const Operator op = dense(m, n, k);
        CHECK(on(op).solo_us >= op.flops / (h800().fp8_tflops * 1e6));
        CHECK(on(op).solo_us >= op.bytes / (h800().hbm_GBps * 1e3));
        CHECK(on(op, 132, h800(), TileSet::narrow).solo_us >= op.flops / (h800().fp8_tflops * 1e6));
      }
    }
  }
}

TEST_CASE("twice the memory bandwidth helps the memory-bound, twice the tensor cores the compute-bound") {
  MachineFacts memory = h800(), tensor = h800();
  memory.hbm_GBps *= 2;
  tensor.fp8_tflops *= 2;
  CHECK(on(masked(32, 16, 4096, 7168), 132, memory).solo_us < 0.7 * on(masked(32, 16, 4096, 7168)).solo_us);
  CHECK(on(dense(8192, 4096, 7168), 132, tensor).solo_us < 0.6 * on(dense(8192, 4096, 7168)).solo_us);
  CHECK(on(dense(8192, 4096, 7168), 132, memory).solo_us > 0.95 * on(dense(8192, 4096, 7168)).solo_us);
}

}  // TEST_SUITE("hardware/gemm_curve")
