// Attention's constants: found where they are known, and held against InferSim's tables of H800 and FlashMLA's figures.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "calib/fit/attention_observations.hpp"
#include "calib/fit/calibrate.hpp"
#include "calib/fit/solve.hpp"
#include "hardware/price.hpp"
#include "moe/attention_kernels.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("calib/attention_tables") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const char* const kGqaTables[] = {"16-2", "32-2", "64-2", "128-2", "256-2", "32-4", "32-8"};

std::filesystem::path table(const std::string& name) { return data_folder() / "kernels_h800" / (name + ".csv"); }
std::filesystem::path gqa_table(const std::string& heads) { return table("gqa_decode_bf16_" + heads + "-128"); }

std::vector<std::filesystem::path> tables() {
  std::vector<std::filesystem::path> files = {table("mla_prefill_bf16_h128_d192_128"),
                                              table("mla_decode_bf16_h128_d576_512")};
  for (const char* heads : kGqaTables) files.push_back(gqa_table(heads));
  return files;
}

bool all_present() {
  for (const auto& file : tables()) {
    if (!present(file)) return false;
  }
  return true;
}

const MachineFacts kH800 = {
    .sms = 132, .sm_clock_mhz = 1830, .fp8_tflops = 1979, .bf16_tflops = 989.5, .hbm_GBps = 3350};

const Calibration& calibration() {
  static const Calibration late =
      calibrate(tables(), {.kernels = "open-2025-late", .layers = {}, .cross_validate = true},
                load_architecture("deepseek-v3"), kH800);
  return late;
}

double tflops(const Operator& op, double us) { return op.flops / us / 1e6; }

// The kernel that was observed, by its dimensions.
Operator operator_of(const Observation& o) {
  const auto is = [&](Dimension dimension) { return o.dimensions.at(dimension); };
  const bool prefill = o.family == "attention_forward", mla = o.family == "mla_decode";
  const double query_len = is(Dimension::query_len);
  const double heads = is(Dimension::kv_heads) * (prefill ? is(Dimension::heads_per_kv) : is(Dimension::rows));
  const AttentionShape shape{.batch = is(Dimension::batch),
                             .heads = heads,
                             .kv_heads = is(Dimension::kv_heads),
                             .query_len = query_len,
                             .kv_len = is(Dimension::kv_len),
                             .qk_dim = is(Dimension::qk_dim),
                             .v_dim = is(Dimension::v_dim)};
  return prefill ? prefill_core(shape) : mla ? mla_decode_core(shape) : gqa_decode_core(shape);
}

CsvTable written(const std::string& name, const std::string& text) {
  const auto file = std::filesystem::temp_directory_path() / name;
  std::ofstream(file) << text;
  const CsvTable read(file);
  std::filesystem::remove(file);
  return read;
}

// FlashMLA's benchmark at its largest: 128 requests, 128 heads, two query tokens, 8192 keys.
Operator flash_mla_largest() {
  return mla_decode_core(
      {.batch = 128, .heads = 128, .kv_heads = 1, .query_len = 2, .kv_len = 8192, .qk_dim = 576, .v_dim = 512});
}

}  // namespace

TEST_CASE("the fit finds which branch of a decode binds, and its constants") {
  Constants truth;
  truth.fill(kUnknown);
  const std::pair<Constant, double> known[] = {{Constant::gqa_startup, 15},
                                               {Constant::gqa_merge, 0.2},
                                               {Constant::gqa_compute, 3},
                                               {Constant::gqa_memory, 1.1},
                                               {Constant::gqa_latency, 10}};
  for (const auto& [constant, value] : known) truth[static_cast<std::size_t>(constant)] = value;
  std::vector<Observation> observations;
  for (const double heads : {16, 64, 256}) {
    for (const double batch : {1, 16, 64, 128, 512}) {
      for (const double kv_len : {1024, 4096, 16384}) {
        const AttentionShape shape{.batch = batch,
                                   .heads = heads,
                                   .kv_heads = 2,
                                   .query_len = 1,
                                   .kv_len = kv_len,
                                   .qk_dim = 128,
                                   .v_dim = 128};
        Observation o{.family = "gqa_decode", .noise = Noise::timed};
        o.curves = {attention_curve(gqa_decode_core(shape), 132, kH800)};
        o.measured_us = evaluate(o, truth);
        observations.push_back(o);
      }
    }
  }
  const Constants found = solve(observations);
  for (const auto& [constant, value] : known) {
    CHECK(found[static_cast<std::size_t>(constant)] == doctest::Approx(value).epsilon(1e-9));
  }
}

TEST_CASE("our FLOPs are those of the tables' own utilisation") {
  if (!all_present()) return;
  for (const auto& file : tables()) {
    const CsvTable csv(file);
    const std::vector<Observation> observations = attention_observations(csv, kH800);
    for (std::size_t row = 0; row < csv.rows(); ++row) {
      const Observation& o = observations[row];
      CAPTURE(o.where);
      const double utilisation = tflops(operator_of(o), o.measured_us) / kH800.bf16_tflops;
      CHECK(std::abs(utilisation - csv.number(row, "mfu")) < 1e-3);  // three decimals there
    }
  }
}

TEST_CASE("MLA decode: a batch size left out is met within 5 % at the median, 15 % at the 95th percentile") {
  if (!all_present()) return;
  const FamilyFit& fit = calibration().kernels.fits.at("mla_decode");
  CHECK(fit.held_out);
  CHECK(fit.kernels == 41);
  CHECK(fit.range.at(Dimension::rows).low == 128);
  CHECK(fit.range.at(Dimension::rows).high == 128);
  CHECK(fit.median_abs_error < 0.05);
  CHECK(fit.p95_abs_error < 0.15);
  CHECK(std::abs(fit.worst_error) < 0.20);  // batch 1, whose splits no other batch has
}

TEST_CASE("GQA decode: a head configuration left out is met within 3 % at the median, 16 % at the 95th percentile") {
  if (!all_present()) return;
  const FamilyFit& fit = calibration().kernels.fits.at("gqa_decode");
  CHECK(fit.held_out);
  CHECK(fit.kernels == 246);
  CHECK(fit.median_abs_error < 0.03);
  CHECK(fit.p95_abs_error < 0.16);
  CHECK(fit.worst_error == doctest::Approx(-0.88).epsilon(0.02));  // the host's 241 us where 27 are usual
}

TEST_CASE("prefill: a length left out is met within 6 % at the median, the kernel runs slower the longer it runs") {
  if (!all_present()) return;
  const FamilyFit& held_out = calibration().kernels.fits.at("attention_forward");
  CHECK(held_out.kernels == 4);
  CHECK(held_out.median_abs_error < 0.06);
  CHECK(std::abs(held_out.worst_error) < 0.08);  // 32768 tokens
  const FamilyFit fitted = assess(calibration().observations, calibration().fitted).at("attention_forward");
  CHECK(fitted.median_abs_error < 0.05);
  CHECK(std::abs(fitted.worst_error) < 0.075);
}

TEST_CASE("a prompt of each measured length is priced within 8 %, in sample") {
  if (!all_present()) return;
  const CsvTable csv(table("mla_prefill_bf16_h128_d192_128"));
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    const double seq_len = csv.number(row, "seq_len");
    const Price p = price(prefill_core({.batch = 1,
                                        .heads = 128,
                                        .kv_heads = 128,
                                        .query_len = seq_len,
                                        .kv_len = seq_len,
                                        .qk_dim = 192,
                                        .v_dim = 128}),
                          {.sms = 132}, kH800, calibration().kernels);
    CHECK(p.provenance == Provenance::interpolated);
    CHECK(p.solo_us == doctest::Approx(csv.number(row, "latency_us")).epsilon(0.08));
  }
}

TEST_CASE("no prompt is faster than a call of the host, where the host held the clock") {
  const auto prompt = [](double tokens) {
    return prefill_core({.batch = 1,
                         .heads = 128,
                         .kv_heads = 128,
                         .query_len = tokens,
                         .kv_len = tokens,
                         .qk_dim = 192,
                         .v_dim = 128});
  };
  Constants constants;
  constants.fill(kUnknown);
  constants[static_cast<std::size_t>(Constant::attention_forward)] = 1.5;
  const double by_profiler = evaluate(attention_curve(prompt(512), 132, kH800), constants).us;
  constants[static_cast<std::size_t>(Constant::attention_latency)] = 100;
  CHECK(by_profiler < 100);
  CHECK(evaluate(attention_curve(prompt(512), 132, kH800), constants).us == 100);
  CHECK(evaluate(attention_curve(prompt(8192), 132, kH800), constants).bound == "compute");
}

TEST_CASE("without groups of 128 heads nothing tells how fast GQA computes") {
  if (!all_present()) return;
  std::vector<Observation> observations;
  for (const char* heads : kGqaTables) {
    if (std::string(heads) == "256-2") continue;
    const auto more = attention_observations(CsvTable(gqa_table(heads)), kH800);
    observations.insert(observations.end(), more.begin(), more.end());
  }
  CHECK_THROWS_WITH_AS((void)solve(observations),
                       "the measurements say nothing about gqa_decode.compute_roofline_multiple", SpecError);
}

TEST_CASE("FlashMLA's first figures are roofline multiples: 580 TFLOPS of compute, 3000 GB/s of cache") {
  const auto file = source("calib/data/flash_mla_published.csv");
  const Calibration february =
      calibrate({file}, {.kernels = "deepseek-2025-02", .layers = {}}, load_architecture("deepseek-v3"), kH800);
  CHECK(february.kernels[Constant::mla_compute] == doctest::Approx(989.5 / 580).epsilon(1e-4));
  CHECK(february.kernels[Constant::mla_memory] == doctest::Approx(3350.0 / 3000).epsilon(5e-3));
  const FamilyFit& fit = february.kernels.fits.at("mla_decode");
  CHECK(fit.range.at(Dimension::rows).low == 16);       // 16 heads, one query
  CHECK(fit.range.at(Dimension::rows).high == 256);     // 128 heads, two queries
  CHECK(february.kernels[Constant::mla_startup] == 0);  // rates of large kernels, where overheads do not show
}

TEST_CASE("FlashInfer's MLA of late 2025 is slower than FlashMLA of April 2025") {
  // 660 TFLOPS on its largest benchmark (deepseek-ai/FlashMLA, 2025-04-22)
  if (!all_present()) return;
  const Operator op = flash_mla_largest();
  const Price p = price(op, {.sms = 132}, kH800, calibration().kernels);
  CHECK(tflops(op, p.solo_us) > 500);
  CHECK(tflops(op, p.solo_us) < 580);
}

TEST_CASE("a table of attention that cannot be read is refused with its line") {
  const std::string header = "dtype,kv_dtype,batch_size,kv_len,latency_us,mfu\n";
  const auto refuse = [&](const std::string& name, const std::string& row) {
    CHECK_THROWS_AS((void)attention_observations(written(name, header + row), kH800), SpecError);
  };
  const std::string name = "gqa_decode_bf16_32-2-128.csv";
  CHECK(attention_observations(written(name, header + "bf16,bf16,1,1024,30,0.1\n"), kH800).size() == 1);
  CHECK_THROWS_WITH_AS((void)attention_observations(written(name, header + "bf16,bf16,1,1024,0,0.1\n"), kH800),
                       doctest::Contains(".csv:2: latency_us must be above 0, not 0"), SpecError);
  refuse(name, "bf16,bf16,1,1024,-3,0.1\n");
  refuse(name, "bf16,fp8,1,1024,30,0.1\n");
  refuse(name, "bf16,bf16,0,1024,30,0.1\n");
  refuse("gqa_decode_bf16_32-0-128.csv", "bf16,bf16,1,1024,30,0.1\n");
  refuse("something_else.csv", "bf16,bf16,1,1024,30,0.1\n");
}

}  // TEST_SUITE("calib/attention_tables")
