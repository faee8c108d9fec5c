// What a served model's requests would get: TPOT of a closed loop, by the steps that its batch takes.
#pragma once

#include <string>
#include <vector>

#include "experiments/validate/served_study.hpp"

namespace moeline {

struct ServedPrediction {
  std::string refused{};  ///< why there is none: what the scenario was refused with; ""
  double tpot_ms = 0;
  double batch = 0;         ///< requests of an attention group that decode at once, on average
  double mixed_share = 0;   ///< of the steps, that also prefill; 0 where prefill runs elsewhere
  double chunk_tokens = 0;  ///< new tokens of prompts in such a step
};

/// Of each row that is not left out, in their order.
///
/// The batch of an attention group is Little's law: concurrency per group, times the share of a request's time in which
/// it decodes, output x TPOT / (TTFT + output x TPOT), with the predicted TPOT and the measured TTFT. Where prefill
/// runs elsewhere TPOT is a step of decode. Colocated, batch / output prompts arrive at each step: one that has some
/// prefills all of them, a chunk of at most `step_tokens`; by chance 1 - exp(-arrivals) of the steps have. TPOT is the
/// mean over mixed steps and those of decode alone. Contexts are input + output / 2 on average.
[[nodiscard]] std::vector<ServedPrediction> predict_served(const ServedStudy& study);

}  // namespace moeline
