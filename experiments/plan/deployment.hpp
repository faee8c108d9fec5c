// An answer to a plan: which units serve what, and how fast.
#pragma once

#include <string>
#include <vector>

#include "base/precision.hpp"
#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/parallelism.hpp"
#include "schedules/scenario/schedule_kinds.hpp"

namespace moeline {

/// Parts that a schedule splits its steps into.
[[nodiscard]] inline int micro_batches(const std::string& schedule) { return schedule_named(schedule).micro_batches; }
[[nodiscard]] inline bool is_two_batch(const std::string& schedule) { return micro_batches(schedule) == 2; }

/// How prefill runs: units of GPUs that share a layer, with `tokens` new tokens per step and attention group (of one
/// GPU, where tp is 1).
struct PrefillChoice {
  std::string hardware;
  Parallelism unit{};
  int redundant_experts = 0;  ///< over the unit, of each layer
  int tokens = 0;
  int comm_sms = 0;  ///< of the normal mode
  std::string schedule = "sequential";
  CommMode mode = CommMode::normal;  ///< how tokens reach experts

  [[nodiscard]] int gpus() const { return unit.group(); }

  bool operator==(const PrefillChoice&) const = default;
};

/// How decode runs: units of GPUs that share a layer, with up to `batch_size` requests per attention group.
struct DecodeChoice {
  std::string hardware;
  Parallelism unit{};
  int redundant_experts = 0;
  int batch_size = 0;
  std::string schedule = "sequential";
  int mtp = 0;  ///< tokens drafted per step
  CommMode mode = CommMode::low_latency;

  [[nodiscard]] int gpus() const { return unit.group(); }

  bool operator==(const DecodeChoice&) const = default;
};

/// That a unit of so many GPUs is on.
[[nodiscard]] inline int nodes_of_unit(int gpus, int gpus_per_node) { return (gpus - 1) / gpus_per_node + 1; }

/// GPUs that each of many units takes of nodes, which are rented whole: of units that do not fill a node, what is left
/// of it over is nobody's.
[[nodiscard]] inline double rented_gpus(int gpus_per_unit, int gpus_per_node) {
  if (gpus_per_unit > gpus_per_node) return 1.0 * nodes_of_unit(gpus_per_unit, gpus_per_node) * gpus_per_node;
  return 1.0 * gpus_per_node / (gpus_per_node / gpus_per_unit);
}

/// What weights and caches are stored as.
struct NumberFormats {
  Precision weights{}, experts{}, kv_cache{};  ///< weights: of all but routed experts
  bool has_experts = false;
};

/// One side of a deployment. Of a colocated one both have the same units.
struct Side {
  int units = 0;   ///< that the load takes
  int spares = 0;  ///< more of them, for when one fails
  int gpus = 0;    ///< of all
  [[nodiscard]] int all_units() const { return units + spares; }
  double step_ms = 0;               ///< of a full one
  double exposed_ms = 0;            ///< of it: communication and no compute
  double tokens_per_s_per_gpu = 0;  ///< of full steps
  double utilization = 0;           ///< of prefill: load over capacity; of decode: requests over slots, on average
  GpuMemory memory;                 ///< per GPU
  int fits_requests = 0;            ///< of decode: that fit into memory, per attention group
  std::string bound_by;             ///< memory, tpot, ttft, network or compute
  KnownTime known{};                ///< of the kernels of a full step
};

struct Deployment {
  bool colocated = false;
  bool mixed = false;  ///< of a colocated one: prompts are prefilled in steps that decode as well
  PrefillChoice prefill_choice;
  DecodeChoice decode_choice;
  Side prefill, decode;
  NumberFormats formats{};  ///< of decode
  int gpus = 0;
  int gpus_per_node = 1;
  int nodes = 0;                       ///< that are rented
  double ttft_ms = 0, tpot_ms = 0;     ///< at the limits' percentile
  double tokens_per_s_per_gpu = 0;     ///< produced, over all GPUs
  double tokens_per_s_per_user = 0;    ///< 1000 / TPOT
  double usd_per_gpu_hour = 0;         ///< 0: no price
  double usd_per_hour = 0;             ///< of all GPUs of the nodes
  double cost_per_million_tokens = 0;  ///< USD per million tokens produced, prompts included
  std::string bound_by;                ///< of the side with more GPUs
  std::string loses;                   ///< to the best one, why

  /// Per hour, or where there is none GPUs: of whole nodes.
  [[nodiscard]] double price() const { return usd_per_hour > 0 ? usd_per_hour : 1.0 * nodes * gpus_per_node; }
};

/// GPUs, nodes, cost, and what each GPU produces, by the units of both sides.
void set_totals(Deployment& deployment, double output_tokens_per_s);

// What a step is short of.

/// What most of a step goes by, which it would gain most from: "network" where communication is in the open for more
/// than half of it, else "compute".
[[nodiscard]] inline const char* network_or_compute(double exposed_ms, double step_ms) {
  return exposed_ms > step_ms / 2 ? "network" : "compute";
}

}  // namespace moeline
