#include "experiments/cli/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "timeline/intervals.hpp"

namespace moeline {
namespace {

using Key = std::pair<std::uint32_t, std::string>;  // layer, phase

bool contains(const std::vector<std::uint32_t>& layers, std::uint32_t layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

std::map<Key, PhaseTimes> by_key(const std::vector<PhaseTimes>& table) {
  std::map<Key, PhaseTimes> found;
  for (const PhaseTimes& phase : table) found.emplace(Key{phase.layer, phase.phase}, phase);
  return found;
}

std::set<std::uint32_t> layers_of(const std::vector<PhaseTimes>& table) {
  std::set<std::uint32_t> layers;
  for (const PhaseTimes& phase : table) layers.insert(phase.layer);
  return layers;
}

// The phases of each stream in order, of those both sides have.
std::map<std::uint32_t, std::vector<Key>> order_on_streams(const std::vector<PhaseTimes>& table,
                                                           const std::map<Key, PhaseTimes>& other,
                                                           const std::vector<std::uint32_t>& layers) {
  std::map<std::uint32_t, std::vector<Key>> order;
  for (const PhaseTimes& phase : table) {
    const Key key{phase.layer, phase.phase};
    if (contains(layers, phase.layer) && other.contains(key)) order[phase.stream].push_back(key);
  }
  return order;
}

// Time in which at least one of the phases runs. The span of neighbouring layers, and, unlike first start to last end,
// not more than that where another schedule puts other layers between them.
Time covered(const std::vector<PhasePair>& pairs, PhaseTimes PhasePair::*side) {
  std::vector<Interval> intervals;
  for (const PhasePair& pair : pairs) intervals.push_back({(pair.*side).start, (pair.*side).end});
  return total(unite(std::move(intervals)));
}

}  // namespace

double ratio_error(Time a, Time b) {
  if (b == Time::zero()) return a == Time::zero() ? 0 : 1;
  return static_cast<double>(a.count()) / static_cast<double>(b.count()) - 1;
}

std::vector<std::uint32_t> common_layers(const std::vector<PhaseTimes>& a, const std::vector<PhaseTimes>& b,
                                         const std::vector<int>& wanted) {
  const std::set<std::uint32_t> in_a = layers_of(a);
  const std::set<std::uint32_t> in_b = layers_of(b);
  std::vector<std::uint32_t> common;
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(common));
  if (wanted.empty()) return common;
  std::vector<std::uint32_t> chosen;
  for (const int layer : wanted) {
    if (layer < 0 || !contains(common, static_cast<std::uint32_t>(layer))) {
      throw SpecError(fmt::format("--layers: layer {} is not in both; these are: {}", layer, fmt::join(common, ", ")));
    }
    chosen.push_back(static_cast<std::uint32_t>(layer));
  }
  return chosen;
}

Score score(const std::vector<PhaseTimes>& a, const std::vector<PhaseTimes>& b,
            const std::vector<std::uint32_t>& layers) {
  const std::map<Key, PhaseTimes> phases_a = by_key(a);
  const std::map<Key, PhaseTimes> phases_b = by_key(b);
  Score result;
  std::vector<PhasePair> all;
  for (const PhaseTimes& phase : b) {
    const auto found = phases_a.find({phase.layer, phase.phase});
    if (!contains(layers, phase.layer) || found == phases_a.end()) continue;
    all.push_back({found->second, phase});
    (phase.is_communication() ? result.communication : result.phases).push_back(all.back());
  }
  if (result.phases.empty()) throw SpecError("the two sides have no phase of computation in common");
  const auto by_layer = [](const PhasePair& x, const PhasePair& y) { return x.b.layer < y.b.layer; };
  std::stable_sort(result.phases.begin(), result.phases.end(), by_layer);
  std::stable_sort(result.communication.begin(), result.communication.end(), by_layer);
  const auto count = static_cast<double>(result.phases.size());
  for (const PhasePair& pair : result.phases) {
    result.mean_error += pair.error() / count;
    result.mean_abs_error += std::abs(pair.error()) / count;
    result.worst_abs_error = std::max(result.worst_abs_error, std::abs(pair.error()));
  }
  result.a_span = covered(all, &PhasePair::a);
  result.b_span = covered(all, &PhasePair::b);
  result.span_error = ratio_error(result.a_span, result.b_span);
  result.same_order = order_on_streams(a, phases_b, layers) == order_on_streams(b, phases_a, layers);
  return result;
}

std::vector<PhaseTimes> copied_mean(const std::vector<PhaseTimes>& measured, const std::vector<std::uint32_t>& layers) {
  const std::set<std::uint32_t> known = layers_of(measured);
  const bool held_out = known.size() > layers.size();
  std::vector<PhaseTimes> copied;
  for (PhaseTimes phase : measured) {
    if (!contains(layers, phase.layer)) continue;
    Time sum{};
    std::int64_t count = 0;
    for (const PhaseTimes& other : measured) {
      const bool usable = held_out ? !contains(layers, other.layer) : other.layer != phase.layer;
      if (!usable || other.phase != phase.phase) continue;
      sum += other.span();
      ++count;
    }
    if (count > 0) phase.end = phase.start + sum / count;
    copied.push_back(phase);
  }
  return copied;
}

}  // namespace moeline
