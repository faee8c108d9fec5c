#include "measured/layers.hpp"

#include <algorithm>
#include <iterator>
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
    Interval computes{Time::max(), Time::min()};
    Time end = Time::min(), barrier{}, transfer{};
  };
  std::map<std::uint32_t, Layer> by_number;
  for (const PhaseTimes& phase : phases) {
    Layer& layer = by_number[phase.layer];
    layer.barrier += phase.barrier;
    layer.transfer += phase.transfer;
    layer.end = std::max(layer.end, phase.end);
    if (phase.is_communication()) continue;
    layer.computes.start = std::min(layer.computes.start, phase.start);
    layer.computes.end = std::max(layer.computes.end, phase.end);
  }
  const auto never_computes = [](const auto& entry) { return entry.second.computes.end < entry.second.computes.start; };
  std::erase_if(by_number, never_computes);
  std::vector<LayerWindow> layers;
  for (auto each = by_number.begin(); each != by_number.end(); ++each) {
    const auto& [number, layer] = *each;
    const auto next = std::next(each);
    const Time until = next != by_number.end() ? std::min(layer.end, next->second.computes.start) : layer.end;
    layers.push_back(window_of(number, {layer.computes.start, std::max(layer.computes.end, until)}, busy));
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
