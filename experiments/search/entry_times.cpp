#include "experiments/search/entry_times.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace moeline {
namespace {

using Part = PlanEntry::Part;

// Of one execution of a phase: its kernels on the streams that compute, and on those that do not; of a low-latency
// transfer what issues it stands in front of the wire.
struct PhaseUs {
  std::map<std::uint16_t, double> by_stream;
  double issue = 0, wire = 0, receive = 0;
};

using PhaseKey = std::tuple<std::string, std::uint32_t, std::uint32_t>;  // name, micro-batch, layer

std::map<PhaseKey, PhaseUs> phases_of(const TaskGraph& graph) {
  std::map<PhaseKey, PhaseUs> phases;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Label& label = graph.label(task);
    const Phase& phase = graph.phases()[label.phase];
    const Stream& stream = graph.streams()[label.stream];
    if (stream.rank != 0 || graph.task_class(task).role == Role::host) continue;
    PhaseUs& us = phases[{phase.name, phase.micro_batch, phase.layer}];
    const double own = to_us(graph.task(task).solo + graph.task(task).delay);
    us.by_stream[label.stream] += own;
    if (stream.role == Role::communication) {
      us.wire += own;
    } else {
      (us.wire == 0 ? us.issue : us.receive) += own;
    }
  }
  return phases;
}

double of_entry(const PlanEntry& entry, const PhaseUs& phase) {
  if (entry.part == Part::issue) return phase.issue;
  if (entry.part == Part::receive) return phase.receive;
  double longest = 0;
  for (const auto& [stream, us] : phase.by_stream) longest = std::max(longest, us);
  return longest;
}

}  // namespace

LayerRange moe_layers(const Setup& setup) { return {setup.first_main_layer(), setup.simulated_layers()}; }

EntryTimes entry_times(const Program& program, const OrderSpace& space, const LayerRange& layers) {
  const std::map<PhaseKey, PhaseUs> phases = phases_of(program.graph);
  EntryTimes times;
  for (const PlanEntry& entry : space.entries) {
    double least = std::numeric_limits<double>::infinity(), lag = least;
    for (const auto& [key, us] : phases) {
      const auto& [name, micro_batch, layer] = key;
      const bool is_it = name == entry.phase && static_cast<int>(micro_batch) == entry.micro_batch;
      if (!is_it || !layers.has(layer)) continue;
      least = std::min(least, of_entry(entry, us));
      lag = std::min(lag, entry.part == Part::issue ? us.wire : 0);
    }
    MOELINE_CHECK(least < std::numeric_limits<double>::infinity(), entry.phase);
    times.us.push_back(least);
    times.lag_us.push_back(lag);
  }
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
