// What the engine makes of the neighbourhoods that calib/bench measures.
#include "experiments/validate/contention.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "hardware/profile.hpp"

TEST_SUITE("validate/contention") {

using namespace moeline;

namespace {

const MachineFacts kMachine = {
    .sms = 132, .sm_clock_mhz = 1830, .fp8_tflops = 1979, .bf16_tflops = 989.5, .hbm_GBps = 4000};

// One neighbourhood of a kernel that takes 100 us alone.
ContentionScore score(const std::string& kernel, std::map<std::string, double> shape, const std::string& beside,
                      std::map<std::string, double> more = {}) {
  Measurement m;
  m.key = "contention";
  m.shape = std::move(shape);
  m.words = {{"kernel", kernel}, {"beside", beside}};
  m.parameters = "p";
  BenchTable table;
  more["time_alone"] = 100;
  more["time"] = 120;
  for (const auto& [metric, us] : more) {
    m.metric = metric;
    m.samples = {us};
    table.measurements.push_back(m);
  }
  const std::vector<ContentionScore> scores = score_contention(table, kMachine);
  REQUIRE(scores.size() == 1);
  return scores.front();
}

const std::map<std::string, double> kSmall = {{"rows", 4096}, {"columns", 7168}, {"bytes", 1e6}};

std::map<std::string, double> on(std::map<std::string, double> shape, double held) {
  shape["sms"] = held;
  return shape;
}

}  // namespace

TEST_CASE("beside 20 held SMs an elastic kernel has 112 of 132") {
  const ContentionScore s = score("rowwise", on(kSmall, 20), "spin");
  CHECK(s.predicted_us == doctest::Approx(100 * 132.0 / 112));
  CHECK(s.measured_us == 120);
}

TEST_CASE("a persistent GEMM told to leave the held SMs alone notices nothing, one that was not waits") {
  const std::map<std::string, double> gemm = {{"m", 4096}, {"n", 4096}, {"k", 7168}, {"sms", 20}};
  std::map<std::string, double> told = gemm;
  told["kernel_sms"] = 112;
  CHECK(score("gemm_fp8", told, "spin").predicted_us == doctest::Approx(100));
  CHECK(std::isnan(score("gemm_fp8", gemm, "spin").predicted_us));
}

TEST_CASE("a copy takes its share of HBM besides its SMs") {
  std::map<std::string, double> streaming = kSmall;
  streaming["bytes"] = 3.6e8;  // 3600 of 4000 GB/s
  const double beside_spin = score("streaming", on(streaming, 4), "spin").predicted_us;
  const double beside_copy =  // 1000 GB/s alone
      score("streaming", on(streaming, 4), "copy", {{"copy_time_alone", 1}, {"copy_time", 1}}).predicted_us;
  CHECK(beside_spin == doctest::Approx(100 * 132.0 / 128));
  CHECK(beside_copy > 1.1 * beside_spin);
}

TEST_CASE("the same elastic kernel twice takes as long as both in turn") {
  CHECK(score("rowwise", on(kSmall, 0), "kernel").predicted_us == doctest::Approx(200));
}

}  // TEST_SUITE("validate/contention")
