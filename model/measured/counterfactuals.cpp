#include "measured/counterfactuals.hpp"

#include <algorithm>

#include "engine/simulate.hpp"

namespace moeline {
namespace {

Time span_with(const Measured& measured, const std::vector<WhatIf::Scale>& scales) {
  const ReplayGraph replay = replay_graph(measured, {scales, {}});
  return gpu_span(replay, simulate(replay.graph));
}

bool has(const Measured& measured, KernelClass c) {
  return std::find(measured.meaning.classes.begin(), measured.meaning.classes.end(), c) !=
         measured.meaning.classes.end();
}

// Factor of the transfers at which the replay without barriers has grown by 1 %, within 0.01; 0 beyond 16.
double transfer_knee(const Measured& measured, std::vector<WhatIf::Scale> scales) {
  constexpr double kGrowth = 1.01;
  constexpr double kMost = 16;
  constexpr double kExact = 0.01;
  const double limit = kGrowth * to_us(span_with(measured, scales));
  const auto grown = [&](double factor) {
    std::vector<WhatIf::Scale> longer = scales;
    longer.push_back({"transfer", factor});
    return to_us(span_with(measured, longer)) > limit;
  };
  if (grown(1) || !grown(kMost)) return 0;
  double low = 1;
  double high = kMost;
  while (high - low > kExact) {
    const double middle = (low + high) / 2;
    (grown(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

Counterfactuals counterfactuals(const Measured& measured) {
  constexpr std::size_t kQuickly = 20'000;  // events up to which a dozen replays take no time
  Counterfactuals c;
  std::vector<WhatIf::Scale> barriers;
  if (has(measured, KernelClass::barrier)) barriers.push_back({"barrier", 0});
  c.without_barriers = !barriers.empty();
  std::vector<WhatIf::Scale> free = barriers;
  const bool transfers = has(measured, KernelClass::dispatch) || has(measured, KernelClass::combine) ||
                         has(measured, KernelClass::collective);
  if (transfers) free.push_back({"transfer", 0});
  c.replay = span_with(measured, {});
  c.no_communication = span_with(measured, free);
  c.no_gaps = span_with(measured, {{"gaps", 0}});
  if (!measured.trace.calls.empty()) c.no_host = span_with(measured, {{"host", 0}});
  if (transfers && measured.trace.gpu_events.size() <= kQuickly) c.transfer_knee = transfer_knee(measured, barriers);
  return c;
}

}  // namespace moeline
