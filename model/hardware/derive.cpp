#include "hardware/derive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

bool is_measured(const HardwareProfile& profile) {
  return std::any_of(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                     [](const KernelSet& set) { return set.is_whole() && !set.by_name_only; });
}

double ratio(double a, double b) { return a > 0 && b > 0 ? std::abs(std::log(a / b)) : 0; }

double distance(const MachineFacts& a, const MachineFacts& b) {
  return ratio(a.bf16_tflops, b.bf16_tflops) + ratio(a.fp8_tflops, b.fp8_tflops) + ratio(a.hbm_GBps, b.hbm_GBps) +
         ratio(a.sms, b.sms) + ratio(a.nvlink_GBps, b.nvlink_GBps) + ratio(a.gpus_per_node, b.gpus_per_node);
}

// Generations between them; an older machine's kernels serve a newer one before the other way round.
double generations(const MachineFacts& machine, const MachineFacts& like) {
  const int between = static_cast<int>(machine.generation()) - static_cast<int>(like.generation());
  return between >= 0 ? between : 0.5 - between;
}

bool same_facts(const MachineFacts& a, const MachineFacts& b) {
  return std::all_of(fact_fields().begin(), fact_fields().end(),
                     [&](const FactField& field) { return a.*field.value == b.*field.value; });
}

bool is_usual(double flop) {
  constexpr double kNear = 0.1;
  const double mantissa = flop / std::exp2(std::floor(std::log2(flop)));  // from 1 to 2
  return mantissa < 1 + kNear || std::abs(mantissa / 1.5 - 1) < kNear || mantissa > 2 * (1 - kNear);
}

void check_peak(const HardwareProfile& machine, const char* key, double tflops) {
  if (tflops <= 0) return;
  const double flop = flop_per_clock(machine.facts, tflops);
  if (is_usual(flop)) return;
  throw SpecError(
      machine.file, 0,
      fmt::format("{}, sms and sm_clock_mhz contradict each other: {:g} TFLOP/s are {:.0f} FLOP for each of "
                  "{:g} SMs and clock of {:g} MHz; expected a power of two, or half as much again",
                  key, tflops, flop, machine.facts.sms, machine.facts.sm_clock_mhz));
}

void check_not_slower(const HardwareProfile& machine, const char* narrow, double narrow_tflops, const char* wide,
                      double wide_tflops) {
  if (narrow_tflops <= 0 || narrow_tflops >= wide_tflops) return;
  throw SpecError(machine.file, 0,
                  fmt::format("{} {:g} and {} {:g} contradict each other: narrower formats are no slower", narrow,
                              narrow_tflops, wide, wide_tflops));
}

}  // namespace

double flop_per_clock(const MachineFacts& m, double tflops) { return tflops * 1e6 / (m.sms * m.sm_clock_mhz); }

void check_facts(const HardwareProfile& machine) {
  const MachineFacts& m = machine.facts;
  check_peak(machine, "bf16_tflops", m.bf16_tflops);
  check_peak(machine, "fp8_tflops", m.fp8_tflops);
  check_peak(machine, "fp4_tflops", m.fp4_tflops);
  check_not_slower(machine, "fp8_tflops", m.fp8_tflops, "bf16_tflops", m.bf16_tflops);
  check_not_slower(machine, "fp4_tflops", m.fp4_tflops, "fp8_tflops", m.fp8_tflops);
}

std::string nearest_measured(const HardwareProfile& machine) {
  std::string nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : names_in("hwprofiles")) {
    const auto other = known_profile(name);
    const MachineFacts& facts = other->facts;
    if (name == machine.name || !is_measured(*other) || facts.vendor != machine.facts.vendor) continue;
    constexpr double kGeneration = 1000;  // counts before all ratios
    const double away = kGeneration * generations(machine.facts, facts) + distance(machine.facts, facts);
    if (away >= least) continue;
    least = away;
    nearest = name;
  }
  if (nearest.empty())
    throw SpecError(machine.file, 0, "no other machine of its vendor has kernels that were measured; --like names one");
  return nearest;
}

std::string derive(const HardwareProfile& machine, const std::string& like) {
  check_facts(machine);
  const auto measured = known_profile(like);
  if (same_facts(machine.facts, measured->facts)) {
    return fmt::format("name: {0}\n{1}hardware derive`; its facts and kernels are those of {0}.\nextends: {0}\n",
                       measured->name, kProfileMark);
  }
  HardwareProfile profile;
  profile.name = fmt::format("{}-like-{}", machine.name, measured->name);
  profile.facts = machine.facts;
  profile.sources = machine.sources;
  profile.carried_over_from = measured->name;
  return to_yaml(profile) +
         fmt::format("{}hardware derive`; prices are {}'s at these facts.\n", kProfileMark, measured->name);
}

std::string what_carries_over(const FamilyFit& fit) {
  if (fit.form == nullptr) return "the curve of the set, at the machine's facts";
  const auto has = [&](const char* ending) {
    return std::any_of(fit.form->parts.begin(), fit.form->parts.end(),
                       [&](const FormPart& part) { return part.name.ends_with(ending); });
  };
  const bool starts = has("_us"), shares = has("_multiple");
  std::string text = starts && shares ? "start-ups, and shares of the peaks"
                     : starts         ? "start-ups"
                                      : "shares of the peaks";
  if (fit.range.contains(Dimension::sms)) text += "; waves by the machine's SMs";
  return text;
}

}  // namespace moeline
