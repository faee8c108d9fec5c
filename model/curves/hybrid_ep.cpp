#include "curves/hybrid_ep.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace moeline {
namespace {

constexpr std::size_t kMeasured = 3;
constexpr std::array<double, kMeasured> kRanks = {8, 16, 24}, kSms = {16, 24, 32};

// By ranks and then SMs.
using Rates = std::array<std::array<double, kMeasured>, kMeasured>;
constexpr Rates kDispatchFp8 = {{{249, 351, 448}, {243, 339, 394}, {258, 351, 405}}};
constexpr Rates kDispatchBf16 = {{{362, 513, 616}, {329, 442, 521}, {325, 450, 503}}};
constexpr Rates kCombineBf16 = {{{310, 426, 520}, {278, 378, 443}, {127, 164, 207}}};

struct Place {
  std::size_t low;
  double share;  // of the way to the next
};

Place place_of(const std::array<double, kMeasured>& measured, double value) {
  const double within = std::clamp(value, measured.front(), measured.back());
  const std::size_t low = within < measured[1] ? 0 : 1;
  return {low, (within - measured[low]) / (measured[low + 1] - measured[low])};
}

double rate(const Rates& rates, double ranks, double sms) {
  const Place of_ranks = place_of(kRanks, ranks), of_sms = place_of(kSms, sms);
  const auto at = [&](std::size_t row) {
    return std::lerp(rates[row][of_sms.low], rates[row][of_sms.low + 1], of_sms.share);
  };
  return std::lerp(at(of_ranks.low), at(of_ranks.low + 1), of_ranks.share) * std::min(1.0, sms / kSms.front());
}

}  // namespace

double hybrid_ep_dispatch_GBps(Precision precision, double ranks, double sms) {
  return rate(precision == Precision::bf16 ? kDispatchBf16 : kDispatchFp8, ranks, sms);
}

double hybrid_ep_combine_GBps(double ranks, double sms) { return rate(kCombineBf16, ranks, sms); }

}  // namespace moeline
