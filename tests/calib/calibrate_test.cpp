// Calibration: it finds constants that are there, refuses what it cannot know, and reproduces what we ship.
#include <doctest/doctest.h>

#include "base/file.hpp"
#include "calib/fit/calibrate.hpp"
#include "calib/fit/csv.hpp"
#include "calib/fit/deepep_observations.hpp"
#include "calib/fit/solve.hpp"
#include "moe/training.hpp"
#include "tests/support/data.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

std::vector<std::filesystem::path> published_tables() {
  return {training_kernels(), data_folder() / "deepep/deepep_v1_h100_normal.csv",
          data_folder() / "deepep/deepep_v1_h800_published.csv"};
}

// Two different features for each constant, so that each is determined.
std::vector<Observation> observations_of(const Constants& truth) {
  std::vector<Observation> observations;
  for (std::size_t i = 0; i < kConstants; ++i) {
    for (const double feature : {10.0, 30.0}) {
      const auto constant = static_cast<Constant>(i);
      const auto next = static_cast<Constant>((i + 1) % kConstants);
      const double us = truth[i] * feature + truth[(i + 1) % kConstants] * 2;
      observations.push_back({"f", us, {{constant, feature}, {next, 2}}, 1, 0, ""});
    }
  }
  return observations;
}

}  // namespace

TEST_CASE("the fit finds the constants that made the observations") {
  Constants truth{};
  for (std::size_t i = 0; i < kConstants; ++i) truth[i] = 0.5 + static_cast<double>(i);
  const Constants found = solve(observations_of(truth));
  for (std::size_t i = 0; i < kConstants; ++i) CHECK(found[i] == doctest::Approx(truth[i]).epsilon(1e-9));
}

TEST_CASE("a constant that no observation tells about is refused by name") {
  Constants truth{};
  truth.fill(1);
  std::vector<Observation> observations = observations_of(truth);
  const auto tells = [](const Observation& o) {
    return o.terms[0].constant == Constant::strided || o.terms[1].constant == Constant::strided;
  };
  std::erase_if(observations, tells);
  CHECK_THROWS_WITH_AS((void)solve(observations), "the measurements say nothing about strided.roofline_multiple",
                       SpecError);
}

TEST_CASE("two constants that only ever appear together are refused") {
  Constants truth{};
  truth.fill(1);
  std::vector<Observation> observations = observations_of(truth);
  std::erase_if(observations, [](const Observation& o) {
    for (const Term& term : o.terms) {
      if (term.constant == Constant::gemm_mainloop || term.constant == Constant::gemm_epilogue) return true;
    }
    return false;
  });
  observations.push_back({"f", 3, {{Constant::gemm_mainloop, 1}, {Constant::gemm_epilogue, 2}}, 1, 0, ""});
  observations.push_back({"f", 6, {{Constant::gemm_mainloop, 2}, {Constant::gemm_epilogue, 4}}, 1, 0, ""});
  CHECK_THROWS_AS((void)solve(observations), SpecError);
}

TEST_CASE("calibrating on the measured data reproduces the kernel set we ship, to the byte") {
  for (const auto& table : published_tables()) {
    if (!present(table)) return;
  }
  HardwareProfile profile = load_profile("h800");
  const Calibration calibration =
      calibrate(published_tables(), {0, 1}, load_architecture("deepseek-v3"), profile.facts);
  profile.kernel_sets = {calibration.kernels};
  CHECK(to_yaml(profile) == read_text(source("hwprofiles/h800.yaml")));
}

TEST_CASE("the fit uses no kernel of the layers that predictions are scored on") {
  if (!present(training_kernels())) return;
  const HardwareProfile profile = load_profile("h800");
  const Calibration calibration =
      calibrate(published_tables(), {0, 1}, load_architecture("deepseek-v3"), profile.facts);
  for (const Observation& o : calibration.observations) {
    CHECK(o.where.find("layer 2") == std::string::npos);
    CHECK(o.where.find("layer 3") == std::string::npos);
  }
}

TEST_CASE("SM copies fitted on 4 and 8 SMs predict combine on 12 within 10 %") {
  // DeepEP on H100, 4096 tokens; the NIC does not bind yet
  const auto file = data_folder() / "deepep/deepep_v1_h100_normal.csv";
  if (!present(file)) return;
  const CsvTable table(file);
  const HardwareProfile h800 = load_profile("h800");
  int compared = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int ep = table.integer(row, "ep", 1, 256);
    if (ep == 8 || table.number(row, "num_token") != 4096 || table.number(row, "combine_sms") != 12) continue;
    LayerWork work;
    work.model = benchmark_gating(load_architecture("deepseek-v3"), ep / 8);
    work.ep = ep;
    work.spread = expected_spread(work.model, ep, 8);
    const Term term = copy_term(combine_forward(work).back(), 12);
    const double us = h800.kernels("")[term.constant] * term.feature_us;
    CHECK(us == doctest::Approx(table.number(row, "combine_transmit_us")).epsilon(0.10));
    ++compared;
  }
  CHECK(compared == 2);
}

TEST_CASE("the FP8 GEMM curve meets its 32 measured kernels within 2 % at the median") {
  const HardwareProfile profile = load_profile("h800");
  const auto& fits = profile.kernels("").fits;
  CHECK(fits.at("gemm_fp8").median_abs_error < 0.02);
  CHECK(fits.at("gemm_fp8_wgrad").median_abs_error < 0.03);
}
