#include "experiments/run/first_token.hpp"

#include <algorithm>

#include "experiments/run/run_layers.hpp"

namespace moeline {
namespace {

// Time of one step with `tokens` new tokens of a prompt behind `cached` ones.
double chunk_ms(const Setup& setup, int tokens, int cached) {
  Setup chunk = setup;
  PrefillWorkload& w = std::get<PrefillWorkload>(chunk.scenario.workload);
  w.tokens = std::max(2, tokens);  // one for each micro-batch
  w.cached_len = cached;
  w.prompt_len = cached + w.tokens;
  return to_us(run_layers(chunk).metrics.span) / 1e3;
}

}  // namespace

// Later chunks see more keys, and the time of a chunk is nearly linear in them, so that a few whole ones say what all
// take; the last has what is left.
double time_to_first_token_ms(const Run& run) {
  constexpr int kMostSamples = 8;
  const PrefillWorkload& w = *prefill_of(run.setup.scenario.workload);
  const int steps = steps_per_prompt(w);
  const bool mean_step = run.setup.scenario.phase() == WorkloadPhase::mixed;
  if (steps == 1 || mean_step) return steps * to_us(run.metrics.span) / 1e3;
  const int remaining = w.prompt_len - w.cached_len;
  const int whole = remaining / w.tokens;
  const int samples = std::min(whole, kMostSamples);
  double sum = 0;
  for (int i = 0; i < samples; ++i) {
    const auto chunk = static_cast<std::int64_t>(i) * (whole - 1) / std::max(1, samples - 1);
    sum += chunk_ms(run.setup, w.tokens, w.cached_len + static_cast<int>(chunk) * w.tokens);
  }
  const int rest = remaining % w.tokens;
  return sum / samples * whole + (rest > 0 ? chunk_ms(run.setup, rest, w.prompt_len - rest) : 0);
}

}  // namespace moeline
