#include "curves/curve.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"

namespace moeline {
namespace {

// What a memory-bound or routing kernel takes per byte or item.
Constant rate_of(Family family) {
  static const std::map<Family, Constant> kRates = {
      {Family::streaming, Constant::streaming},   {Family::rowwise, Constant::rowwise},
      {Family::cast_transpose, Constant::tiled},  {Family::swiglu, Constant::tiled},
      {Family::requantize, Constant::requantize}, {Family::recode_12bit, Constant::recode_12bit},
      {Family::strided, Constant::strided},       {Family::routing_scan, Constant::routing_scan},
      {Family::count_rows, Constant::count_rows}, {Family::map_rows, Constant::map_rows}};
  return kRates.at(family);
}

// A scan goes by millions of token-expert pairs, the others by thousands of rows.
double items_of(const Operator& op) { return op.items / (op.family == Family::routing_scan ? 1e6 : 1e3); }

double sum(const std::vector<Term>& terms, std::span<const double> constants) {
  double us = 0;
  for (const Term& term : terms) us += constants[static_cast<std::size_t>(term.constant)] * term.feature;
  return us;
}

// A kernel that fills the SMs once starts and ends as small ones do; those of several waves also ramp up and down,
// which is in the intercept of the large ones that were measured. One wave: 2048 threads on each SM that load 16 bytes
// each.
Curve memory_curve(const Operator& op, int sms, const MachineFacts& machine) {
  constexpr double kWaveBytesPerSm = 2048 * 16;
  const double several_waves = std::min(1.0, op.bytes / (kWaveBytesPerSm * machine.sms));
  Curve curve{{{rate_of(op.family), bytes_at_peak_us(op.bytes, machine.hbm_GBps) * machine.sms / sms}}, {}};
  if (several_waves > 0) curve.always.push_back({Constant::memory_startup, overhead(machine, several_waves)});
  if (several_waves < 1) curve.always.push_back({Constant::small, overhead(machine, 1 - several_waves)});
  return curve;
}

}  // namespace

Evaluation evaluate(const Curve& curve, std::span<const double> constants) {
  Evaluation result;
  double slowest = curve.branches.empty() ? 0 : kUnknown;
  for (std::size_t i = 0; i < curve.branches.size(); ++i) {
    const double us = sum(curve.branches[i].terms, constants);
    if (std::isnan(us) || us <= slowest) continue;
    slowest = us;
    result.bound = curve.branches[i].bound;
    result.branch = i;
  }
  result.us = curve.fixed_us + sum(curve.always, constants) + slowest;
  if (!result.bound.empty()) result.deviation = curve.branches[result.branch].deviation * slowest / result.us;
  for (std::size_t i = 0; i < curve.alternatives.size(); ++i) {
    const Evaluation other = evaluate(curve.alternatives[i], constants);
    if (!(other.us < result.us)) continue;
    result = other;
    result.alternative = i + 1;
  }
  return result;
}

Curve compute_curve(const Operator& op, int sms, const MachineFacts& machine, TileSet tiles) {
  switch (row_of(op.family).kind) {
    case FamilyKind::gemm:
      return gemm_curve(op, sms, machine, tiles);
    case FamilyKind::attention:
      return attention_curve(op, sms, machine);
    case FamilyKind::routing:
      return {{{rate_of(op.family), overhead(machine, items_of(op))}}, {}};
    case FamilyKind::small:
      return {{{Constant::small, overhead(machine)}}, {}};
    case FamilyKind::memory_bound:
      return memory_curve(op, sms, machine);
    case FamilyKind::barrier:
    case FamilyKind::host_copy:
    case FamilyKind::collective:
    case FamilyKind::normal:
    case FamilyKind::low_latency:
      break;
  }
  moeline::check_failed("a compute family", __FILE__, __LINE__, name_of(op.family));
}

}  // namespace moeline
