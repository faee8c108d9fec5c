#include "experiments/plan/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "experiments/plan/deployment.hpp"

namespace moeline {
namespace {

struct Assumption {
  const char* name;
  std::string less, more;
  std::function<void(Plan&, int sign)> change;
};

Assumption by_share(const char* name, double share, const std::function<void(Plan&, double factor)>& scale) {
  const std::string text = fmt::format("{:.0f} %", 100 * share);
  return {name, "-" + text, "+" + text, [=](Plan& plan, int sign) { scale(plan, 1 + sign * share); }};
}

Assumption by_points(const char* name, double points, const std::function<void(Plan&, double more)>& add) {
  const std::string text = fmt::format("{:.0f} points", 100 * points);
  return {name, "-" + text, "+" + text, [=](Plan& plan, int sign) { add(plan, sign * points); }};
}

void scale_nic(Plan& plan, double factor) {
  for (PlanHardware& machine : plan.hardware) {
    const double now = facts_of(plan, machine).nic_GBps;
    machine.set.push_back(fmt::format("nic_GBps={}", now * factor));
  }
}

std::vector<Assumption> assumptions_of(const Plan& plan) {
  constexpr double kSome = 0.2, kLittle = 0.1, kPoints = 0.05;
  std::vector<Assumption> list = {
      by_share("requests", kSome, [](Plan& p, double factor) { p.traffic.requests_per_s *= factor; }),
      by_share("input lengths", kSome,
               [](Plan& p, double factor) { p.traffic.input = p.traffic.input.scaled(factor); }),
      by_share("output lengths", kSome,
               [](Plan& p, double factor) { p.traffic.output = p.traffic.output.scaled(factor); }),
      by_share("limit on TTFT", kSome, [](Plan& p, double factor) { p.limits.ttft_ms *= factor; }),
      by_share("limit on TPOT", kSome, [](Plan& p, double factor) { p.limits.tpot_ms *= factor; }),
      by_share("time of every step", kLittle, [](Plan& p, double factor) { p.step_factor *= factor; }),
      by_share("NIC", kSome, scale_nic),
      by_points("memory left free", kPoints, [](Plan& p, double more) { p.memory_less += more; })};
  if (plan.traffic.cache_hit_share > 0) {
    list.push_back(by_points("cache hits", 2 * kPoints, [](Plan& p, double more) {
      p.traffic.cache_hit_share = std::clamp(p.traffic.cache_hit_share + more, 0.0, 0.99);
    }));
  }
  if (*std::max_element(plan.decode.mtp.begin(), plan.decode.mtp.end()) > 0) {
    list.push_back(by_points("acceptance of drafted tokens", 2 * kPoints, [](Plan& p, double more) {
      p.decode.mtp_acceptance = std::clamp(p.decode.mtp_acceptance + more, 0.0, 1.0);
    }));
  }
  return list;
}

Deployment best_of(const Plan& plan, KnownSteps& known, std::size_t workers) {
  Answer answer = solve(plan, known, workers);
  return answer.deployments.empty() ? Deployment{} : std::move(answer.deployments.front());
}

// GPUs of units, and of the attention groups in them, and whether two batches overlap.
struct Kinds {
  std::set<int> gpus, groups;
  std::set<bool> two_batch;
  template <class Choice>
  void add(const Choice& choice) {
    gpus.insert(choice.unit.group());
    groups.insert(choice.unit.tp);
    two_batch.insert(is_two_batch(choice.schedule));
  }
  template <class Space>
  void assign_to(Space& space) const {
    space.ep.assign(gpus.begin(), gpus.end());
    space.tp.assign(groups.begin(), groups.end());
    space.two_batch.assign(two_batch.begin(), two_batch.end());
  }
};

// The best few, where they cost a quarter more than the best at most: a changed assumption would hardly make another
// one the best, and to search all anew for each of them takes minutes.
Plan narrowed(const Plan& plan, const std::vector<Deployment>& deployments) {
  constexpr double kQuarterMore = 1.25;
  constexpr std::size_t kFew = 6;
  std::set<std::string> machines;
  Kinds prefill, decode;
  Plan narrow = plan;
  narrow.disaggregated = narrow.colocated = false;
  for (std::size_t i = 0; i < std::min(kFew, deployments.size()); ++i) {
    const Deployment& d = deployments[i];
    if (d.price() > kQuarterMore * deployments.front().price()) continue;
    machines.insert(d.decode_choice.hardware);
    prefill.add(d.prefill_choice);
    decode.add(d.decode_choice);
    (d.colocated ? narrow.colocated : narrow.disaggregated) = true;
  }
  std::erase_if(narrow.hardware, [&](const PlanHardware& machine) { return !machines.contains(machine.name); });
  prefill.assign_to(narrow.prefill);
  decode.assign_to(narrow.decode);
  return narrow;
}

}  // namespace

std::vector<Sensitivity> sensitivities(const Plan& plan, const Answer& answer, KnownSteps& known, std::size_t workers,
                                       const Progress& progress) {
  std::vector<Sensitivity> list;
  if (answer.deployments.empty()) return list;
  const Plan narrow = narrowed(plan, answer.deployments);
  const std::vector<Assumption> assumptions = assumptions_of(plan);
  ProgressCount one_more(progress, "assumptions", assumptions.size());
  for (const Assumption& assumption : assumptions) {
    Plan less = narrow;
    Plan more = narrow;
    assumption.change(less, -1);
    assumption.change(more, 1);
    list.push_back({assumption.name, assumption.less, assumption.more, best_of(less, known, workers),
                    best_of(more, known, workers)});
    one_more();
  }
  return list;
}

}  // namespace moeline
