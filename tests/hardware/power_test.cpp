// What kernels draw, and the clock that a cap leaves.
#include "hardware/power.hpp"

#include <doctest/doctest.h>

#include "moe/kernels.hpp"

TEST_SUITE("hardware/power") {

using namespace moeline;
namespace {

const HardwareProfile& h800() {
  static const HardwareProfile profile = load_profile("h800");
  return profile;
}

Operator large_gemm() { return kernels::gemm(Family::gemm_fp8, "gemm", 4096, 7168, 16384); }
Operator copy_of(double bytes) { return kernels::memory(Family::streaming, "copy", bytes); }

Price priced(const Operator& op, double clock = 1) {
  const KernelSet late = h800().kernels("open-2025-late");
  return price(op, {.sms = 132, .clock = clock}, h800().facts, late);
}

double above_rest_w(const Operator& op, double clock = 1) {
  const KernelPower power = power_of(op, priced(op, clock), clock, h800().facts);
  return power.clocked_w + power.other_w;
}

}  // namespace

TEST_CASE("of a large GEMM nearly all time goes by the SMs' clock, of a copy next to nothing") {
  CHECK(priced(large_gemm()).clocked > 0.9);
  CHECK(priced(copy_of(1e9)).clocked < 0.05);
}

TEST_CASE("at half the clock a large GEMM timed at burst takes twice as long, one timed under load as long as it did") {
  const double burst = priced(large_gemm(), 0.5).solo_us / priced(large_gemm()).solo_us;
  CHECK(burst == doctest::Approx(2).epsilon(0.1));
  const KernelSet trace = h800().kernels("deepseek-2025-02");
  const PriceConditions half{.sms = 132, .clock = 0.5};
  CHECK(price(large_gemm(), half, h800().facts, trace).solo_us ==
        price(large_gemm(), {.sms = 132}, h800().facts, trace).solo_us);
}

TEST_CASE("a GEMM alone meets the cap near 1300 MHz, as in DeepGEMM's stress loop") {
  const MachineFacts& machine = h800().facts;
  const double clock = 1300 / machine.boost_clock_mhz;
  CHECK(machine.idle_w + above_rest_w(large_gemm(), clock) == doctest::Approx(machine.power_cap_w).epsilon(0.05));
}

TEST_CASE(
    "a loop of products meets B300's cap at 1125 MHz in FP8 and 1278 in BF16, an H100's in BF16 at 1470, as logged") {
  struct Logged {
    const char* machine;
    Family family;
    double mhz;
  };
  for (const Logged& logged : {Logged{"b300", Family::gemm_fp8, 1125}, Logged{"b300", Family::gemm_bf16, 1278},
                               Logged{"h100", Family::gemm_bf16, 1470}}) {
    const HardwareProfile profile = load_profile(logged.machine);
    const double clock = logged.mhz / profile.facts.boost_clock_mhz;
    const Operator op = kernels::gemm(logged.family, "gemm", 16384, 16384, 16384);
    const PriceConditions conditions{.sms = static_cast<int>(profile.facts.sms), .clock = clock};
    const Price price = moeline::price(op, conditions, profile.facts, profile.kernels("sglang"));
    const KernelPower power = power_of(op, price, clock, profile.facts);
    CAPTURE(logged.machine);
    CHECK(profile.facts.idle_w + power.clocked_w + power.other_w ==
          doctest::Approx(profile.facts.power_cap_w).epsilon(0.04));
  }
}

TEST_CASE(
    "the GEMMs of a layer take at the clocks of a log within 9 % of what TransformerEngine's took on B300: 2365 us in "
    "MXFP8, 4250 in "
    "BF16") {
  const HardwareProfile b300 = load_profile("b300");
  const KernelSet sglang = b300.kernels("sglang");
  const auto us = [&](Precision precision, double mhz) {
    double sum = 0;
    for (const auto& [n, k] :
         {std::pair{12288, 4096}, std::pair{4096, 4096}, std::pair{16384, 4096}, std::pair{4096, 16384}}) {
      const Operator op = kernels::linear_gemm(precision, "gemm", 15872, n, k);
      sum += price(op, {.sms = 148, .clock = mhz / b300.facts.boost_clock_mhz}, b300.facts, sglang).solo_us;
    }
    return sum;
  };
  CHECK(us(Precision::fp8, 1125) == doctest::Approx(2365).epsilon(0.09));
  CHECK(us(Precision::bf16, 1278) == doctest::Approx(4250).epsilon(0.09));
  CHECK(us(Precision::bf16, 1900) == us(Precision::bf16, 1600));  // as in the table
}

TEST_CASE("a copy draws less than a GEMM, and a transfer by the SMs it holds") {
  CHECK(above_rest_w(copy_of(1e9)) < 0.2 * above_rest_w(large_gemm()));
  Operator transfer;
  transfer.family = Family::dispatch;
  const MachineFacts& machine = h800().facts;
  Price few, many;
  few.sms = 10;
  many.sms = 20;
  CHECK(power_of(transfer, many, 1, machine).other_w ==
        doctest::Approx(2 * power_of(transfer, few, 1, machine).other_w));
}

TEST_CASE(
    "the clock that a cap leaves is the highest under it, falls with the load, and never passes the boost clock") {
  const MachineFacts& machine = h800().facts;
  double last = 1;
  for (const double watts : {100.0, 600.0, 800.0, 1200.0, 2000.0}) {
    const PowerLoad load{.seconds = 1, .clocked_joules = watts, .other_joules = 50, .clocked_seconds = 0.8};
    const double clock = capped_clock(load, 1, machine);
    CAPTURE(watts);
    CHECK(clock <= last);
    CHECK(mean_power_w(load, clock, machine) <= machine.power_cap_w * (1 + 1e-9));
    if (clock < 1) CHECK(mean_power_w(load, clock, machine) == doctest::Approx(machine.power_cap_w));
    last = clock;
  }
  CHECK(last < 0.8);
}

}  // TEST_SUITE("hardware/power")
