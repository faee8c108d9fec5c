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
