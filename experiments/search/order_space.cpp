#include "experiments/search/order_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <numeric>

#include "moe/inference.hpp"
#include "schedules/lowering/planned_step.hpp"
#include "schedules/lowering/training_passes.hpp"

namespace moeline {
namespace {

using Part = PlanEntry::Part;

// Between phases of a micro-batch, where they send tokens.
std::vector<PhaseDependency> training_data() {
  std::vector<PhaseDependency> data = {{"mlp(B)", "mlp(W)"}, {"attn(B)", "attn(W)"}};
  for (const auto* phases : {&forward_phases(BlockKind::moe_layer), &backward_phases(BlockKind::moe_layer)}) {
    for (std::size_t i = 0; i + 1 < phases->size(); ++i) data.push_back({(*phases)[i], (*phases)[i + 1]});
    data.push_back({phases->back(), phases->front(), true});
  }
  return data;
}

std::vector<SearchedData> data_between(const std::vector<PlanEntry>& entries,
                                       const std::vector<PhaseDependency>& data) {
  std::vector<SearchedData> found;
  for (std::size_t a = 0; a < entries.size(); ++a) {
    for (std::size_t b = 0; b < entries.size(); ++b) {
      const PlanEntry &before = entries[a], &after = entries[b];
      if (before.micro_batch != after.micro_batch) continue;
      if (before.phase == after.phase && before.part == Part::issue && after.part == Part::receive) {
        found.push_back({a, b});
      }
      if (before.part == Part::issue || after.part == Part::receive) continue;
      for (const PhaseDependency& each : data) {
        if (each.before == before.phase && each.after == after.phase) found.push_back({a, b, each.next_layer ? 1 : 0});
      }
    }
  }
  return found;
}

bool same_entry(const PlanEntry& a, const PlanEntry& b) {
  return a.phase == b.phase && a.micro_batch == b.micro_batch && a.part == b.part;
}

// Whether an entry leads to another one within a layer, by entry and entry.
std::vector<char> leads_in(const OrderSpace& space) {
  const std::size_t count = space.entries.size();
  std::vector<char> leads(count * count, 0);
  for (const SearchedData& data : space.data) {
    if (data.layers == 0) leads[data.before * count + data.after] = 1;
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        if (leads[i * count + k] != 0 && leads[k * count + j] != 0) leads[i * count + j] = 1;
      }
    }
  }
  return leads;
}

// Layers that each entry is ahead of its turn: one that stands in front of what it needs is of the layer before.
std::vector<int> offsets_of(const PhaseOrder& order, const OrderSpace& space) {
  std::vector<int> offsets(space.entries.size(), 0);
  if (!space.repeats) return offsets;
  for (const auto* stream : {&order.compute, &order.communication}) {
    const bool transfers = stream == &order.communication;
    std::vector<std::size_t> by_data = *stream;
    std::sort(by_data.begin(), by_data.end(), [&](std::size_t a, std::size_t b) {
      const auto before = [&](std::size_t entry) {
        return std::count_if(stream->begin(), stream->end(),
                             [&](std::size_t other) { return space.leads_to(other, entry); });
      };
      return std::pair(before(a), a) < std::pair(before(b), b);
    });
    const auto place = [&](std::size_t entry) { return std::find(stream->begin(), stream->end(), entry); };
    for (const std::size_t entry : by_data) {
      int offset = transfers && space.entries[entry].micro_batch == 1 ? order.shift : 0;
      for (const std::size_t other : *stream) {
        if (!space.leads_to(other, entry)) continue;
        offset = std::min(offset, offsets[other] - (place(entry) < place(other) ? 1 : 0));
      }
      offsets[entry] = offset;
    }
    // Where turns begin says nothing: as near to the turn as may be.
    const auto [least, most] = std::minmax_element(
        by_data.begin(), by_data.end(), [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
    if (stream->empty()) continue;
    const int by = offsets[*most] - offsets[*least] > 1 ? -1 - offsets[*least] : -offsets[*most];
    for (const std::size_t entry : *stream) offsets[entry] += by;
  }
  return offsets;
}

// An edge of the turns: `after` comes so many turns behind `before`.
struct TurnEdge {
  std::size_t before = 0, after = 0;
  int turns = 0;
  bool is_data = false;
};

std::vector<TurnEdge> data_edges(const OrderSpace& space, const std::vector<int>& offsets) {
  std::vector<TurnEdge> edges;
  for (const SearchedData& data : space.data) {
    edges.push_back({data.before, data.after, data.layers - offsets[data.after] + offsets[data.before], true});
  }
  return edges;
}

std::vector<TurnEdge> turn_edges(const PhaseOrder& order, const OrderSpace& space, const std::vector<int>& offsets) {
  std::vector<TurnEdge> edges = data_edges(space, offsets);
  for (const auto* stream : {&order.compute, &order.communication}) {
    for (std::size_t i = 0; i + 1 < stream->size(); ++i) edges.push_back({(*stream)[i], (*stream)[i + 1]});
    if (!stream->empty()) edges.push_back({stream->back(), stream->front(), 1});
  }
  return edges;
}

// No entry waits for itself: every cycle takes at least one turn.
bool can_run(const std::vector<TurnEdge>& edges, std::size_t count) {
  constexpr int kFar = 1 << 20;
  std::vector<int> turns(count * count, kFar);
  for (const TurnEdge& edge : edges) {
    int& between = turns[edge.before * count + edge.after];
    between = std::min(between, edge.turns);
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        turns[i * count + j] = std::min(turns[i * count + j], turns[i * count + k] + turns[k * count + j]);
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (turns[i * count + i] <= 0) return false;
  }
  return true;
}

struct Weights {
  double us = 0, turns = 0;
};
using Howard = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, Weights>;

// What the longest cycle takes per turn. REQUIRES: can_run.
double longest_turn_us(const std::vector<TurnEdge>& edges, const EntryTimes& times) {
  Howard turns(times.us.size());
  for (const TurnEdge& edge : edges) {
    const double lag = edge.is_data ? times.lag_us[edge.before] : 0;
    boost::add_edge(edge.before, edge.after, {times.us[edge.before] + lag, static_cast<double>(edge.turns)}, turns);
  }
  return boost::maximum_cycle_ratio(turns, get(boost::vertex_index, turns), get(&Weights::us, turns),
                                    get(&Weights::turns, turns));
}

// Orders of one stream. Of one that does not repeat nothing stands in front of what it needs; of others the first entry
// stays where it is, as turns begin anywhere.
std::vector<std::vector<std::size_t>> stream_orders(const OrderSpace& space, std::size_t first, std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), first);
  const auto waits_for_later = [&] {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = i + 1; j < count; ++j) {
        if (space.leads_to(order[j], order[i])) return true;
      }
    }
    return false;
  };
  std::vector<std::vector<std::size_t>> all;
  const auto begin = order.begin() + (space.repeats && count > 0 ? 1 : 0);
  do {
    if (space.repeats || !waits_for_later()) all.push_back(order);
  } while (std::next_permutation(begin, order.end()));
  return all;
}

double factorial(std::size_t n) { return n < 2 ? 1 : static_cast<double>(n) * factorial(n - 1); }

}  // namespace

PlanContents searched_contents(const Setup& setup) {
  return setup.scenario.phase() == WorkloadPhase::train ? training_plan_contents() : inference_plan_contents(setup);
}

OverlapPlan searched_plan(const Setup& setup) {
  const Scenario& s = setup.scenario;
  const bool training = s.phase() == WorkloadPhase::train;
  if (s.kind().plan.empty() || s.kind().pipeline || (!training && s.kind().micro_batches == 1)) {
    throw SpecError(s.file, 0,
                    fmt::format("the schedule {} has no plan whose order is searched; there are: dualpipe-chunk, "
                                "prefill-two-batch, decode-two-batch",
                                s.schedule));
  }
  if (training) return training_plan(s);
  OverlapPlan plan = inference_plan(setup);
  // Neither the bound nor the entries of a search know of them.
  if (plan.pieces > 1) throw SpecError(plan.file, 0, "has pieces, whose order is not searched");
  if (s.comm.mode == CommMode::low_latency && s.comm.num_sms > 0) {
    throw SpecError(s.file, 0, "comm.num_sms: a combine beside the GEMM before it is not searched; there is: 0");
  }
  return plan;
}

OrderSpace order_space(const Setup& setup) {
  const OverlapPlan plan = searched_plan(setup);
  const bool training = setup.scenario.phase() == WorkloadPhase::train;
  OrderSpace space{.entries = plan.compute, .compute = plan.compute.size(), .repeats = !training};
  space.entries.insert(space.entries.end(), plan.communication.begin(), plan.communication.end());
  for (PlanEntry& entry : space.entries) entry.layer_offset = 0;
  space.data =
      data_between(space.entries, training ? training_data() : inference_dependencies(setup.scenario.comm.mode));
  space.leads = leads_in(space);
  return space;
}

PhaseOrder order_of(const OverlapPlan& plan, const OrderSpace& space) {
  PhaseOrder order;
  const auto number_of = [&](const PlanEntry& entry) {
    const auto found = std::find_if(space.entries.begin(), space.entries.end(),
                                    [&](const PlanEntry& other) { return same_entry(entry, other); });
    return static_cast<std::size_t>(found - space.entries.begin());
  };
  for (const PlanEntry& entry : plan.compute) order.compute.push_back(number_of(entry));
  for (const PlanEntry& entry : plan.communication) order.communication.push_back(number_of(entry));
  return order;
}

std::optional<OverlapPlan> plan_of(const PhaseOrder& order, const OrderSpace& space) {
  const std::vector<int> offsets = offsets_of(order, space);
  if (std::any_of(offsets.begin(), offsets.end(), [](int offset) { return offset < -1 || offset > 1; })) return {};
  if (!can_run(turn_edges(order, space, offsets), space.entries.size())) return {};
  OverlapPlan plan;
  const auto add = [&](const std::vector<std::size_t>& stream, std::vector<PlanEntry>& entries) {
    for (const std::size_t entry : stream) {
      entries.push_back(space.entries[entry]);
      entries.back().layer_offset = offsets[entry];
    }
  };
  add(order.compute, plan.compute);
  add(order.communication, plan.communication);
  return plan;
}

double least_layer_us(const PhaseOrder& order, const OrderSpace& space, const EntryTimes& times) {
  return longest_turn_us(turn_edges(order, space, offsets_of(order, space)), times);
}

double least_layer_us(const OrderSpace& space, const EntryTimes& times) {
  double least = longest_turn_us(data_edges(space, std::vector<int>(space.entries.size(), 0)), times);
  const auto middle = times.us.begin() + static_cast<std::ptrdiff_t>(space.compute);
  least = std::max(least, std::accumulate(times.us.begin(), middle, 0.0));
  return std::max(least, std::accumulate(middle, times.us.end(), 0.0));
}

double order_count(const OrderSpace& space) {
  const std::size_t transfers = space.entries.size() - space.compute;
  if (space.repeats) {
    return factorial(space.compute - 1) * (transfers == 0 ? 1 : 3 * factorial(transfers - 1));
  }
  return static_cast<double>(stream_orders(space, 0, space.compute).size() *
                             stream_orders(space, space.compute, transfers).size());
}

std::vector<PhaseOrder> all_orders(const OrderSpace& space) {
  const std::size_t transfers = space.entries.size() - space.compute;
  const bool shifts = space.repeats && transfers > 0;
  const auto communications = stream_orders(space, space.compute, transfers);
  std::vector<PhaseOrder> orders;
  for (const auto& compute : stream_orders(space, 0, space.compute)) {
    for (const auto& communication : communications) {
      for (const int shift : shifts ? std::vector{0, -1, 1} : std::vector{0}) {
        orders.push_back({compute, communication, shift});
      }
    }
  }
  return orders;
}

}  // namespace moeline
