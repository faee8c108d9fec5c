// Calibration: it finds constants that are there, refuses what it cannot know, and reproduces what we ship.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "calib/fit/calibrate.hpp"
#include "calib/fit/deepep_observations.hpp"
#include "calib/fit/solve.hpp"
#include "hardware/profile.hpp"
#include "moe/training.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("calib/calibrate") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Paths = std::vector<std::filesystem::path>;

Paths tables(const Paths& measured) {
  Paths all = measured;
  for (const char* deep_ep : {"deepep/deepep_v1_h100_normal.csv", "deepep/deepep_v1_h100_low_latency.csv"}) {
    all.push_back(data_folder() / deep_ep);
  }
  for (const auto& entry : std::filesystem::directory_iterator(source("calib/data"))) {
    if (entry.path().extension() == ".csv") all.push_back(entry.path());
  }
  std::sort(all.begin() + static_cast<std::ptrdiff_t>(measured.size()) + 2, all.end());
  return all;
}

Paths february_tables() { return tables({training_kernels()}); }

Paths late_tables() {
  Paths measured;
  const auto folder = data_folder() / "kernels_h800";
  if (!std::filesystem::exists(folder)) return {folder};
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".csv") measured.push_back(entry.path());
  }
  std::sort(measured.begin(), measured.end());
  return tables(measured);
}

// Two different features for each constant, so that each is determined.
std::vector<Observation> observations_of(const Constants& truth) {
  std::vector<Observation> observations;
  for (std::size_t i = 0; i < kConstants; ++i) {
    for (const double feature : {10.0, 30.0}) {
      const auto constant = static_cast<Constant>(i);
      const auto next = static_cast<Constant>((i + 1) % kConstants);
      const double us = truth[i] * feature + truth[(i + 1) % kConstants] * 2;
      observations.push_back({"f", us, {Curve{{{constant, feature}, {next, 2}}, {}}}});
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

TEST_CASE("of a time that spans several kernels each has its own binding branch") {
  // A cast by its bytes, then a GEMM by what binds it.
  std::vector<Observation> observations;
  for (const double flops : {1.0, 10.0, 100.0, 1000.0}) {
    for (const double bytes : {5.0, 50.0}) {
      const Curve cast{{{Constant::small, 1}, {Constant::tiled, bytes}}, {}};
      const Curve gemm{{}, {{"compute", {{Constant::streaming, flops}}}, {"memory", {{Constant::rowwise, 50}}}}};
      observations.push_back({"f", 3 + 0.5 * bytes + std::max(1.5 * flops, 1.2 * 50), {cast, gemm}});
    }
  }
  const Constants found = solve(observations);
  CHECK(found[static_cast<std::size_t>(Constant::small)] == doctest::Approx(3));
  CHECK(found[static_cast<std::size_t>(Constant::tiled)] == doctest::Approx(0.5));
  CHECK(found[static_cast<std::size_t>(Constant::streaming)] == doctest::Approx(1.5));
  CHECK(found[static_cast<std::size_t>(Constant::rowwise)] == doctest::Approx(1.2));
}

TEST_CASE("a constant that no observation tells about stays unknown, and the others are found") {
  Constants truth{};
  truth.fill(1);
  std::vector<Observation> observations = observations_of(truth);
  std::erase_if(observations, [](const Observation& o) {
    const std::vector<Term>& always = o.curves[0].always;
    return always[0].constant == Constant::strided || always[1].constant == Constant::strided;
  });
  const Constants found = solve(observations);
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (i == static_cast<std::size_t>(Constant::strided)) {
      CHECK(std::isnan(found[i]));
    } else {
      CHECK(found[i] == doctest::Approx(1));
    }
  }
}

TEST_CASE("where one of two branches binds, both are found from the observations that they bind") {
  std::vector<Observation> observations;
  for (const double flops : {1.0, 10.0, 100.0, 1000.0}) {
    const Curve curve{{{Constant::small, 1}},
                      {{"compute", {{Constant::streaming, flops}}}, {"memory", {{Constant::rowwise, 50}}}}};
    observations.push_back({"f", 3 + std::max(1.5 * flops, 1.2 * 50), {curve}});
  }
  const Constants found = solve(observations);
  CHECK(found[static_cast<std::size_t>(Constant::small)] == doctest::Approx(3));
  CHECK(found[static_cast<std::size_t>(Constant::streaming)] == doctest::Approx(1.5));
  CHECK(found[static_cast<std::size_t>(Constant::rowwise)] == doctest::Approx(1.2));
}

TEST_CASE("where choices of branches alternate, the better one is kept") {
  // max(x, y) = 10, x = 20, y = 19: if x is to bind, x = 15 and y = 19 binds; if y is, y = 14.5 and x = 20 binds.
  const Term x{Constant::streaming, 1}, y{Constant::rowwise, 1};
  const std::vector<Observation> observations = {
      {"f", 10, {Curve{{}, {{"x", {x}}, {"y", {y}}}}}}, {"f", 20, {Curve{{x}, {}}}}, {"f", 19, {Curve{{y}, {}}}}};
  const Constants found = solve(observations);
  CHECK(found[static_cast<std::size_t>(Constant::streaming)] == doctest::Approx(15));  // error 9^2 + 5^2
  CHECK(found[static_cast<std::size_t>(Constant::rowwise)] == doctest::Approx(19));    // the other: 10^2 + 4.5^2
}

TEST_CASE("a kernel set has the tiles of its date, and none without a date is fitted") {
  const MachineFacts facts = load_profile("h800").facts;
  const Architecture model = load_architecture("deepseek-v3");
  const auto fitted = [&](const std::string& name) {
    return calibrate({source("calib/data/low_latency_hold.csv")}, {.kernels = name}, model, facts).kernels;
  };
  CHECK(fitted("mine-2025-03").tiles == TileSet::narrow);
  CHECK(fitted("mine-2025-04").tiles == TileSet::wide);
  CHECK(fitted("mine-2025-late").tiles == TileSet::wide);
  CHECK(fitted("mine-2025-late").date == "2025-late");
  CHECK(fitted("mine-2025-03").fits.at("low_latency_hold").tiles == TileSet::narrow);
  for (const char* name : {"mine", "", "mine-", "mine-late", "mine-2025", "mine-2025-", "-2025-04", "my-own-2025-04"}) {
    CAPTURE(name);
    CHECK_THROWS_AS((void)fitted(name), SpecError);
  }
}

TEST_CASE("two constants that only ever appear together are refused") {
  Constants truth{};
  truth.fill(1);
  std::vector<Observation> observations = observations_of(truth);
  std::erase_if(observations, [](const Observation& o) {
    for (const Term& term : o.curves[0].always) {
      if (term.constant == Constant::gemm_mainloop || term.constant == Constant::gemm_epilogue) return true;
    }
    return false;
  });
  observations.push_back({"f", 3, {Curve{{{Constant::gemm_mainloop, 1}, {Constant::gemm_epilogue, 2}}, {}}}});
  observations.push_back({"f", 6, {Curve{{{Constant::gemm_mainloop, 2}, {Constant::gemm_epilogue, 4}}, {}}}});
  CHECK_THROWS_AS((void)solve(observations), SpecError);
}

TEST_CASE("calibrating on the measured data reproduces the kernel sets we ship, to the byte") {
  for (const Paths& files : {february_tables(), late_tables()}) {
    for (const auto& table : files) {
      if (!present(table)) return;
    }
  }
  HardwareProfile profile = load_profile("h800");
  const std::vector<KernelSet> shipped = profile.kernel_sets;
  const Architecture model = load_architecture("deepseek-v3");
  const CalibrationRequest late{.kernels = "open-2025-late", .cross_validate = true};
  profile.kernel_sets = {calibrate(february_tables(), {}, model, profile.facts).kernels,
                         calibrate(tables({}), {.kernels = "open-2025-05"}, model, profile.facts).kernels,
                         calibrate(late_tables(), late, model, profile.facts).kernels};
  // Written by hand, of the constants as they are: a new fit has none.
  for (std::size_t i = 0; i < shipped.size(); ++i)
    profile.kernel_sets[i].published_errors = shipped[i].published_errors;
  CHECK(to_yaml(profile) == read_text(source("hwprofiles/h800.yaml")));
}

TEST_CASE("the fit uses no kernel of the layers that predictions are scored on") {
  if (!present(training_kernels())) return;
  const HardwareProfile profile = load_profile("h800");
  const Calibration calibration = calibrate(february_tables(), {}, load_architecture("deepseek-v3"), profile.facts);
  for (const Observation& o : calibration.observations) {
    CHECK(o.where.find("layer 2") == std::string::npos);
    CHECK(o.where.find("layer 3") == std::string::npos);
  }
}

TEST_CASE("FP8 GEMMs, in sample: 32 kernels of the trace and 12 of DeepGEMM's table within 3 % at the median") {
  const HardwareProfile profile = load_profile("h800");
  const auto& fits = profile.kernels("deepseek-2025-02").fits;
  CHECK(fits.at("gemm_fp8").median_abs_error < 0.03);
  CHECK(fits.at("gemm_fp8_wgrad").median_abs_error < 0.03);
}

TEST_CASE("a start-up that would come out negative does not show: it is 0, and the rest is fitted without it") {
  std::vector<Observation> observations;
  for (const double size : {10.0, 20.0, 40.0}) {
    const double us = 2 * size - 3;  // faster than in proportion
    observations.push_back({"f", us, {Curve{{{Constant::memory_startup, 1}, {Constant::streaming, size}}, {}}}});
  }
  const Constants found = solve(observations);
  CHECK(found[static_cast<std::size_t>(Constant::memory_startup)] == 0);
  CHECK(found[static_cast<std::size_t>(Constant::streaming)] > 1.7);
  CHECK(found[static_cast<std::size_t>(Constant::streaming)] < 2);
}

}  // TEST_SUITE("calib/calibrate")
