// The numbers of a whole run, which the table of metrics names.
#pragma once

#include <array>
#include <optional>

#include "experiments/memory/parts.hpp"
#include "experiments/run/carried_over.hpp"
#include "experiments/run/metrics.hpp"
#include "experiments/run/run.hpp"

namespace moeline {

/// Training: period of one forward and one backward layer; where layers differ, span / layers. Inference: of one MoE
/// layer with all its micro-batches. REQUIRES: the run is no whole pipeline.
[[nodiscard]] double layer_us(const Run& run);
/// What of such a layer something takes, in steady state: beside layer_us, as the step's times are beside step_ms.
[[nodiscard]] double us_of_layer(const Run& run, Time Metrics::*time);
/// FLOPs of matrix products and causal attention, recomputation left out, over the BF16 peak: of the kernels, padded
/// expert rows counted, or of a whole step of training those that its tokens need (flops_per_token).
[[nodiscard]] double mfu(const Run& run);
[[nodiscard]] double mfu_non_causal(const Run& run);
/// Of a whole step of training, by the FLOPs that its tokens need (architecture/parameters.hpp).
[[nodiscard]] double flops_per_token(const Run& run, bool causal);
[[nodiscard]] double gpu_hours_per_trillion_tokens(const Run& run);
[[nodiscard]] double bubble_ms(const Run& run);
[[nodiscard]] double bubble_fraction(const Run& run);
/// A whole step: throughput and latency mean something.
[[nodiscard]] bool is_whole_step(const Run& run);
/// Requests get tokens from its step, or prompts are computed; in a mixed one both.
[[nodiscard]] bool decodes(const Run& run);
[[nodiscard]] bool prefills(const Run& run);
/// A prompt takes several steps; this is the first of them.
[[nodiscard]] bool is_chunked(const Run& run);
/// Of each GPU. Prefill: new tokens computed; decode: tokens produced, accepted drafts included; a mixed step: both;
/// training: the batch's over all GPUs.
[[nodiscard]] double tokens_per_s(const Run& run);
[[nodiscard]] double tpot_ms(const Run& run);
/// Of the fullest GPU; 0 where it is not known: of a chunk of training, and of given slots.
[[nodiscard]] double memory_bytes(const Run& run);
[[nodiscard]] bool knows_memory(const Run& run);
[[nodiscard]] bool fits_memory(const Run& run);
/// GiB that a GPU would need more, up to 0 where it fits: as whoever chooses a layout asks, with kMemoryReserve to
/// spare in training. REQUIRES: memory is known.
[[nodiscard]] double missing_gib(const Run& run);
/// Share of the GPU that is filled, with all the room that caches may have. REQUIRES: memory is known.
[[nodiscard]] double filled_share(const Run& run);
/// What it consists of. REQUIRES: memory is known.
[[nodiscard]] MemoryParts memory_parts(const Run& run);
/// Sum of solo times over all kernels.
[[nodiscard]] double solo_us(const Run& run);
/// Solo time of kernels whose curve was not measured where they lie, over that of all kernels.
[[nodiscard]] double extrapolated_share(const Run& run);
/// Of these, those that lie outside of what was measured of their family, and those that another machine's measurements
/// price: a kernel may be both.
[[nodiscard]] double outside_share(const Run& run);
[[nodiscard]] double carried_over_share(const Run& run);
/// Kernels of families that nobody measured: by the least that the machine's peaks allow. They are not extrapolated.
[[nodiscard]] double roofline_share(const Run& run);
/// What of all solo time so much of it is; 0 where there is none.
[[nodiscard]] double share_of_solo(const Run& run, double us);

/// Solo time of the kernels of a run, or of several, and what of it is known how, in the order of known_shares().
struct KnownTime {
  double all_us = 0;
  std::array<double, kKnownShares> us{};
  std::optional<CarriedOver> carried{};  ///< of the first run whose kernels are another machine's

  [[nodiscard]] double share(std::size_t i) const { return all_us > 0 ? us[i] / all_us : 0; }
  void add(const KnownTime& other);
};
[[nodiscard]] KnownTime known_time(const Run& run);

/// Solo time of kernels that cost the same whatever their size, over that of all kernels.
[[nodiscard]] double lumped_share(const Run& run);
/// Of a step of inference, what an attention group does for itself, however busy the others are: all layers' phases but
/// dispatch, experts and combine.
[[nodiscard]] double own_us(const Run& run);
/// Time in barriers, on average over the ranks.
[[nodiscard]] double barrier_us(const Run& run);
/// Time in which the compute stream of rank 0 waits for communication (timeline/metrics.hpp).
[[nodiscard]] double compute_waits_us(const Run& run);
/// Chance says which experts a step of inference reaches.
[[nodiscard]] bool has_chance_of_experts(const Run& run);
/// Distinct experts of a MoE layer that the step's tokens reach together, expected.
[[nodiscard]] double experts_hit(const Run& run);
/// The same with another skew; 0: experts are chosen alike.
[[nodiscard]] double experts_hit(const Run& run, double skew);
[[nodiscard]] bool has_imbalance(const Run& run);
/// Token-expert pairs of the busiest rank over the mean, on average over the layers.
[[nodiscard]] double imbalance(const Run& run);
/// Every price rests on measurements around it, or on a data sheet.
[[nodiscard]] bool all_measured(const Run& run);

}  // namespace moeline
