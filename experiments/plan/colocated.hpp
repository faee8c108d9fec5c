// Colocated serving: the same units prefill and decode, in turns.
#pragma once

#include <optional>

#include "experiments/plan/decode_options.hpp"
#include "experiments/plan/prefill_options.hpp"

namespace moeline {

struct ColocatedOption {
  DecodeOption decode;    ///< its TPOT and units are those of the whole
  PrefillOption prefill;  ///< the same units
  Memory memory;          ///< of both together
  [[nodiscard]] int gpus() const { return decode.gpus(); }
};

/// The one with the fewest GPUs, of a family's batch sizes and those ways of prefilling that have units of the same
/// size.
///
/// A prefill step is followed by a step of decode. Prefill takes the share of time that its load needs; decode has the
/// rest, so that TPOT is that of decode alone over what is left, and TTFT has a step of decode after each of prefill.
/// A GPU keeps weights once, the larger activations, and both sides' caches and buffers.
[[nodiscard]] std::optional<ColocatedOption> colocated_option(const Plan& plan, const Points& points,
                                                              const DecodeFamily& family,
                                                              const std::vector<PrefillChoice>& choices);

}  // namespace moeline
