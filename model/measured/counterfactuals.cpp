#include "measured/counterfactuals.hpp"

#include <algorithm>

#include "measured/breakdown.hpp"

namespace moeline {
namespace {

bool has(const Measured& measured, KernelClass c) {
  return std::find(measured.meaning.classes.begin(), measured.meaning.classes.end(), c) !=
         measured.meaning.classes.end();
}

bool has_transfers(const Measured& m) {
  return has(m, KernelClass::dispatch) || has(m, KernelClass::combine) || has(m, KernelClass::collective);
}

// What lasts so long that times so much longer could not be told: nobody asks.
bool is_too_long(const Trace& trace, double factor) {
  constexpr double kMostNs = 60 * 86'400e9;
  double sum = static_cast<double>(measured_span(trace).count()) / 1e3;
  for (const GpuEvent& event : trace.gpu_events) sum += static_cast<double>(event.end_ns - event.start_ns);
  return sum * factor > kMostNs;
}

constexpr double kMostTransfers = 16;

// Factor of the transfers at which the replay without barriers has grown by 1 %, within 0.01; 0 beyond 16.
double transfer_knee(const ReplaySpans& span_with, const std::vector<WhatIf::Scale>& scales) {
  constexpr double kGrowth = 1.01;
  constexpr double kExact = 0.01;
  const double limit = kGrowth * to_us(span_with(scales));
  const auto grown = [&](double factor) {
    std::vector<WhatIf::Scale> longer = scales;
    longer.push_back({"transfer", factor});
    return to_us(span_with(longer)) > limit;
  };
  if (grown(1) || !grown(kMostTransfers)) return 0;
  double low = 1;
  double high = kMostTransfers;
  while (high - low > kExact) {
    const double middle = (low + high) / 2;
    (grown(middle) ? high : low) = middle;
  }
  return high;
}

// What takes no time in a replay, and how replay's --scale says so.
struct Removal {
  std::string what;
  std::vector<WhatIf::Scale> scales;
};

std::vector<Removal> removals(const Measured& m) {
  std::vector<Removal> list;
  const auto computes = [](KernelClass k) { return work_of(k) == Work::compute; };
  if (std::ranges::any_of(m.meaning.classes, computes)) list.push_back({"compute", {{"compute", 0}}});
  std::vector<WhatIf::Scale> free;
  if (has(m, KernelClass::barrier)) free.push_back({"barrier", 0});
  if (has_transfers(m)) free.push_back({"transfer", 0});
  if (!free.empty()) list.push_back({"communication", free});
  if (has(m, KernelClass::copy)) list.push_back({"copies", {{"kernel:copy", 0}}});
  if (!m.trace.calls.empty()) list.push_back({"host", {{"host", 0}}});
  list.push_back({"gaps", {{"gaps", 0}}});
  return list;
}

Without without_both(const ReplaySpans& span_with, const Removal& one, const Removal& other) {
  std::vector<WhatIf::Scale> scales = one.scales;
  scales.insert(scales.end(), other.scales.begin(), other.scales.end());
  return {one.what + " and " + other.what, span_with(scales)};
}

std::optional<Without> best_pair(const ReplaySpans& span_with, const std::vector<Removal>& list) {
  std::optional<Without> best;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      Without both = without_both(span_with, list[i], list[j]);
      if (!best || both.span < best->span) best = std::move(both);
    }
  }
  return best;
}

Time span_without(const Counterfactuals& c, const std::string& what) {
  const auto found = std::ranges::find(c.without, what, &Without::what);
  return found == c.without.end() ? c.replay : found->span;
}

}  // namespace

Counterfactuals counterfactuals(const Measured& measured) {
  constexpr double kBinds = 0.1;
  const std::vector<Removal> list = removals(measured);
  const ReplaySpans span_with(measured);
  Counterfactuals c;
  c.replay = span_with({});
  for (const Removal& each : list) c.without.push_back({each.what, span_with(each.scales)});
  c.no_communication = span_without(c, "communication");
  c.no_gaps = span_without(c, "gaps");
  if (!measured.trace.calls.empty()) c.no_host = span_without(c, "host");
  std::ranges::stable_sort(c.without, {}, &Without::span);
  const auto binds = [&](const Without& without) { return ratio(without.span, c.replay) <= 1 - kBinds; };
  if (!binds(c.without.front())) c.without_two = best_pair(span_with, list);
  if (c.without_two && !binds(*c.without_two)) c.without_two.reset();
  std::vector<WhatIf::Scale> barriers;
  if (has(measured, KernelClass::barrier)) barriers.push_back({"barrier", 0});
  c.without_barriers = !barriers.empty();
  if (has_transfers(measured) && !is_too_long(measured.trace, kMostTransfers))
    c.transfer_knee = transfer_knee(span_with, barriers);
  return c;
}

const Without* most_gained(const Counterfactuals& c) {
  const bool any = !c.without.empty() && c.without.front().span < c.replay;
  return any ? &c.without.front() : nullptr;
}

}  // namespace moeline
