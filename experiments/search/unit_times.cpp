#include "experiments/search/unit_times.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace moeline {
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
