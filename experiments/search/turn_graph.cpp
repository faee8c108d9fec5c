#include "experiments/search/turn_graph.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace moeline {
namespace {

struct TransferNodes {
  std::size_t issued = 0, wire = 0, sent = 0;
};

// REQUIRES: the unit issues one.
TransferNodes transfer_of(std::size_t unit, const OrderSpace& space) {
  const std::size_t first = space.units.size() + 3 * *space.units[unit].wire;
  return {first, first + 1, first + 2};
}

// What a stream executes in a row: from the start at `first` until so long after `last`.
struct Link {
  std::size_t first = 0, last = 0;
  double us = 0;
};
using Chain = std::vector<Link>;

void add_chain(const Chain& chain, TurnGraph& graph) {
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    graph.edges.push_back({chain[i].last, chain[i + 1].first, chain[i].us});
  }
}

// A stream: some links come first, then those of each lane.
void add_stream(const Chain& first, const std::vector<Chain>& lanes, TurnGraph& graph) {
  add_chain(first, graph);
  bool ends = !first.empty();
  for (const Chain& lane : lanes) {
    if (lane.empty()) continue;
    add_chain(lane, graph);
    if (!first.empty()) graph.edges.push_back({first.back().last, lane.front().first, first.back().us});
    const Link& next = first.empty() ? lane.front() : first.front();
    graph.edges.push_back({lane.back().last, next.first, lane.back().us, 1});
    ends = false;
  }
  if (ends) graph.edges.push_back({first.back().last, first.front().first, first.back().us, 1});
}

enum class StreamKind { kernels, issues, wires };
Chain chain_of(std::span<const std::size_t> steps, StreamKind kind, const OrderSpace& space, const UnitTimes& times) {
  Chain chain;
  for (const std::size_t step : steps) {
    for (std::size_t unit = space.steps[step].first_unit; unit < space.steps[step].end; ++unit) {
      if (kind == StreamKind::kernels && !times[unit].beside) chain.push_back({unit, unit, times[unit].us});
      if (kind == StreamKind::kernels || !space.units[unit].wire) continue;
      const TransferNodes nodes = transfer_of(unit, space);
      if (kind == StreamKind::issues && times[unit].beside) chain.push_back({unit, nodes.issued});
      if (kind == StreamKind::wires) chain.push_back({nodes.wire, nodes.sent});
    }
  }
  return chain;
}

void add_compute(const PartialOrder& order, const OrderSpace& space, const UnitTimes& times, TurnGraph& graph) {
  for (const StreamKind kind : {StreamKind::kernels, StreamKind::issues, StreamKind::wires}) {
    std::vector<Chain> lanes;
    for (const std::span<const std::size_t> lane : order.lanes) lanes.push_back(chain_of(lane, kind, space, times));
    add_stream(chain_of(order.first, kind, space, times), lanes, graph);
  }
}

void add_transfer(const TransferNodes& nodes, std::size_t unit, const UnitTime& time, TurnGraph& graph) {
  graph.edges.push_back({unit, nodes.issued, time.us});
  graph.edges.push_back({unit, nodes.wire, time.beside ? time.first_us : time.us});
  graph.edges.push_back({nodes.wire, nodes.sent, time.wire_us});
  if (time.beside) graph.edges.push_back({nodes.issued, nodes.sent, time.last_wire_us});
}

TurnGraph graph_of(const PhaseOrder& order, const OrderSpace& space, const UnitTimes& times) {
  TurnGraph graph = data_graph(space, times, offsets_of(order, space));
  add_compute({order.compute}, space, times, graph);
  add_stream(chain_of(order.communication, StreamKind::kernels, space, times), {}, graph);
  return graph;
}

struct Weights {
  double us = 0, turns = 0;
};
using Howard = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, Weights>;

// What the longest cycle takes per turn.
double longest_turn_us(const TurnGraph& graph) {
  Howard turns(graph.nodes);
  for (const TurnEdge& edge : graph.edges) {
    boost::add_edge(edge.before, edge.after, {edge.us, static_cast<double>(edge.turns)}, turns);
  }
  return boost::maximum_cycle_ratio(turns, get(boost::vertex_index, turns), get(&Weights::us, turns),
                                    get(&Weights::turns, turns));
}

// Whether a cycle takes more than so much per turn (Bellman and Ford).
bool has_longer_cycle(const TurnGraph& graph, double us) {
  std::vector<double> start(graph.nodes, 0);
  for (std::size_t round = 0; round <= graph.nodes; ++round) {
    bool moved = false;
    for (const TurnEdge& edge : graph.edges) {
      const double from = start[edge.before] + edge.us - us * edge.turns;
      if (from > start[edge.after] + 1e-9) {
        start[edge.after] = from;
        moved = true;
      }
    }
    if (!moved) return false;
  }
  return true;
}

}  // namespace

TurnGraph data_graph(const OrderSpace& space, const UnitTimes& times, const std::vector<int>& offsets) {
  TurnGraph graph{.nodes = space.units.size() + 3 * space.wires};
  for (std::size_t unit = 0; unit < space.units.size(); ++unit) {
    if (space.units[unit].wire) add_transfer(transfer_of(unit, space), unit, times[unit], graph);
  }
  for (const UnitData& data : space.data) {
    const int turns = data.layers - offsets[space.units[data.after].step] + offsets[space.units[data.before].step];
    const UnitTime &before = times[data.before], &after = times[data.after];
    if (space.units[data.before].wire) {
      graph.edges.push_back({transfer_of(data.before, space).sent, data.after, 0, turns});
      continue;
    }
    graph.edges.push_back({data.before, data.after, after.beside ? before.begun_us : before.us, turns});
    if (after.beside) {
      graph.edges.push_back({data.before, transfer_of(data.after, space).issued, before.us + after.last_us, turns});
    }
  }
  return graph;
}

double least_layer_us(const PhaseOrder& order, const OrderSpace& space, const UnitTimes& times) {
  return longest_turn_us(graph_of(order, space, times));
}

double least_layer_us(const OrderSpace& space, const UnitTimes& times) {
  double compute = 0, communication = 0, issues = 0, wires = 0;
  for (std::size_t unit = 0; unit < space.units.size(); ++unit) {
    const bool computes = space.units[unit].step < space.compute;
    (times[unit].beside ? issues : computes ? compute : communication) += times[unit].us;
    wires += times[unit].wire_us;
  }
  const TurnGraph data = data_graph(space, times, std::vector<int>(space.steps.size(), 0));
  return std::max({compute, communication, issues, wires, longest_turn_us(data)});
}

bool can_run(const PhaseOrder& order, const OrderSpace& space) {
  TurnGraph graph = graph_of(order, space, UnitTimes(space.units.size()));
  for (TurnEdge& edge : graph.edges) edge.us = 1;
  return !has_longer_cycle(graph, static_cast<double>(graph.nodes + 1));  // than one turn
}

bool takes_at_least(double us, const PartialOrder& order, const TurnGraph& data, const OrderSpace& space,
                    const UnitTimes& times) {
  TurnGraph graph = data;
  add_compute(order, space, times, graph);
  return has_longer_cycle(graph, us);
}

namespace {

using Part = PlanEntry::Part;

struct KernelTime {
  double us = 0;
  NameId name = 0;
  std::uint16_t stream = 0;
  bool transfers = false;
};
using Kernels = std::vector<KernelTime>;

using PieceKey = std::tuple<std::string, std::uint32_t, std::uint32_t, std::uint32_t>;  // micro-batch, layer, piece

// Of each execution of a piece of a phase.
std::map<PieceKey, Kernels> pieces_of(const TaskGraph& graph) {
  std::map<PieceKey, Kernels> pieces;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Label& label = graph.label(task);
    const Phase& phase = graph.phases()[label.phase];
    const Stream& stream = graph.streams()[label.stream];
    if (stream.rank != 0 || graph.task_class(task).role == Role::host) continue;
    pieces[{phase.name, phase.micro_batch, phase.layer, phase.piece}].push_back(
        {.us = to_us(graph.task(task).solo + graph.task(task).delay),
         .name = label.name,
         .stream = label.stream,
         .transfers = stream.role == Role::communication});
  }
  return pieces;
}

double sum_us(Kernels::const_iterator first, Kernels::const_iterator last) {
  return std::accumulate(first, last, 0.0, [](double sum, const KernelTime& kernel) { return sum + kernel.us; });
}

// A low-latency transfer: what issues it, part by part, its wire, and what receives it.
UnitTime transfer_time(Part part, const Kernels& kernels) {
  const auto transfers = [](const KernelTime& kernel) { return kernel.transfers; };
  const auto wire = std::find_if(kernels.begin(), kernels.end(), transfers);
  const auto receive = std::find_if_not(wire, kernels.end(), transfers);
  if (part == Part::receive) return {.us = sum_us(receive, kernels.end())};
  return {.us = sum_us(kernels.begin(), wire),
          .wire_us = sum_us(wire, receive),
          .beside = receive - wire > 1,
          .first_us = kernels.begin()->us,
          .last_us = std::prev(wire)->us,
          .last_wire_us = std::prev(receive)->us};
}

UnitTime time_of(Part part, const Kernels& kernels) {
  if (part != Part::whole) return transfer_time(part, kernels);
  std::map<std::uint16_t, double> by_stream;
  for (const KernelTime& kernel : kernels) by_stream[kernel.stream] += kernel.us;
  double longest = 0;
  for (const auto& [stream, us] : by_stream) longest = std::max(longest, us);
  // Parts of the last kernel have its name.
  const auto is_last = [&](const KernelTime& kernel) { return kernel.name == kernels.back().name; };
  const auto last = std::find_if_not(kernels.rbegin(), kernels.rend(), is_last).base();
  return {.us = longest, .begun_us = sum_us(kernels.begin(), last + 1)};
}

UnitTime least(const UnitTime& a, const UnitTime& b) {
  return {.us = std::min(a.us, b.us),
          .begun_us = std::min(a.begun_us, b.begun_us),
          .wire_us = std::min(a.wire_us, b.wire_us),
          .beside = a.beside,
          .first_us = std::min(a.first_us, b.first_us),
          .last_us = std::min(a.last_us, b.last_us),
          .last_wire_us = std::min(a.last_wire_us, b.last_wire_us)};
}

}  // namespace

LayerRange moe_layers(const Setup& setup) { return {setup.first_main_layer(), setup.simulated_layers()}; }

UnitTimes unit_times(const Program& program, const OrderSpace& space, const LayerRange& layers) {
  const std::map<PieceKey, Kernels> pieces = pieces_of(program.graph);
  UnitTimes times;
  for (const StepUnit& unit : space.units) {
    const PlanEntry& entry = space.entry(unit);
    std::optional<UnitTime> shortest;
    for (int layer = layers.first; layer < layers.first + layers.count; ++layer) {
      const auto found = pieces.find({entry.phase, static_cast<std::uint32_t>(entry.micro_batch),
                                      static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(unit.piece)});
      if (found == pieces.end()) continue;
      const UnitTime here = time_of(entry.part, found->second);
      shortest = shortest ? least(*shortest, here) : here;
    }
    MOELINE_CHECK(shortest.has_value(), entry.phase);
    times.push_back(*shortest);
  }
  return times;
}

UnitTimes least(const UnitTimes& a, const UnitTimes& b) {
  UnitTimes times;
  for (std::size_t unit = 0; unit < a.size(); ++unit) times.push_back(least(a[unit], b[unit]));
  return times;
}

double busiest_resource_us(const Program& program, const LayerRange& layers) {
  const TaskGraph& graph = program.graph;
  const std::size_t resources = graph.resources().size();
  std::vector<double> busy(resources * static_cast<std::size_t>(layers.count), 0);  // by layer
  for (TaskId task = 0; task < graph.size(); ++task) {
    const std::uint32_t layer = graph.phases()[graph.label(task).phase].layer;
    if (!layers.has(layer)) continue;
    double* const of_layer = &busy[resources * static_cast<std::size_t>(static_cast<int>(layer) - layers.first)];
    const auto add = [&](ResourceId resource, double amount) {
      of_layer[resource] += to_us(graph.task(task).solo) * amount / graph.resources()[resource].capacity;
    };
    if (graph.task(task).pool != kNoPool) add(graph.task(task).pool, graph.task(task).sms);
    for (const Usage& usage : graph.usages(task)) add(usage.link, usage.rate);
  }
  double most = 0;
  for (std::size_t resource = 0; resource < resources; ++resource) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = resource; i < busy.size(); i += resources) least = std::min(least, busy[i]);
    most = std::max(most, least);
  }
  return most;
}

}  // namespace moeline
