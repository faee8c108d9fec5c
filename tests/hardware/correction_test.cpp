// Corrections of curves: what they say between knots and outside, in a profile, and in a price.
#include "hardware/correction.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "base/spec.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("hardware/correction") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const MeasuredRange kRange = {{Dimension::m, {1, 4096}}, {Dimension::k, {128, 8192}}, {Dimension::sms, {148, 148}}};

Dimensions at(double m, double k) { return {{Dimension::m, m}, {Dimension::k, k}, {Dimension::sms, 148}}; }

Correction correction() {
  return {
      {{Dimension::m, {1, 64, 4096}}, {Dimension::k, {128, 8192}}}, {0.9, 1.1, 1.2, 1.3, 0.75, 1.004}, 0.043, 0.184};
}

const HardwareProfile& b200() {
  static const HardwareProfile kProfile = load_profile("b200");
  return kProfile;
}

// TensorRT-LLM's kernels, whose block-scaled FP8 GEMMs take so many times as long as the curve says, wherever measured.
KernelSet with_gain(double gain) {
  KernelSet set = b200().kernels("trtllm-1.3.0");
  FamilyFit& fit = set.fits.at("linear_fp8");
  const Bounds m = fit.range.at(Dimension::m);
  fit.correction = {{{Dimension::m, {m.low, m.high}}}, {gain, gain}, 0, 0};
  return set;
}

Price priced(const std::string& text, double gain) {
  const RequestedOp op = parse_op(text, b200().facts);
  return price_all(op.kernels, op.conditions, b200().facts, with_gain(gain));
}

}  // namespace

TEST_CASE("a gain is that of the knot at a knot, and changes by little between places that are close") {
  const Correction c = correction();
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      const Dimensions knot = at(c.axes[0].knots[i], c.axes[1].knots[j]);
      CHECK(gain_at(c, kRange, knot) == doctest::Approx(c.gains[2 * i + j]).epsilon(1e-12));
    }
  }
  CHECK(gain_at(c, kRange, at(8, 1024)) == doctest::Approx((0.9 + 1.1 + 1.2 + 1.3) / 4));  // the middle, by logarithms
  double before = gain_at(c, kRange, at(1, 700));
  for (double m = 1.01; m < 4096; m *= 1.01) {
    const double gain = gain_at(c, kRange, at(m, 700));
    CHECK(std::abs(gain - before) < 0.002);
    before = gain;
  }
}

TEST_CASE("outside of what was measured a gain fades without a jump, and is none at four times as much") {
  const Correction c = correction();
  const double edge = gain_at(c, kRange, at(4096, 128));
  CHECK(edge == doctest::Approx(0.75));
  double before = edge;
  for (double m = 4096; m < 5 * 4096; m *= 1.02) {
    const double gain = gain_at(c, kRange, at(m, 128));
    CHECK(std::abs(gain - before) < 0.01);
    CHECK(gain >= before);
    before = gain;
  }
  CHECK(gain_at(c, kRange, at(2 * 4096, 128)) == doctest::Approx((edge + 1) / 2));
  CHECK(gain_at(c, kRange, at(4 * 4096, 128)) == 1);
  CHECK(gain_at(c, kRange, at(64, 30)) == 1);
}

TEST_CASE("there is no gain on other SMs, nor without a correction") {
  const Correction c = correction();
  CHECK(gain_at(c, kRange, at(4096 * 1.005, 128)) == doctest::Approx(0.75));  // within the noise of the end
  Dimensions fewer_sms = at(64, 1024);
  fewer_sms[Dimension::sms] = 132;
  CHECK(gain_at(c, kRange, fewer_sms) == 1);
  CHECK(gain_at({}, kRange, at(64, 1024)) == 1);
  CHECK(gain_at(c, kRange, {{Dimension::m, 64}}) == 1);
}

TEST_CASE("a correction is read back as it was written") {
  const Correction c = correction();
  const Spec spec = Spec::parse("profile.yaml", "{correction: " + to_yaml(c) + "}");
  const Correction back = read_correction(spec.map("correction"), kRange);
  REQUIRE(back.axes.size() == c.axes.size());
  for (std::size_t i = 0; i < c.axes.size(); ++i) {
    CHECK(back.axes[i].dimension == c.axes[i].dimension);
    CHECK(back.axes[i].knots == c.axes[i].knots);
  }
  REQUIRE(back.gains.size() == c.gains.size());
  for (std::size_t i = 0; i < c.gains.size(); ++i) CHECK(back.gains[i] == doctest::Approx(c.gains[i]).epsilon(1e-12));
  CHECK(back.curve_median_abs_error == c.curve_median_abs_error);
  CHECK(back.curve_p95_abs_error == c.curve_p95_abs_error);
  CHECK(to_yaml(back) == to_yaml(c));
}

TEST_CASE("damaged corrections are refused with file, line and key") {
  HardwareProfile profile = b200();
  profile.kernel_sets = {with_gain(1.2)};
  profile.kernel_sets[0].fits = {{"linear_fp8", profile.kernel_sets[0].fits.at("linear_fp8")}};
  const std::string whole = to_yaml(profile);
  const TemporaryFolder folder;
  const auto line_of = [](const std::string& text) {
    return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("linear_fp8:")), '\n');
  };
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& says) {
    const std::string text = replaced(whole, from, to);
    const std::string file = folder.write("damaged.yaml", text);
    check_refused({"price", file, "linear:dtype=fp8"}, fmt::format("{}:{}: ", file, line_of(text)), says);
  };
  const std::string knots = "knots: {m: [1, 32768]}";
  refused(knots, "knots: {m: [32768, 1]}", "correction.knots.m");
  refused(knots, "knots: {m: [1, 1]}", "each above the one before");
  refused(knots, "knots: {m: [1]}", "at least two knots");
  refused(knots, "knots: {m: [0, 32768]}", "correction.knots.m");
  refused(knots, "knots: {m: [1, .inf]}", "correction.knots.m");
  refused(knots, "knots: {batch: [1, 32768]}", "is no dimension of the family's range");
  refused(knots, "knots: {rows_of: [1, 32768]}", "correction.knots.rows_of");
  refused(knots, "knots: {}", "at least one dimension");
  refused("[200 200]", "[200]", "must be 1 times 2 numbers");
  refused("[200 200]", "[200 200, 200 200]", "must be 1 times 2 numbers");
  refused("[200 200]", "[200 200 200]", "must be 1 times 2 numbers");
  refused("[200 200]", "[200 nan]", "'nan' is not a whole number");
  refused("[200 200]", "[200 1e9]", "'1e9' is not a whole number");
  refused("[200 200]", "[200 -1000]", "'-1000' is not a whole number");
  refused(", curve_p95_abs_error", ", curve_p95", "unknown key");
}

TEST_CASE("a correction of a family without a form is refused") {
  const TemporaryFolder folder;
  HardwareProfile profile = load_profile("h800");
  const std::string text = replaced(to_yaml(profile), "mean_error:", "correction: {}, mean_error:");
  const std::string file = folder.write("h800.yaml", text);
  check_refused({"price", file, "gemm:m=64"}, file, "is of a family with a form alone");
}

TEST_CASE("what a gain adds belongs to the hot time that was measured, cold or not") {
  for (const std::string shape : {"m=64,n=4096,k=7168", "m=512,n=7168,k=2048", "m=8192,n=24576,k=1536"}) {
    CAPTURE(shape);
    const std::string cold = "linear:dtype=fp8," + shape, hot = cold + ",l2=hot";
    const double cold_us = priced(cold, 1).solo_us, hot_us = priced(hot, 1).solo_us;
    REQUIRE(hot_us <= cold_us);
    CHECK(priced(hot, 1.2).solo_us == doctest::Approx(1.2 * hot_us));
    CHECK(priced(cold, 1.2).solo_us == doctest::Approx(cold_us + 0.2 * hot_us));
    CHECK(priced(cold, 0.5).solo_us > 0);
    CHECK(priced(cold, 0.5).solo_us >= priced(hot, 0.5).solo_us * (1 - 1e-12));
  }
}

TEST_CASE("a price says its correction, and has none outside of the measurements or on another machine") {
  const std::string inside = "linear:dtype=fp8,m=64,n=4096,k=7168", outside = "linear:dtype=fp8,m=131072,n=4096,k=7168";
  CHECK(priced(inside, 1.2).gain == doctest::Approx(1.2));
  CHECK(priced(inside, 1.2).provenance == Provenance::interpolated);
  CHECK(priced(outside, 1.2).gain == 1);
  CHECK(priced(outside, 1.2).solo_us == priced(outside, 1).solo_us);
  KernelSet elsewhere = with_gain(1.2);
  elsewhere.fits.at("linear_fp8").other_machine = true;
  const RequestedOp op = parse_op(inside, b200().facts);
  CHECK(price_all(op.kernels, op.conditions, b200().facts, elsewhere).gain == 1);
  const TemporaryFolder folder;
  HardwareProfile profile = b200();
  profile.kernel_sets = {with_gain(1.2)};
  const std::string file = folder.write("corrected.yaml", to_yaml(profile));
  CHECK(run_moeline({"price", file, inside}).out.find("corrected +20.0 %") != std::string::npos);
  CHECK(run_moeline({"price", file, inside, "--format", "json"}).out.find("\"correction\": 1.2") != std::string::npos);
  CHECK(run_moeline({"price", file, outside}).out.find("corrected") == std::string::npos);
}

TEST_CASE("on a machine that is given more SMs a shape keeps its correction, and on a part of them it has none") {
  const RequestedOp op = parse_op("linear:dtype=fp8,m=64,n=4096,k=7168", b200().facts);
  const KernelSet set = with_gain(1.5);
  MachineFacts more = b200().facts;
  more.sms += 32;
  const double gain = price_all(op.kernels, op.conditions, b200().facts, set).gain;
  CHECK(gain != 1);
  CHECK(price_all(op.kernels, {.sms = static_cast<int>(more.sms)}, more, set).gain == gain);
  CHECK(price_all(op.kernels, {.sms = 100}, b200().facts, set).gain == 1);
}

}  // TEST_SUITE("hardware/correction")
