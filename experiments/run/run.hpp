// A scenario simulated: what simulate and compare both need.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/run/step_report.hpp"
#include "moe/memory.hpp"
#include "schedules/schedules.hpp"
#include "timeline/metrics.hpp"
#include "timeline/phases.hpp"

namespace moeline {

/// Metrics of whole layers in steady state.
struct Steady {
  Metrics metrics;
  double layers = 0;  ///< that the metrics' span covers
};

struct Run {
  Setup setup;
  Program program;
  Timeline timeline;
  Metrics metrics{};
  std::vector<PhaseTimes> phases{};  ///< of rank 0; of a pipeline, of all its ranks
  Steady steady{};
  double simulate_ms = 0;            ///< the engine alone
  std::optional<Memory> memory{};    ///< per GPU; of inference
  std::optional<StepReport> step{};  ///< of a whole step of training
  double ttft_ms = 0;                ///< of prefill
  std::vector<std::string> warnings{};

  /// Training: period of one forward and one backward layer; where layers differ, span / layers. Inference: of one MoE
  /// layer with all its micro-batches.
  [[nodiscard]] double layer_us() const;
  /// FLOPs of matrix products and causal attention, recomputation left out, over the BF16 peak: of the kernels, padded
  /// expert rows counted, or of a whole step of training those that its tokens need (flops_per_token).
  [[nodiscard]] double mfu() const;
  [[nodiscard]] bool is_inference() const { return setup.scenario.workload.phase != "train"; }
  /// A whole pipeline, of given slots or of operators: phases are slots.
  [[nodiscard]] bool is_pipeline() const { return has_given_slots() || step.has_value(); }
  /// Times of slots, and nothing about kernels.
  [[nodiscard]] bool has_given_slots() const { return setup.scenario.slot_costs.has_value(); }
  [[nodiscard]] double bubble_ms() const;
  [[nodiscard]] double bubble_fraction() const;
  /// Of a whole step of training, by the FLOPs that its tokens need (moe/parameters.hpp); else by those of the kernels.
  [[nodiscard]] double flops_per_token(bool causal) const;
  [[nodiscard]] double mfu_non_causal() const;
  [[nodiscard]] double gpu_hours_per_trillion_tokens() const;
  [[nodiscard]] bool is_decode() const { return setup.scenario.workload.phase == "decode"; }
  /// A prompt takes several steps; this is the first of them.
  [[nodiscard]] bool is_chunked() const;
  /// A whole step of inference: throughput and latency mean something.
  [[nodiscard]] bool is_whole_step() const { return setup.scenario.whole_model; }
  /// Of each GPU. Prefill: new tokens computed; decode: tokens produced, accepted drafts included; training: the
  /// batch's over all GPUs.
  [[nodiscard]] double tokens_per_s() const;
  [[nodiscard]] double tpot_ms() const;
  /// Of the fullest GPU.
  [[nodiscard]] double memory_bytes() const;
  /// Not of a chunk of training, nor of given slots.
  [[nodiscard]] bool knows_memory() const { return step || memory; }
  [[nodiscard]] bool fits_memory() const;
  /// What it consists of. REQUIRES: memory is known.
  [[nodiscard]] std::string memory_breakdown() const;
  /// Solo time of kernels whose curve was not measured where they lie, over that of all kernels.
  [[nodiscard]] double extrapolated_share() const;
  /// Solo time of kernels that cost the same whatever their size, over that of all kernels.
  [[nodiscard]] double lumped_share() const;
  /// Time in barriers, on average over the ranks.
  [[nodiscard]] double barrier_us() const;
  /// Time in which the compute stream of rank 0 waits for communication (timeline/compute_waits.hpp).
  [[nodiscard]] double compute_waits_us() const;
  [[nodiscard]] bool has_imbalance() const { return !setup.routed.empty(); }
  /// Token-expert pairs of the busiest rank over the mean, on average over the layers.
  [[nodiscard]] double imbalance() const;
  /// Every price rests on measurements around it, or on a data sheet.
  [[nodiscard]] bool all_measured() const;
  /// Sum over all kernels.
  [[nodiscard]] double solo_us() const;
};

/// "weights 22.5, KV cache 34.3, activations 0.3, communication buffers 0.9", in GiB.
[[nodiscard]] std::string breakdown(const Memory& memory);

[[nodiscard]] Run run_scenario(const Setup& setup, bool record_changes = false);

/// Of inference, per GPU: the largest cache of the ranks, and the most rows that any gets.
[[nodiscard]] Memory memory_of(const Setup& setup);

}  // namespace moeline
