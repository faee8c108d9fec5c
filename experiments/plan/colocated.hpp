// Colocated serving: the same units prefill and decode, in turns.
#pragma once

#include <optional>

#include "experiments/plan/decode_options.hpp"
#include "experiments/plan/prefill_options.hpp"

namespace moeline {

struct ColocatedOption {
  DecodeOption decode;    ///< its TPOT and units are those of the whole
  PrefillOption prefill;  ///< the same units
  GpuMemory memory;       ///< of both together
  bool mixed = false;     ///< prompts are prefilled in steps in which requests decode as well
  int decode_steps = 0;   ///< after a full step that prefills
  [[nodiscard]] int gpus() const { return decode.gpus(); }
};

/// The one with the fewest GPUs, of a family's batch sizes and those ways of prefilling that have units of the same
/// size.
///
/// Prompts are prefilled in mixed steps, as chunked prefill does, or, where a schedule overlaps micro-batches, in steps
/// of their own. Each is followed by as many of decode as keep TPOT within the limit even while prompts queue up: where
/// the step of prefill took P, one of decode takes D and a token may take L, n of them with P + n D <= n L, of a mixed
/// one, from which requests get a token, with P + n D <= (n + 1) L. Prefill's share of time is that of its steps,
/// partly filled ones too, in the simulation of arrivals; TPOT is the time over all steps that give tokens, and prompts
/// wait for the steps between. A GPU keeps weights once, both sides' caches and buffers, and activations of both (the
/// larger where steps take turns).
[[nodiscard]] std::optional<ColocatedOption> colocated_option(const Plan& plan, const Points& points,
                                                              const DecodeFamily& family,
                                                              const std::vector<PrefillChoice>& choices);

/// The limits that take the least widening of the plan's and that the family's smallest batch, whose steps are the
/// shortest, meets on as many units as are ever tried. Nothing: no batch fits beside prefill.
[[nodiscard]] std::optional<Limits> colocated_reach(const Plan& plan, const Points& points, const DecodeFamily& family,
                                                    const std::vector<PrefillChoice>& choices);

/// By how much limits are wider than those of the plan: 1 where they are within them.
[[nodiscard]] double widening(const Limits& limits, const Limits& of_plan);

}  // namespace moeline
