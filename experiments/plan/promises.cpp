#include "experiments/plan/promises.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace moeline {
namespace {

void set_units(Side& side, int units) {
  side.utilization *= 1.0 * side.units / units;
  side.units = units;
}

int more(int units) { return units + std::max(1, units / 20); }

// Of the side in which requests wait for longer, or that is too slow.
Deployment grown(const Deployment& d, const Confirmation& served, const Limits& limits) {
  if (d.colocated) return with_units(d, more(d.prefill.units), more(d.decode.units));
  const bool slots = served.tpot_ms > limits.tpot_ms || served.measures.where.slot > served.measures.where.queue;
  return slots ? with_units(d, d.prefill.units, more(d.decode.units))
               : with_units(d, more(d.prefill.units), d.decode.units);
}

}  // namespace

bool keeps(const Confirmation& confirmation, const Limits& limits) {
  constexpr double kChance = 1.01;  // of who came when
  return confirmation.ttft_ms <= kChance * limits.ttft_ms && confirmation.tpot_ms <= kChance * limits.tpot_ms;
}

void put_first(const Promises& promises, std::vector<Deployment>& deployments) {
  const auto same = [](const Deployment& a, const Deployment& b) {
    return a.colocated == b.colocated && a.prefill_choice == b.prefill_choice && a.decode_choice == b.decode_choice &&
           a.prefill.units == b.prefill.units && a.decode.units == b.decode.units;
  };
  for (const Served& each : promises.tried) {
    std::erase_if(deployments, [&](const Deployment& d) { return same(d, each.deployment); });
  }
  std::vector<Deployment> broken;
  for (std::size_t i = 0; i + 1 < promises.tried.size(); ++i) {
    const Served& each = promises.tried[i];
    broken.push_back(each.deployment);
    broken.back().loses =
        fmt::format("served: TTFT {:.0f} ms, TPOT {:.1f}", each.confirmation.ttft_ms, each.confirmation.tpot_ms);
  }
  deployments.insert(deployments.begin(), broken.begin(), broken.end());
  Deployment best = promises.last().deployment;
  best.loses.clear();
  best.ttft_ms = promises.last().confirmation.ttft_ms;
  best.tpot_ms = promises.last().confirmation.tpot_ms;
  best.tokens_per_s_per_user = 1e3 / best.tpot_ms;
  deployments.insert(deployments.begin(), best);
}

Deployment with_units(Deployment d, int prefill, int decode) {
  const double tokens_per_s = d.tokens_per_s_per_gpu * d.gpus;
  set_units(d.prefill, prefill);
  set_units(d.decode, decode);
  set_totals(d, tokens_per_s);
  return d;
}

Promises keep_promises(const Plan& plan, const std::vector<Deployment>& deployments, const Progress& progress) {
  constexpr int kOfOnePrice = 2;
  Promises promises;
  std::map<double, int> tried_of_price;
  std::vector<Deployment> next = deployments;
  while (!next.empty() && promises.tried.size() < kMostTried && !promises.kept) {
    const Deployment deployment = next.front();
    next.erase(next.begin());
    if (++tried_of_price[deployment.price()] > kOfOnePrice) continue;
    const Confirmation served = confirm(plan, deployment, progress);
    promises.tried.push_back({deployment, served});
    promises.kept = keeps(served, plan.limits);
    const Deployment larger = grown(deployment, served, plan.limits);
    const auto dearer = [&](const Deployment& each) { return each.price() >= larger.price(); };
    next.insert(std::find_if(next.begin(), next.end(), dearer), larger);
  }
  return promises;
}

}  // namespace moeline
