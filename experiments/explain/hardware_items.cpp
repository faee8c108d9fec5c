#include "experiments/explain/hardware_items.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hardware/price.hpp"

namespace moeline {
namespace {

constexpr double kLittle = 1e-3;
constexpr double kUnlimited = 1e6;  // times as fast: what is left of its time is nothing

// Something that a machine has `times` as much of, or that takes `times` as long.
struct MachineChange {
  std::string what;
  void (*apply)(MachineFacts&, double times);
  bool is_capacity = true;
};

const std::vector<MachineChange>& changes() {
  static const std::vector<MachineChange> kAll = {
      {"link:nic", [](MachineFacts& facts, double times) { facts.nic_GBps *= times; }},
      {"link:nvlink", [](MachineFacts& facts, double times) { facts.nvlink_GBps *= times; }},
      {"link:hbm", [](MachineFacts& facts, double times) { facts.hbm_GBps *= times; }},
      {"link:host", [](MachineFacts& facts, double times) { facts.host_GBps *= times; }},
      {"latency",
       [](MachineFacts& facts, double times) {
         facts.nic_latency_us *= times;
         facts.leaf_latency_us *= times;
       },
       false},
  };
  return kAll;
}

// More SMs are for kernels that compute, and for those of communication that have all.
std::vector<Price> prices(const Run& run, const MachineFacts& facts, int more_sms = 0) {
  const int all = static_cast<int>(run.setup.machine.facts.sms);
  std::vector<Price> prices;
  for (const KernelWork& kernel : run.program.kernels) {
    PriceConditions conditions = kernel.conditions;
    if (!is_communication(kernel.op.family) || conditions.sms == all) conditions.sms += more_sms;
    conditions.sms = std::clamp(conditions.sms, 1, static_cast<int>(facts.sms));
    prices.push_back(price(kernel.op, conditions, facts, run.setup.kernels()));
  }
  return prices;
}

double ln_ratio(double after, double before) { return after > 0 && before > 0 ? std::log(after / before) : 0; }

double rate_of(const Price& price, const std::string& link) {
  if (link.starts_with("HBM")) return price.hbm_GBps;
  if (link.starts_with("NVLink")) return price.nvlink_GBps;
  const bool copies = link.starts_with("host") && price.host_GBps > 0;
  return copies ? price.host_GBps : price.nic_GBps;  // which shares the link to the host
}

double capacity_of(const MachineFacts& facts, const Resource& resource) {
  if (resource.kind == ResourceKind::sm_pool) return facts.sms;
  if (resource.name.starts_with("HBM")) return facts.hbm_GBps;
  if (resource.name.starts_with("NVLink")) return facts.nvlink_GBps;
  return resource.name.starts_with("host") ? facts.host_GBps : facts.nic_GBps;
}

// ps by which the span changes where kernels and links are as `after` says.
double moved(const Run& run, const Gradient& gradient, const std::vector<Price>& before,
             const std::vector<Price>& after, const MachineFacts& changed) {
  const TaskGraph& graph = run.program.graph;
  double sum = 0;
  std::size_t usage = 0;
  for (TaskId id = 0; id < graph.size(); ++id) {
    const auto usages = graph.usages(id);
    const std::uint32_t kernel = run.program.execution_of(id).kernel;
    if (kernel != Execution::kNone) {
      const Price &was = before[kernel], &is = after[kernel];
      const auto solo = static_cast<double>(graph.task(id).solo.count());
      if (was.solo_us > 0) sum += gradient.solo[id] * solo * (is.solo_us / was.solo_us - 1);
      sum += gradient.sms[id] * ln_ratio(is.sms, was.sms);
      sum += gradient.disturbed[id] * ln_ratio(is.disturbed_speed, was.disturbed_speed);
      for (std::size_t i = 0; i < usages.size(); ++i) {
        const std::string& link = graph.resources()[usages[i].link].name;
        sum += gradient.usage[usage + i] * ln_ratio(rate_of(is, link), rate_of(was, link));
      }
    }
    usage += usages.size();
  }
  for (ResourceId id = 0; id < graph.resources().size(); ++id) {
    const Resource& resource = graph.resources()[id];
    sum += gradient.capacity[id] *
           ln_ratio(capacity_of(changed, resource), capacity_of(run.setup.machine.facts, resource));
  }
  return sum;
}

double elasticity(const Run& run, double ps, double ln_change) {
  return ps / static_cast<double>(run.explained_span().count()) / ln_change;
}

// What the time of a task comes to that was priced at `was` and took so long, where `is` is its price.
double ratio_of_times(const Price& was, const Price& is, double took_us) {
  if (was.solo_us <= 0) return 1;
  const double beside = 1 / was.disturbed_speed - 1;  // its time beside what disturbs it, over that alone, less 1
  const double disturbed =
      beside > 0 ? std::clamp((took_us / was.solo_us - 1) / beside, 0.0, 1.0) : 0;  // share of work
  const auto time = [&](const Price& price) {
    return price.solo_us * (1 - disturbed + disturbed / price.disturbed_speed);
  };
  return time(is) / time(was);
}

Item item_of(const Run& run, const Gradient& gradient, const std::vector<Price>& before, const MachineChange& change) {
  MachineFacts facts = run.setup.machine.facts;
  change.apply(facts, 1 + kLittle);
  const double ps = moved(run, gradient, before, prices(run, facts), facts);
  const auto shorten = [&run, &change, before](double left, Factors& factors) {
    MachineFacts faster = run.setup.machine.facts;
    change.apply(faster, change.is_capacity ? std::min(kUnlimited, 1 / left) : left);
    const std::vector<Price> after = prices(run, faster);
    for (TaskId id = 0; id < run.program.executions.size(); ++id) {
      const std::uint32_t kernel = run.program.executions[id].kernel;
      if (kernel == Execution::kNone) continue;
      const Span& span = run.timeline.spans[id];
      factors.run[id] = static_cast<float>(ratio_of_times(before[kernel], after[kernel], to_us(span.end - span.start)));
    }
  };
  return {change.what, elasticity(run, ps, std::log1p(kLittle)), shorten};
}

// A few more and a few fewer: one alone may fill another wave of thread blocks or none.
Item sms_item(const Run& run, const Gradient& gradient, const std::vector<Price>& before) {
  constexpr int kFew = 8;
  const auto ps = [&](int more) {
    MachineFacts facts = run.setup.machine.facts;
    facts.sms += more;
    return moved(run, gradient, before, prices(run, facts, more), facts);
  };
  const double sms = run.setup.machine.facts.sms;
  return {"sms", elasticity(run, ps(kFew) - ps(-kFew), std::log((sms + kFew) / (sms - kFew)))};
}

}  // namespace

std::vector<Item> hardware_items(const Run& run, const Gradient& gradient) {
  if (run.program.kernels.empty()) return {};
  const std::vector<Price> before = prices(run, run.setup.machine.facts);
  std::vector<Item> items{sms_item(run, gradient, before)};
  const bool offloads = run.setup.scenario.training.offloads();
  for (const MachineChange& change : changes()) {
    if (change.what == "link:host" && !offloads) continue;
    items.push_back(item_of(run, gradient, before, change));
  }
  return items;
}

}  // namespace moeline
