// Kernels that pass once over the rows of a tensor: casts, of which there are tables, and what walks like them.
//   start-up + bytes from L2's pace on, and what HBM adds
#include "curves/stack_forms.hpp"

namespace moeline {
namespace rows_curves {
namespace {

enum Part : std::size_t { start, l2, beyond_l2 };

constexpr double kL2Whole = 0.5, kL2None = 1;
constexpr double kScoreBytes = 4;  // routing kernels are told by the scores that they go through

Curve rows_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const double bytes = op.bytes > 0 ? op.bytes : op.items * kScoreBytes;
  const double us = bytes_at_peak_us(bytes, machine.hbm_GBps) * machine.sms / sms;
  const double hot = l2_share(op, bytes, machine, kL2Whole, kL2None);
  return {{{part(start), overhead(machine)}, {part(l2), us}, {part(beyond_l2), us * (1 - hot)}}, {}};
}

}  // namespace
}  // namespace rows_curves

std::vector<Form> rows_forms() {
  using namespace rows_curves;
  return {{"rows", {{"start_us"}, {"l2_roofline_multiple"}, {"beyond_l2_roofline_multiple"}}, rows_curve}};
}

}  // namespace moeline
