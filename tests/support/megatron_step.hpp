// Steps of training by Megatron's operators: eight layers of a model in BF16 on H100, without a host that launches.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/run.hpp"
#include "tests/support/refusal.hpp"

namespace moeline::testing {

using Set = std::vector<std::string>;

/// Eight micro-batches in 1F1B on each of `pp` ranks, experts on eight GPUs.
inline Setup megatron_step(const std::string& model, int pp, const Set& more) {
  const std::string text =
      "schema: 1\nmodel: " + model + "\nhardware: h100\nschedule: 1f1b\nparallelism: {pp: " + std::to_string(pp) +
      ", ep: 8, dp: 8}\nworkload: {phase: train, seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
      "layers: 8\nrouting: {distribution: exact}\nlaunch: graph\n";
  return read_setup(Spec::parse("scenario.yaml", text), more);
}

inline double step_ms_of(const Run& run) { return to_us(run.metrics.span) / 1e3; }

}  // namespace moeline::testing
