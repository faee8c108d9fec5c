#include "hardware/power.hpp"

#include <algorithm>
#include <cmath>

#include "curves/curve.hpp"

namespace moeline {
namespace {

constexpr double kFullSpeed = 0.7;  // of the tensor cores' peak: large GEMMs reach 0.67 of it, MLA decode 0.76

double at_full_speed_w(const FamilyRow& row, const MachineFacts& machine) {
  if (row.kind == FamilyKind::attention) return machine.attention_w;
  if (row.kind != FamilyKind::gemm) return 0;
  return row.precision == Precision::bf16 && machine.bf16_gemm_w > 0 ? machine.bf16_gemm_w : machine.gemm_w;
}

// Of the tensor cores at this clock.
double peak_share(const Operator& op, double us, double clock, const MachineFacts& machine) {
  const double over_nominal = clock * machine.boost_clock_mhz / machine.sm_clock_mhz;
  return flops_at_peak_us(op.flops, machine.tflops(row_of(op.family).precision) * over_nominal) / us;
}

}  // namespace

KernelPower power_of(const Operator& op, const Price& price, double clock, const MachineFacts& machine) {
  if (!(price.solo_us > 0)) return {};
  if (is_communication(op.family)) return {0, machine.copying_w * price.sms / machine.sms};
  const double speed = std::min(1.0, peak_share(op, price.solo_us, clock, machine) / kFullSpeed);
  return {at_full_speed_w(row_of(op.family), machine) * speed * std::pow(clock, machine.power_exponent),
          machine.memory_w * price.hbm_GBps / machine.hbm_GBps};
}

bool knows_power(const MachineFacts& machine) {
  return machine.power_cap_w > 0 && machine.boost_clock_mhz > 0 && machine.idle_w > 0 && machine.gemm_w > 0 &&
         machine.attention_w > 0 && machine.memory_w > 0;
}

double mean_power_w(const PowerLoad& load, double clock, const MachineFacts& machine) {
  const double seconds = load.seconds + load.clocked_seconds * (1 / clock - 1);
  return machine.idle_w +
         (load.clocked_joules * std::pow(clock, machine.power_exponent - 1) + load.other_joules) / seconds;
}

double capped_clock(const PowerLoad& load, double most, const MachineFacts& machine) {
  constexpr double kLeast = 0.1;
  double low = kLeast, high = most;
  if (mean_power_w(load, high, machine) <= machine.power_cap_w) return high;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (mean_power_w(load, middle, machine) <= machine.power_cap_w ? low : high) = middle;
  }
  return low;
}

}  // namespace moeline
