#include "experiments/explain/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>

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

}  // namespace moeline
