// Attention's cost curves: what is computed whole, what is read once, what is split.
#include <doctest/doctest.h>

#include <cmath>

#include "curves/curve.hpp"
#include "hardware/price.hpp"
#include "moe/attention_kernels.hpp"

TEST_SUITE("hardware/attention_curve") {

using namespace moeline;

namespace {

const MachineFacts kH800 = {
    .sms = 132, .sm_clock_mhz = 1830, .fp8_tflops = 1979, .bf16_tflops = 989.5, .hbm_GBps = 3350};

AttentionShape prompt(double batch, double query_len, double kv_len) {
  return {.batch = batch,
          .heads = 128,
          .kv_heads = 128,
          .query_len = query_len,
          .kv_len = kv_len,
          .qk_dim = 192,
          .v_dim = 128};
}

AttentionShape mla(double batch, double kv_len, double query_len = 1, double heads = 128) {
  return {.batch = batch,
          .heads = heads,
          .kv_heads = 1,
          .query_len = query_len,
          .kv_len = kv_len,
          .qk_dim = 576,
          .v_dim = 512};
}

AttentionShape gqa(double batch, double kv_len, double heads, double kv_heads, double query_len = 1) {
  return {.batch = batch,
          .heads = heads,
          .kv_heads = kv_heads,
          .query_len = query_len,
          .kv_len = kv_len,
          .qk_dim = 128,
          .v_dim = 128};
}

// The feature that a constant is multiplied with.
double feature(const Operator& op, Constant wanted, int sms = 132) {
  const Curve curve = attention_curve(op, sms, kH800);
  for (const Term& term : curve.always) {
    if (term.constant == wanted) return term.feature;
  }
  for (const Branch& branch : curve.branches) {
    for (const Term& term : branch.terms) {
      if (term.constant == wanted) return term.feature;
    }
  }
  FAIL("the curve has no such constant");
  return 0;
}

// A kernel set in the middle of what was measured; all that is tested here holds for any.
KernelSet kernels() {
  KernelSet set;
  set.fitted_on = kH800;
  set.constants.fill(kUnknown);
  const auto give = [&](Constant constant, double value) { set.constants[static_cast<std::size_t>(constant)] = value; };
  give(Constant::attention_latency, 0);
  give(Constant::attention_forward, 1.6);
  give(Constant::mla_compute, 1.8);
  give(Constant::mla_memory, 1.1);
  give(Constant::mla_startup, 10);
  give(Constant::mla_merge, 2.5);
  give(Constant::mla_queries, 2);
  give(Constant::gqa_startup, 17);
  give(Constant::gqa_merge, 0.25);
  give(Constant::gqa_compute, 3);
  give(Constant::gqa_memory, 1.05);
  give(Constant::gqa_latency, 12);
  for (const char* family : {"attention_forward", "mla_decode", "gqa_decode"}) {
    for (int d = 0; d < kDimensions; ++d) set.fits[family].range[static_cast<Dimension>(d)] = {1, 1e30};
  }
  MeasuredRange& prompts = set.fits["attention_forward"].range;
  prompts[Dimension::kv_heads] = {128, 128};
  prompts[Dimension::heads_per_kv] = {1, 1};
  prompts[Dimension::cached] = prompts[Dimension::window] = {0, 0};
  set.fits["mla_decode"].range[Dimension::rows] = {128, 128};
  set.fits["gqa_decode"].range[Dimension::rows] = {4, 128};
  return set;
}

Price on(const Operator& op, int sms = 132) { return price(op, {.sms = sms}, kH800, kernels()); }

}  // namespace

TEST_CASE("the formulas of the published tables: half of S x S in prefill, every key in decode") {
  CHECK(prefill_core(prompt(1, 4096, 4096)).flops == 4096.0 * 4096 * 128 * (192 + 128));
  CHECK(mla_decode_core(mla(16, 4096)).flops == 2.0 * 16 * 128 * 4096 * (576 + 512));
  CHECK(gqa_decode_core(gqa(16, 4096, 32, 8)).flops == 4.0 * 16 * 32 * 4096 * 128);
}

TEST_CASE("queries after a cached prefix see it and the prompt before them, and never more than the window") {
  const auto pairs = [](double queries, double keys, double window) {
    return prefill_core(prompt(1, queries, keys), window).flops / (2 * 128 * (192 + 128));
  };
  for (const double window : {0.0, 100.0, 300.0, 700.0, 2000.0}) {
    const int queries = 512;
    const int keys = 1024;
    double counted = 0;
    for (int i = 0; i < queries; ++i) {
      const double seen = keys - queries + i + 0.5;
      counted += window > 0 ? std::min(seen, window) : seen;
    }
    CAPTURE(window);
    CHECK(pairs(queries, keys, window) == doctest::Approx(counted).epsilon(1e-6));
  }
  // Two chunks of a prompt are as much work as the prompt.
  CHECK(pairs(512, 512, 0) + pairs(512, 1024, 0) == doctest::Approx(pairs(1024, 1024, 0)));
}

TEST_CASE("causal blocks on the diagonal are computed whole") {
  // FlashAttention's 128 x 128: one block of 128 x 128 costs what half a mask over 128 x 256 would
  const auto us = [](double seq) { return feature(prefill_core(prompt(1, seq, seq)), Constant::attention_forward); };
  const double block = flops_at_peak_us(2.0 * 128 * 128 * 128 * (192 + 128), kH800.bf16_tflops);
  CHECK(us(128) == doctest::Approx(block));
  CHECK(us(256) == doctest::Approx(3 * block));
  CHECK(us(4096) == doctest::Approx(32 * 33 / 2 * block));
}

TEST_CASE("a second query token doubles the products and reads the cache once") {
  const Operator one = mla_decode_core(mla(128, 4096));
  const Operator two = mla_decode_core(mla(128, 4096, 2));
  CHECK(feature(two, Constant::mla_compute) == 2 * feature(one, Constant::mla_compute));
  CHECK(feature(two, Constant::mla_memory) == feature(one, Constant::mla_memory));
  CHECK(feature(two, Constant::mla_queries) == doctest::Approx(2 * feature(one, Constant::mla_queries)));
  const double gqa_ratio =
      on(gqa_decode_core(gqa(128, 4096, 64, 4, 2))).solo_us / on(gqa_decode_core(gqa(128, 4096, 64, 4))).solo_us;
  CHECK(gqa_ratio > 1);
  CHECK(gqa_ratio < 1.05);  // bound by the cache
}

TEST_CASE("a tile of queries is computed whole, however few share the keys") {
  const auto compute = [](double heads) {
    return feature(mla_decode_core(mla(64, 4096, 1, heads)), Constant::mla_compute);
  };
  CHECK(compute(16) == compute(64));
  CHECK(compute(128) == 2 * compute(64));
  CHECK(compute(96) == compute(128));
}

TEST_CASE("absorbed MLA is bound by compute at 128 heads and by the cache at 16") {
  CHECK(on(mla_decode_core(mla(128, 4096))).bound_by == "compute");
  CHECK(on(mla_decode_core(mla(128, 4096, 1, 16))).bound_by == "memory");
}

TEST_CASE("GQA is bound by the cache until 128 heads share a key") {
  CHECK(on(gqa_decode_core(gqa(128, 8192, 32, 8))).bound_by == "memory");
  CHECK(on(gqa_decode_core(gqa(128, 8192, 128, 2))).bound_by == "memory");
  CHECK(on(gqa_decode_core(gqa(128, 8192, 256, 2))).bound_by == "compute");
  CHECK(on(gqa_decode_core(gqa(1, 1024, 32, 8))).bound_by == "latency");
}

TEST_CASE("an MLA cache is split into parts where requests are fewer than pairs of SMs") {
  const auto doublings = [](double batch, double kv_len, double heads = 128) {
    return feature(mla_decode_core(mla(batch, kv_len, 1, heads)), Constant::mla_merge);
  };
  CHECK(doublings(1, 65536) == 6);  // 65536 keys / 66 pairs, in steps of 256: 64 parts of 1024
  CHECK(doublings(16, 4096) == 2);  // 4 parts each
  CHECK(doublings(128, 65536) == 0);
  CHECK(doublings(2, 65536) == 5);
  CHECK(doublings(2, 65536, 64) == 6);  // one SM suffices for 64 rows
}

TEST_CASE("GQA splits, and merges rows, only where the blocks do not fill the GPU twice") {
  const auto merged = [](double batch, double heads, double kv_heads) {
    return feature(gqa_decode_core(gqa(batch, 4096, heads, kv_heads)), Constant::gqa_merge) * 132;
  };
  CHECK(merged(64, 256, 2) == doctest::Approx(64 * 256));
  CHECK(merged(66, 32, 2) == doctest::Approx(66 * 32));
  CHECK(merged(67, 32, 2) == 0);
  CHECK(merged(64, 32, 8) == 0);
}

TEST_CASE("half of the SMs take twice as long over products and bytes") {
  const Operator decode = mla_decode_core(mla(128, 4096));
  const Operator prefill = prefill_core(prompt(4, 4096, 4096));
  CHECK(feature(decode, Constant::mla_compute, 66) == 2 * feature(decode, Constant::mla_compute));
  CHECK(feature(decode, Constant::mla_memory, 66) == 2 * feature(decode, Constant::mla_memory));
  CHECK(on(prefill, 66).solo_us == doctest::Approx(2 * on(prefill).solo_us));
}

TEST_CASE("a longer cache or a larger batch never costs less") {
  for (double batch = 1; batch <= 512; batch *= 2) {
    for (double kv_len = 1024; kv_len <= 131072; kv_len *= 2) {
      CHECK(on(mla_decode_core(mla(batch, 2 * kv_len))).solo_us >= on(mla_decode_core(mla(batch, kv_len))).solo_us);
      CHECK(on(gqa_decode_core(gqa(batch, 2 * kv_len, 64, 4))).solo_us >=
            on(gqa_decode_core(gqa(batch, kv_len, 64, 4))).solo_us);
    }
  }
}

TEST_CASE("attention of a kind that was not measured is extrapolated") {
  CHECK(on(prefill_core(prompt(1, 4096, 4096))).provenance == Provenance::interpolated);
  CHECK(on(prefill_core(prompt(1, 4096, 8192))).provenance == Provenance::extrapolated);      // a cached prefix
  CHECK(on(prefill_core(gqa(1, 4096, 64, 4, 4096))).provenance == Provenance::extrapolated);  // GQA
  CHECK(on(prefill_core(prompt(1, 4096, 8192))).note.text() == "cached 4096 > 0");
  CHECK(on(prefill_core(gqa(1, 4096, 64, 4, 4096))).note.text() == "kv_heads 4 < 128, heads_per_kv 16 > 1");
  CHECK(on(mla_decode_core(mla(128, 4096))).provenance == Provenance::interpolated);
  CHECK(on(mla_decode_core(mla(128, 4096, 2))).provenance == Provenance::extrapolated);
  CHECK(on(mla_decode_core(mla(128, 4096, 1, 64))).provenance == Provenance::extrapolated);
  CHECK(on(gqa_decode_core(gqa(128, 4096, 64, 4))).provenance == Provenance::interpolated);
  CHECK(on(gqa_decode_core(gqa(128, 4096, 64, 4, 2))).provenance == Provenance::interpolated);   // 32 rows
  CHECK(on(gqa_decode_core(gqa(128, 4096, 64, 4, 16))).provenance == Provenance::extrapolated);  // 256
  CHECK(on(gqa_decode_core(gqa(128, 4096, 8, 4))).provenance == Provenance::extrapolated);       // 2
}

}  // TEST_SUITE("hardware/attention_curve")
