#include "measured/layers.hpp"

#include <algorithm>
#include <map>

namespace moeline {
namespace {

LayerWindow window_of(std::uint32_t layer, const Interval& limits, const BusyTimes& busy) {
  LayerWindow w;
  w.layer = layer;
  w.start = limits.start;
  w.end = limits.end;
  w.times = busy.inside(limits).breakdown(limits.end - limits.start);
  return w;
}

Interval interval_of(const Stretch& stretch) { return {time_of(stretch.start_ns), time_of(stretch.end_ns)}; }

}  // namespace

std::vector<LayerWindow> layers_of_phases(const std::vector<PhaseTimes>& phases, const BusyTimes& busy) {
  struct Layer {
    std::uint32_t number = 0;
    Interval computes{Time::max(), Time::min()};
    Time end = Time::min(), barrier{}, transfer{};
  };
  std::map<std::uint32_t, Layer> by_number;
  for (const PhaseTimes& phase : phases) {
    Layer& layer = by_number[phase.layer];
    layer.number = phase.layer;
    layer.barrier += phase.barrier;
    layer.transfer += phase.transfer;
    layer.end = std::max(layer.end, phase.end);
    if (phase.is_communication()) continue;
    layer.computes.start = std::min(layer.computes.start, phase.start);
    layer.computes.end = std::max(layer.computes.end, phase.end);
  }
  std::vector<Layer> in_order;
  for (const auto& [number, layer] : by_number) {
    if (layer.computes.end >= layer.computes.start) in_order.push_back(layer);  // else nothing computes in it
  }
  std::vector<LayerWindow> layers;
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    const Layer& layer = in_order[i];
    const Time until = i + 1 < in_order.size() ? std::min(layer.end, in_order[i + 1].computes.start) : layer.end;
    const Time end = std::max(layer.computes.end, until);
    layers.push_back(window_of(layer.number, {layer.computes.start, end}, busy));
    layers.back().barrier = layer.barrier;
    layers.back().transfer = layer.transfer;
  }
  return layers;
}

std::vector<LayerWindow> repeated_layers(const Trace& trace, const std::vector<std::uint32_t>& events,
                                         const BusyTimes& busy) {
  std::vector<LayerWindow> layers;
  for (const Stretch& stretch : repeated_layers(trace, events)) {
    layers.push_back(window_of(static_cast<std::uint32_t>(layers.size()), interval_of(stretch), busy));
  }
  return layers;
}

std::vector<StepUse> step_uses(const Trace& trace, const std::vector<StepWindow>& steps, const BusyTimes& busy) {
  std::vector<StepUse> uses;
  for (const StepWindow& step : steps) {
    const Interval limits = interval_of(step.time);
    const Breakdown times = busy.inside(limits).breakdown(limits.end - limits.start);
    uses.push_back({trace.steps[step.step], limits.start, limits.end, times, step.layers.size()});
  }
  return uses;
}

std::vector<LayerWindow> layers_of_steps(const std::vector<StepWindow>& steps, const BusyTimes& busy) {
  std::vector<LayerWindow> layers;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (std::size_t layer = 0; layer < steps[step].layers.size(); ++layer) {
      const Interval limits = interval_of(steps[step].layers[layer]);
      layers.push_back(window_of(static_cast<std::uint32_t>(layer), limits, busy));
      layers.back().step = static_cast<std::int64_t>(step);
    }
  }
  return layers;
}

void add_communication(const Trace& trace, const Interpretation& meaning, const std::vector<std::uint32_t>& events,
                       std::vector<LayerWindow>& layers) {
  auto layer = layers.begin();
  for (const std::uint32_t i : events) {
    const Time start = time_of(trace.gpu_events[i].start_ns);
    while (layer != layers.end() && layer->end <= start) ++layer;
    if (layer == layers.end()) return;
    const KernelClass c = meaning.classes[i];
    if (layer->start > start || !is_communication(c)) continue;
    (c == KernelClass::barrier ? layer->barrier : layer->transfer) += length_of(trace.gpu_events[i]);
  }
}

}  // namespace moeline
