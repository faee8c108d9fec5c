#include "experiments/run/samples.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/parallel.hpp"
#include "experiments/run/metrics.hpp"

namespace moeline {
namespace {

struct PhaseSample {
  double barrier_us = 0, wait_us = 0;
};
using PhaseSamples = std::map<PhaseKey, PhaseSample>;

// What is kept of one run.
struct Sample {
  std::vector<double> metrics;  // in the order of run_metrics(); NaN where one does not apply
  PhaseSamples phases;
};

Sample keep(const Run& run) {
  Sample sample;
  for (const Metric* metric : run_metrics()) sample.metrics.push_back(metric->applies(run) ? metric->value(run) : NAN);
  for (const PhaseTimes& phase : run.phases) {
    if (phase.barrier == Time::zero() && phase.wait == Time::zero()) continue;
    sample.phases[key_of(phase)] = {to_us(phase.barrier), to_us(phase.wait)};
  }
  return sample;
}

std::vector<Sample> keep_all(const Setup& setup, const Progress& progress) {
  std::vector<Sample> samples(static_cast<std::size_t>(setup.scenario.samples));
  for_each_sample(
      setup, [&](std::size_t i, const Run& run) { samples[i] = keep(run); }, progress);
  return samples;
}

std::vector<MetricBand> metric_bands(const std::vector<Sample>& samples) {
  std::vector<MetricBand> bands;
  for (std::size_t i = 0; i < run_metrics().size(); ++i) {
    if (std::isnan(samples.front().metrics[i])) continue;
    std::vector<double> values;
    for (const Sample& sample : samples) values.push_back(sample.metrics[i]);
    bands.push_back({run_metrics()[i]->name, band_of(std::move(values))});
  }
  return bands;
}

// A phase that does not wait in a sample waits 0 there.
std::vector<PhaseBand> phase_bands(const std::vector<Sample>& samples) {
  std::map<PhaseKey, std::vector<PhaseSample>> by_phase;
  for (const Sample& sample : samples) {
    for (const auto& [key, phase] : sample.phases) by_phase[key].push_back(phase);
  }
  std::vector<PhaseBand> bands;
  for (auto& [key, phases] : by_phase) {
    phases.resize(samples.size());
    std::vector<double> barriers;
    std::vector<double> waits;
    for (const PhaseSample& phase : phases) {
      barriers.push_back(phase.barrier_us);
      waits.push_back(phase.wait_us);
    }
    const auto& [layer, name, micro_batch] = key;
    bands.push_back({name, micro_batch, layer, band_of(std::move(barriers)), band_of(std::move(waits))});
  }
  return bands;
}

}  // namespace

Band band_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double position = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {at(0.5), at(0.05), at(0.95)};
}

void for_each_sample(const Setup& setup, const std::function<void(std::size_t, Run)>& use, const Progress& progress) {
  ProgressCount one_more(progress, "samples", static_cast<std::size_t>(setup.scenario.samples));
  parallel_for(static_cast<std::size_t>(setup.scenario.samples), cores(), [&](std::size_t i) {
    Setup drawn = setup;
    draw(drawn, setup.scenario.seed + static_cast<int>(i));
    use(i, run_scenario(drawn));
    one_more();
  });
}

Samples sample(const Setup& setup, const Progress& progress) {
  const std::vector<Sample> samples = keep_all(setup, progress);
  return {setup.scenario.samples, metric_bands(samples), phase_bands(samples)};
}

}  // namespace moeline
