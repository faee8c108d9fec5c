#include "curves/hybrid_ep.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace moeline {
namespace {

using Axis = std::vector<double>;

// GB/s by ranks and SMs.
struct Table {
  Axis ranks, sms;
  std::vector<Axis> dispatch_fp8, dispatch_bf16, combine;
};

struct Place {
  std::size_t low;
  double share;  // of the way to the next
};

Place place_of(const Axis& measured, double value) {
  const double within = std::clamp(value, measured.front(), measured.back());
  const auto above = std::upper_bound(measured.begin() + 1, measured.end() - 1, within);
  const auto low = static_cast<std::size_t>(above - measured.begin()) - 1;
  return {low, (within - measured[low]) / (measured[low + 1] - measured[low])};
}

const Table& table_of(const HybridEp& group) {
  static const Table kInDomain = {
      {8, 16, 24, 32, 36},
      {16, 32},
      {{620.98, 713.98}, {577.17, 650.48}, {360.12, 577.96}, {286.93, 538.86}, {260.53, 489.27}},
      {{750.15, 764.03}, {661.93, 706.95}, {637.80, 665.97}, {629.79, 642.23}, {612.85, 632.31}},
      {{684.27, 737.13}, {600.75, 666.26}, {565.53, 639.80}, {547.25, 605.15}, {543.27, 596.99}},
  };
  static const Table kBetweenDomains = {
      {16, 32, 64},
      {4, 8, 16},
      {{34.00, 62.00, 68.48}, {38.50, 51.30, 55.35}, {37.50, 46.63, 46.52}},
      {{44.40, 76.80, 71.71}, {52.60, 54.50, 57.69}, {48.00, 50.55, 49.97}},
      {{52.00, 68.00, 62.95}, {51.00, 56.40, 57.46}, {46.00, 51.03, 49.77}},
  };
  return group.in_domain ? kInDomain : kBetweenDomains;
}

constexpr double kMeasuredNic_GBps = 50;  // between domains

double rate(const std::vector<Axis>& rates, const HybridEp& group) {
  const Table& table = table_of(group);
  const Place of_ranks = place_of(table.ranks, group.ranks), of_sms = place_of(table.sms, group.sms);
  const auto at = [&](std::size_t row) {
    return std::lerp(rates[row][of_sms.low], rates[row][of_sms.low + 1], of_sms.share);
  };
  const double measured = std::lerp(at(of_ranks.low), at(of_ranks.low + 1), of_ranks.share);
  const double by_links = group.in_domain ? 1 : group.nics_GBps / kMeasuredNic_GBps;
  return measured * by_links * std::min(1.0, group.sms / table.sms.front());
}

}  // namespace

int hybrid_ep_usual_sms(bool in_domain) { return in_domain ? 32 : 16; }

double hybrid_ep_dispatch_GBps(Precision precision, const HybridEp& group) {
  const Table& table = table_of(group);
  return rate(precision == Precision::bf16 ? table.dispatch_bf16 : table.dispatch_fp8, group);
}

double hybrid_ep_combine_GBps(const HybridEp& group) { return rate(table_of(group).combine, group); }

}  // namespace moeline
