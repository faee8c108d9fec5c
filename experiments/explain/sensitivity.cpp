#include "experiments/explain/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "hardware/price.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

constexpr double kMatters = 1e-4;       // of an elasticity: less is left out
constexpr std::size_t kWithGains = 16;  // items, at most, that gains are worked out of

constexpr std::array kLeft = {0.9, 0.5, 0.0};  // of an item's time

double ps(Time time) { return static_cast<double>(time.count()); }

std::string class_of(TaskId id, const TaskGraph& graph) {
  return graph.classes().empty() ? "" : graph.task_class(id).name;
}

// Tasks by what they are called; those of no group are called "".
class Groups {
 public:
  /// `name_of`: of tasks with one `key` the same.
  template <class KeyOf, class NameOf>
  Groups(const TaskGraph& graph, KeyOf key_of, NameOf name_of) : of_task_(graph.size()) {
    std::map<std::uint64_t, std::uint32_t> known;
    std::map<std::string, std::uint32_t> numbers;
    for (TaskId id = 0; id < graph.size(); ++id) {
      const auto [entry, is_new] = known.try_emplace(key_of(id));
      if (is_new) {
        const std::string name = name_of(id);
        const auto [number, is_new_name] = numbers.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
        if (is_new_name) names_.push_back(name);
        entry->second = number->second;
      }
      of_task_[id] = entry->second;
    }
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] std::uint32_t of(TaskId id) const { return of_task_[id]; }

 private:
  std::vector<std::string> names_;
  std::vector<std::uint32_t> of_task_;
};

void add(const TaskGraph& graph, const Gradient& gradient, Time span, Groups&& of_graph, std::vector<Item>& items) {
  const auto groups = std::make_shared<const Groups>(std::move(of_graph));
  std::vector<double> elasticities(groups->names().size(), 0);
  for (TaskId id = 0; id < graph.size(); ++id) {
    elasticities[groups->of(id)] += gradient.solo[id] * ps(graph.task(id).solo) / ps(span);
  }
  for (std::uint32_t group = 0; group < elasticities.size(); ++group) {
    if (groups->names()[group].empty()) continue;
    items.push_back({groups->names()[group], elasticities[group], [groups, group](double left, Factors& factors) {
                       for (TaskId id = 0; id < factors.run.size(); ++id) {
                         if (groups->of(id) == group) factors.run[id] = static_cast<float>(left);
                       }
                     }});
  }
}

Item launch_gap(const TaskGraph& graph, const Gradient& gradient, Time span) {
  Item item{.what = "launch_gap", .shorten = [](double left, Factors& factors) {
              std::fill(factors.delay.begin(), factors.delay.end(), static_cast<float>(left));
            }};
  for (TaskId id = 0; id < graph.size(); ++id) {
    item.elasticity += gradient.delay[id] * ps(graph.task(id).delay) / ps(span);
  }
  return item;
}

using ByClass = std::vector<Time>;

ByClass by_class(const TaskGraph& graph, const std::vector<Shortened::OnPath>& path) {
  ByClass times(graph.classes().size());
  if (times.empty()) return times;
  for (const auto& [task, run] : path) times[graph.label(task).task_class] += run;
  return times;
}

// The class that the path holds most more of.
std::string binds_then(const TaskGraph& graph, const ByClass& now, const ByClass& then) {
  std::string most;
  Time more{};
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (then[i] - now[i] <= more) continue;
    more = then[i] - now[i];
    most = graph.classes()[i].name;
  }
  return most;
}

// The first tenth saves what the elasticity says, or less than can be seen.
bool agree(const SpanSensitivity& s) {
  constexpr double kThird = 1.0 / 3, kSeen = 0.001;
  const double expected = (1 - kLeft.front()) * std::abs(s.elasticity);
  return std::abs(s.gains->tenth - expected) <= std::max(kSeen, kThird * expected);
}

}  // namespace

std::optional<double> SpanSensitivity::knee() const {
  if (!gains || gains->tenth <= 0) return std::nullopt;
  return std::clamp((1 - kLeft.front()) * gains->all / gains->tenth, 0.0, 1.0);
}

std::vector<std::string> sensitivity_head() {
  return {"what", "elasticity", "-10 %", "-50 %", "-100 %", "knee", "then"};
}

std::vector<std::vector<std::string>> sensitivity_rows(const std::vector<SpanSensitivity>& list) {
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  std::vector<std::vector<std::string>> rows;
  std::size_t last = 0;
  for (const SpanSensitivity& s : list) {
    rows.push_back({s.what, fmt::format("{:.3f}", s.elasticity), "", "", "", "", ""});
    if (!s.gains) continue;
    rows.back() = {s.what,
                   rows.back()[1],
                   (agree(s) ? "" : "~") + percent(s.gains->tenth),
                   percent(s.gains->half),
                   percent(s.gains->all),
                   s.knee() ? percent(*s.knee()) : "",
                   s.gains->then};
    last = rows.size();
  }
  rows.resize(last);
  return rows;
}

std::vector<Item> items_of(const TaskGraph& graph, const Gradient& gradient, Time span,
                           const std::vector<bool>& stand_ins) {
  const auto is_barrier = [&](TaskId id) {
    return (!stand_ins.empty() && stand_ins[id]) || class_of(id, graph) == "barrier";
  };
  const auto class_key = [&](TaskId id) { return 2 * graph.label(id).task_class + std::uint64_t{is_barrier(id)}; };
  const auto class_name = [&](TaskId id) {
    const std::string name = class_of(id, graph);
    return is_barrier(id) ? "barrier" : name.empty() ? "" : "class:" + name;
  };
  const auto phase_name = [&](TaskId id) { return "phase:" + graph.phases()[graph.label(id).phase].name; };
  const auto kernel_name = [&](TaskId id) { return "kernel:" + short_kernel_name(graph.task_name(id)); };
  std::vector<Item> items{launch_gap(graph, gradient, span)};
  add(graph, gradient, span, Groups(graph, class_key, class_name), items);
  if (!graph.phases().empty()) {
    add(graph, gradient, span,
        Groups(
            graph, [&](TaskId id) { return graph.label(id).phase; }, phase_name),
        items);
  }
  add(graph, gradient, span,
      Groups(
          graph, [&](TaskId id) { return graph.label(id).name; }, kernel_name),
      items);
  return items;
}

std::vector<SpanSensitivity> span_sensitivities(const TaskGraph& graph, std::vector<Item> items,
                                                const Shortened& shortened) {
  std::erase_if(items,
                [](const Item& item) { return !(std::abs(item.elasticity) >= kMatters); });  // nor NaN of no span
  if (items.empty()) return {};
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return std::abs(a.elasticity) > std::abs(b.elasticity); });
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < items.size() && asked.size() < kWithGains; ++i) {
    if (items[i].shorten) asked.push_back(i);
  }
  const std::vector<Shortened::Result> results =
      shortened(1 + kLeft.size() * asked.size(), [&](std::size_t i, Factors& factors) {
        if (i > 0) items[asked[(i - 1) / kLeft.size()]].shorten(kLeft[(i - 1) % kLeft.size()], factors);
      });
  const Shortened::Result& whole = results.front();
  const ByClass now = by_class(graph, whole.path);
  const auto saved = [&](std::size_t i) { return 1 - ratio(results[i].span, whole.span); };
  std::vector<SpanSensitivity> list;
  for (const Item& item : items) list.push_back({.what = item.what, .elasticity = item.elasticity});
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::size_t first = 1 + kLeft.size() * i;
    list[asked[i]].gains = {saved(first), saved(first + 1), saved(first + 2),
                            binds_then(graph, now, by_class(graph, results[first + 2].path))};
  }
  return list;
}

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
         facts.nccl_call_us *= times;
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
