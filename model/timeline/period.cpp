#include "timeline/period.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <map>
#include <set>
#include <tuple>

namespace moeline {
namespace {

constexpr std::size_t kFewest = 3;  // layers

using LayerTasks = std::vector<std::vector<TaskId>>;

// Tasks of rank 0 by layer, in order of id.
std::map<std::uint32_t, std::vector<TaskId>> by_layer(const TaskGraph& graph) {
  std::map<std::uint32_t, std::vector<TaskId>> layers;
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Phase& phase = graph.phases()[graph.label(id).phase];
    if (phase.rank == 0) layers[phase.layer].push_back(id);
  }
  return layers;
}

bool alike(const std::vector<TaskId>& one, const std::vector<TaskId>& other, const TaskGraph& graph) {
  const auto same = [&](TaskId a, TaskId b) {
    const Label &x = graph.label(a), &y = graph.label(b);
    return x.name == y.name && x.stream == y.stream && graph.phases()[x.phase].name == graph.phases()[y.phase].name;
  };
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), same);
}

// The longest run of layers that are alike.
LayerTasks repeating_layers(const TaskGraph& graph) {
  LayerTasks longest, run;
  for (auto& [layer, tasks] : by_layer(graph)) {
    if (!run.empty() && !alike(run.back(), tasks, graph)) run.clear();
    run.push_back(tasks);
    if (run.size() > longest.size()) longest = run;
  }
  return longest;
}

// An edge between events of tasks by their place in a layer, from a layer to one so many later.
using Edge = std::tuple<EventId, EventId, std::size_t>;

// Those that every layer has, as far as the layers reach.
class Unrolled {
 public:
  Unrolled(const TaskGraph& graph, const LayerTasks& layers) : graph_(graph), layers_(layers) {
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      for (EventId place = 0; place < layers[layer].size(); ++place) places_[layers[layer][place]] = {layer, place};
    }
  }
  [[nodiscard]] std::set<Edge> common_edges() const {
    std::set<Edge> common = edges_of(0);
    for (std::size_t layer = 1; layer < layers_.size(); ++layer) {
      const std::set<Edge> own = edges_of(layer);
      std::erase_if(
          common, [&](const Edge& edge) { return layer + std::get<2>(edge) < layers_.size() && !own.contains(edge); });
    }
    return common;
  }

 private:
  [[nodiscard]] std::set<Edge> edges_of(std::size_t layer) const {
    std::set<Edge> edges;
    for (EventId place = 0; place < layers_[layer].size(); ++place) {
      for (const bool end : {false, true}) {
        const TaskId task = layers_[layer][place];
        for (const EventId after : graph_.successors(end ? end_of(task) : start_of(task))) {
          const auto found = places_.find(task_of(after));
          if (found == places_.end() || found->second.first < layer) continue;
          const EventId there = is_start(after) ? start_of(found->second.second) : end_of(found->second.second);
          edges.insert({end ? end_of(place) : start_of(place), there, found->second.first - layer});
        }
      }
    }
    return edges;
  }

  const TaskGraph& graph_;
  const LayerTasks& layers_;
  std::map<TaskId, std::pair<std::size_t, EventId>> places_;  // layer, place in it
};

// The shortest that the task at a place has in any layer.
Time shortest(const TaskGraph& graph, const LayerTasks& layers, EventId place, Time Task::*time) {
  Time least = Time::max();
  for (const std::vector<TaskId>& layer : layers) least = std::min(least, graph.task(layer[place]).*time);
  return least;
}

struct Weights {
  double ps = 0, layers = 0;
};
using Howard = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, Weights>;

Howard cyclic(const TaskGraph& graph, const LayerTasks& layers) {
  Howard cyclic(2 * layers.front().size());
  for (const auto& [from, to, distance] : Unrolled(graph, layers).common_edges()) {
    const bool own = is_start(from) && to == end_of(task_of(from));
    Time time{};
    if (own) time = shortest(graph, layers, task_of(from), &Task::solo);
    if (is_start(to)) time = shortest(graph, layers, task_of(to), &Task::delay);
    boost::add_edge(from, to, {static_cast<double>(time.count()), static_cast<double>(distance)}, cyclic);
  }
  return cyclic;
}

}  // namespace

std::optional<Period> least_period(const TaskGraph& graph) {
  if (graph.phases().empty()) return std::nullopt;
  const LayerTasks layers = repeating_layers(graph);
  if (layers.size() < kFewest) return std::nullopt;
  const Howard events = cyclic(graph, layers);
  std::vector<Howard::edge_descriptor> cycle;
  boost::maximum_cycle_ratio(events, get(boost::vertex_index, events), get(&Weights::ps, events),
                             get(&Weights::layers, events), &cycle);
  if (cycle.empty()) return std::nullopt;
  Weights sum;
  Period period{.layers = layers.size()};
  for (const auto& edge : cycle) {
    sum.ps += events[edge].ps;
    sum.layers += events[edge].layers;
    const auto place = static_cast<EventId>(source(edge, events));
    if (is_start(place)) period.cycle.push_back(layers.front()[task_of(place)]);
  }
  const auto times = static_cast<std::int64_t>((static_cast<double>(layers.size()) - 1) / sum.layers);
  period.layer = Time(static_cast<std::int64_t>(sum.ps / sum.layers));
  period.all = Time(static_cast<std::int64_t>(sum.ps)) * times;
  return period;
}

}  // namespace moeline
