#include "timeline/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "timeline/intervals.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

using Layers = std::set<std::uint32_t>;

std::map<PhaseKey, PhaseTimes> by_key(const std::vector<PhaseTimes>& table) {
  std::map<PhaseKey, PhaseTimes> found;
  for (const PhaseTimes& phase : table) found.emplace(key_of(phase), phase);
  return found;
}

Layers layers_of(const std::vector<PhaseTimes>& table) {
  Layers layers;
  for (const PhaseTimes& phase : table) layers.insert(phase.layer);
  return layers;
}

std::set<std::uint32_t> micro_batches_of(const std::vector<PhaseTimes>& table) {
  std::set<std::uint32_t> micro_batches;
  for (const PhaseTimes& phase : table) micro_batches.insert(phase.micro_batch);
  return micro_batches;
}

// Each phase of each layer once, with the times of its micro-batches summed: its end is its start plus their spans.
std::vector<PhaseTimes> micro_batches_summed(const std::vector<PhaseTimes>& table) {
  std::map<PhaseKey, std::size_t> places;
  std::vector<PhaseTimes> summed;
  for (PhaseTimes phase : table) {
    phase.micro_batch = 0;
    const auto [found, added] = places.try_emplace(key_of(phase), summed.size());
    if (added) {
      summed.push_back(phase);
      continue;
    }
    PhaseTimes& sum = summed[found->second];
    sum.end += phase.span();
    sum.busy += phase.busy;
    sum.solo += phase.solo;
    sum.barrier += phase.barrier;
    sum.transfer += phase.transfer;
  }
  return summed;
}

// The phases of each stream in order, of those both sides have.
std::map<std::uint32_t, std::vector<PhaseKey>> order_on_streams(const std::vector<PhaseTimes>& table,
                                                                const std::map<PhaseKey, PhaseTimes>& other,
                                                                const Layers& layers) {
  std::map<std::uint32_t, std::vector<PhaseKey>> order;
  for (const PhaseTimes& phase : table) {
    const PhaseKey key = key_of(phase);
    if (layers.contains(phase.layer) && other.contains(key)) order[phase.stream].push_back(key);
  }
  return order;
}

using Phases = std::set<std::pair<std::uint32_t, std::string>>;

// When at least one of the phases runs, in any micro-batch. In all, that is the span of neighbouring layers, and,
// unlike first start to last end, not more than that where another schedule puts other layers between them.
std::vector<Interval> times_of(const std::vector<PhaseTimes>& table, const Phases& phases) {
  std::vector<Interval> intervals;
  for (const PhaseTimes& phase : table) {
    if (phases.contains({phase.layer, phase.phase})) intervals.push_back({phase.start, phase.end});
  }
  return unite(std::move(intervals));
}

// While none runs, of any layer, from the first of these phases to the last.
Time between(const std::vector<PhaseTimes>& table, const std::vector<Interval>& compared) {
  if (compared.empty()) return Time::zero();
  std::vector<Interval> all;
  for (const PhaseTimes& phase : table) all.push_back({phase.start, phase.end});
  return total(subtract({{compared.front().start, compared.back().end}}, unite(std::move(all))));
}

std::string names_in(const std::vector<PhaseTimes>& table) {
  std::vector<std::string> names;
  for (const PhaseTimes& phase : table) {
    if (std::find(names.begin(), names.end(), phase.phase) == names.end()) names.push_back(phase.phase);
  }
  return names.empty() ? "none" : some_of(names);
}

}  // namespace

double ratio_error(Time a, Time b) {
  if (b == Time::zero()) return a == Time::zero() ? 0 : 1;
  return static_cast<double>(a.count()) / static_cast<double>(b.count()) - 1;
}

std::vector<std::uint32_t> common_layers(const std::vector<PhaseTimes>& a, const std::vector<PhaseTimes>& b,
                                         const std::vector<int>& wanted) {
  const Layers in_a = layers_of(a);
  const Layers in_b = layers_of(b);
  std::vector<std::uint32_t> common;
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(common));
  if (wanted.empty()) return common;
  Layers chosen;
  for (const int layer : wanted) {
    if (layer < 0 || !std::binary_search(common.begin(), common.end(), static_cast<std::uint32_t>(layer))) {
      throw SpecError(fmt::format("--layers: layer {} is not in both; these are: {}", layer, fmt::join(common, ", ")));
    }
    chosen.insert(static_cast<std::uint32_t>(layer));
  }
  return {chosen.begin(), chosen.end()};
}

Score score(const std::vector<PhaseTimes>& a, const std::vector<PhaseTimes>& b,
            const std::vector<std::uint32_t>& layers) {
  const Layers wanted(layers.begin(), layers.end());
  const bool one_to_one = micro_batches_of(a) == micro_batches_of(b);
  const std::vector<PhaseTimes> table_a = one_to_one ? a : micro_batches_summed(a);
  const std::vector<PhaseTimes> table_b = one_to_one ? b : micro_batches_summed(b);
  const std::map<PhaseKey, PhaseTimes> phases_a = by_key(table_a);
  const std::map<PhaseKey, PhaseTimes> phases_b = by_key(table_b);
  Score result;
  result.summed = !one_to_one;
  result.by_micro_batch = one_to_one && micro_batches_of(a).size() > 1;
  Phases compared;
  for (const PhaseTimes& phase : table_b) {
    const auto found = phases_a.find(key_of(phase));
    if (!wanted.contains(phase.layer) || found == phases_a.end()) continue;
    (phase.is_communication() ? result.communication : result.phases).push_back({found->second, phase});
    compared.insert({phase.layer, phase.phase});
  }
  if (result.phases.empty()) std::swap(result.phases, result.communication);
  if (result.phases.empty()) {
    throw SpecError(
        fmt::format("the two sides have no phase in common: a has {}; b has {}", names_in(table_a), names_in(table_b)));
  }
  const auto by_layer = [](const PhasePair& x, const PhasePair& y) { return x.b.layer < y.b.layer; };
  std::stable_sort(result.phases.begin(), result.phases.end(), by_layer);
  std::stable_sort(result.communication.begin(), result.communication.end(), by_layer);
  const auto count = static_cast<double>(result.phases.size());
  for (const PhasePair& pair : result.phases) {
    result.mean_error += pair.error() / count;
    result.mean_abs_error += std::abs(pair.error()) / count;
    result.worst_abs_error = std::max(result.worst_abs_error, std::abs(pair.error()));
  }
  const std::vector<Interval> times_a = times_of(a, compared), times_b = times_of(b, compared);
  result.a_span = total(times_a);
  result.b_span = total(times_b);
  result.a_between = between(a, times_a);
  result.b_between = between(b, times_b);
  result.span_error = ratio_error(result.a_span, result.b_span);
  result.same_order = order_on_streams(table_a, phases_b, wanted) == order_on_streams(table_b, phases_a, wanted);
  return result;
}

std::vector<PhaseTimes> copied_mean(const std::vector<PhaseTimes>& measured, const std::vector<std::uint32_t>& layers) {
  struct Sum {
    Time time{};
    std::int64_t count = 0;
  };
  const Layers wanted(layers.begin(), layers.end());
  const bool held_out = layers_of(measured).size() > wanted.size();
  std::map<std::pair<std::string, std::uint32_t>, Sum> sums;  // of the layers to copy from, by phase and micro-batch
  std::map<PhaseKey, Sum> own;                                // of these, each layer's part
  for (const PhaseTimes& phase : measured) {
    if (held_out && wanted.contains(phase.layer)) continue;
    for (Sum* sum : {&sums[{phase.phase, phase.micro_batch}], &own[key_of(phase)]}) {
      sum->time += phase.span();
      ++sum->count;
    }
  }
  std::vector<PhaseTimes> copied;
  for (PhaseTimes phase : measured) {
    if (!wanted.contains(phase.layer)) continue;
    const Sum& all = sums[{phase.phase, phase.micro_batch}];
    const Sum& excluded = own[key_of(phase)];  // nothing where layers are held out
    const std::int64_t count = all.count - excluded.count;
    if (count == 0) continue;
    phase.end = phase.start + (all.time - excluded.time) / count;
    copied.push_back(phase);
  }
  return copied;
}

}  // namespace moeline
