#include "experiments/run/first_token.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "experiments/run/run_layers.hpp"
#include "experiments/run/sustained_clock.hpp"

namespace moeline {
namespace {

// Time of one step with `tokens` new tokens of a prompt behind `cached` ones, at the clock that it lets the GPU keep.
double chunk_ms(const Setup& setup, int tokens, int cached) {
  Setup chunk = setup;
  PrefillWorkload& w = std::get<PrefillWorkload>(chunk.scenario.workload);
  w.tokens = std::max(2, tokens);  // one for each micro-batch
  w.cached_len = cached;
  w.prompt_len = cached + w.tokens;
  return to_us(run_layers(at_sustained_clock(chunk)).metrics.span) / 1e3;
}

// As evenly as whole numbers let them be, the first and the last with them.
std::vector<int> spread_evenly(int count, int most) {
  const int samples = std::min(count, most);
  std::vector<int> positions;
  for (int i = 0; i < samples; ++i) {
    const double place = samples > 1 ? static_cast<double>(i) * (count - 1) / (samples - 1) : 0;
    positions.push_back(static_cast<int>(std::lround(place)));
  }
  return positions;
}

// Of values at whole places from the first to before the last, on the line between these two.
double sum_between(int places, double first, double last) { return places * first + (last - first) * (places - 1) / 2; }

// Later chunks see more keys, and a chunk's time is nearly a line in them: those between two that are simulated lie on
// the line between these.
double whole_chunks_ms(const Run& run, int count) {
  constexpr int kMostSamples = 8;
  const PrefillWorkload& w = *prefill_of(run.setup.scenario.workload);
  double before_ms = to_us(run.metrics.span) / 1e3, sum = 0;
  int before = 0;
  for (const int position : spread_evenly(count, kMostSamples)) {
    if (position == 0) continue;
    const double ms = chunk_ms(run.setup, w.tokens, w.cached_len + position * w.tokens);
    sum += sum_between(position - before, before_ms, ms);
    before = position;
    before_ms = ms;
  }
  return sum + before_ms;
}

}  // namespace

double time_to_first_token_ms(const Run& run) {
  const PrefillWorkload& w = *prefill_of(run.setup.scenario.workload);
  const int steps = steps_per_prompt(w);
  const bool mean_step = run.setup.scenario.phase() == WorkloadPhase::mixed;
  if (steps == 1 || mean_step) return steps * to_us(run.metrics.span) / 1e3;
  const int remaining = w.prompt_len - w.cached_len;
  const int rest = remaining % w.tokens;
  return whole_chunks_ms(run, remaining / w.tokens) + (rest > 0 ? chunk_ms(run.setup, rest, w.prompt_len - rest) : 0);
}

}  // namespace moeline
