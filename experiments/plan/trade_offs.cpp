#include "experiments/plan/trade_offs.hpp"

#include <algorithm>

namespace moeline {

std::vector<TradeOff> pareto_front(std::vector<TradeOff> all) {
  std::stable_sort(all.begin(), all.end(), [](const TradeOff& a, const TradeOff& b) {
    return a.tokens_per_s_per_user != b.tokens_per_s_per_user ? a.tokens_per_s_per_user > b.tokens_per_s_per_user
                                                              : a.tokens_per_s_per_gpu > b.tokens_per_s_per_gpu;
  });
  std::vector<TradeOff> front;
  for (const TradeOff& point : all) {
    if (front.empty() || point.tokens_per_s_per_gpu > front.back().tokens_per_s_per_gpu) front.push_back(point);
  }
  std::reverse(front.begin(), front.end());
  return front;
}

}  // namespace moeline
