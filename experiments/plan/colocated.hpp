// Colocated serving: the same units compute prompts and answers.
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
  [[nodiscard]] int gpus() const { return decode.gpus(); }
};

/// The one with the fewest GPUs, and `most_gpus` at most, of a family's batch sizes and those ways of prefilling that
/// have units of the same size.
///
/// Prompts are computed in mixed steps, as chunked prefill does, or, where a schedule overlaps micro-batches, in steps
/// of their own; where some wait the next step has them, as with every stack's scheduler. TTFT and TPOT are those of
/// the requests of one simulation of arrivals (prefill_queue.hpp), in which steps of decode are those of full batches.
/// A GPU keeps weights once, both sides' caches and buffers, and activations of both (the larger where steps take
/// turns).
[[nodiscard]] std::optional<ColocatedOption> colocated_option(const Plan& plan, const Points& points,
                                                              const DecodeFamily& family,
                                                              const std::vector<FittingPrefill>& prefill,
                                                              int most_gpus);

/// The limits that take the least widening of the plan's and that the family's smallest batch, whose steps are the
/// shortest, meets on as many units as are ever tried. Nothing: no batch fits beside prefill.
[[nodiscard]] std::optional<Limits> colocated_reach(const Plan& plan, const Points& points, const DecodeFamily& family,
                                                    const std::vector<FittingPrefill>& prefill);

/// By how much limits are wider than those of the plan: 1 where they are within them.
[[nodiscard]] double widening(const Limits& limits, const Limits& of_plan);

}  // namespace moeline
