// What decode may be fast in: for each user, or for all of them together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/plan/deployment.hpp"
#include "experiments/plan/lengths.hpp"
#include "experiments/plan/plan_keys.hpp"
#include "hardware/profile.hpp"

namespace moeline {

/// Decode with a batch size that fits, whether or not it is fast enough, with the best prefill beside it.
struct TradeOff {
  DecodeChoice choice;
  double tokens_per_s_per_user = 0;
  double tokens_per_s_per_gpu = 0;  ///< over the GPUs of prefill too
};

/// The trade-offs of which no other is better in both, by tokens per second and user.
[[nodiscard]] std::vector<TradeOff> pareto_front(std::vector<TradeOff> all);

// A plan as it is asked for: what is served, to whom, within which limits, on what.
//
//   schema: 1
//   model: deepseek-v3
//   hardware:                        # one or several; with several, every GPU-hour needs its price
//     h800: {usd_per_gpu_hour: 2, kernels: open-2025-late, set: [nic_GBps=45]}
//   traffic:
//     requests_per_s: 100            # or input_tokens_per_s, or output_tokens_per_s
//     input: {percentiles: {50: 2000, 90: 9000, 99: 30000}}       # lengths.hpp has the other ways
//     output: {mean: 800, spread: 600}
//     course: [0.7, 0.9, 1.3, 1.1]   # of a day, in equal parts: the load over the above
//     cache_hit_share: 0.5           # of every prompt: its first tokens are in a KV cache, and take no prefill
//   limits: {ttft_ms: 4000, tpot_ms: 50, percentile: 95}          # of requests, that TTFT and TPOT hold for
//   memory: {fraction: 0.9}          # of a GPU's, as in a scenario; by default the stack's own
//   serving: [disaggregated, colocated]
//   prefill: {ep: [16, 32], tp: [1, 8], tokens: [8192, 16384], comm_sms: [16, 24], two_batch: [true, false]}
//   decode: {ep: [32, 144], batch_size: [64, 128], two_batch: [true, false], mtp: [0, 1], mtp_acceptance: 0.85}
//
// prefill and decode say what is searched; all of it may be left out. Both take `redundant_experts`, a list of numbers
// of all GPUs of a unit together (by default the fewest with which the unit divides the experts), and `set`, changes to
// the scenario that is simulated.

struct Demand {
  double requests_per_s = 0;
  Lengths input, output;
  double cache_hit_share = 0;
  std::vector<double> course{};  ///< requests over requests_per_s, in equal parts of a day; none: it has no course

  [[nodiscard]] double new_tokens_per_s() const { return requests_per_s * input.mean() * (1 - cache_hit_share); }
  [[nodiscard]] double output_tokens_per_s() const { return requests_per_s * output.mean(); }
};

struct Limits {
  double ttft_ms = 0, tpot_ms = 0;
  double percentile = 95;
};

/// What is searched of prefill: each of its steps is `tokens` new tokens per attention group. Empty: a default
/// (choices.hpp).
struct PrefillSpace {
  std::vector<int> ep;  ///< GPUs of a unit
  std::vector<int> tp;  ///< of attention
  std::vector<int> redundant_experts, tokens, comm_sms;
  std::vector<bool> two_batch{true, false};
  int spare_units = 0;  ///< more than the load takes
  std::vector<std::string> set;
};

struct DecodeSpace {
  std::vector<int> ep, tp, redundant_experts;
  std::vector<int> batch_size;  ///< requests per attention group
  std::vector<bool> two_batch{true, false};
  std::vector<bool> single_batch{false};  ///< of schedules with one micro-batch: it overlaps with itself
  std::vector<int> mtp{0};                ///< tokens drafted per step
  double mtp_acceptance = 0.85;
  int spare_units = 0;  ///< of colocated serving, too
  std::vector<std::string> set;
};

struct Plan {
  std::filesystem::path file;
  std::string model;
  std::vector<PlanHardware> hardware;
  Demand traffic;
  Limits limits;
  std::optional<double> memory_fraction{};  ///< else the stack's own
  double memory_less = 0;                   ///< of the fraction, less: what if more must stay free
  bool disaggregated = true, colocated = true;
  PrefillSpace prefill;
  DecodeSpace decode;
  double step_factor = 1;  ///< on the time of every simulated step: what if we are wrong
};

/// REQUIRES: the plan has it.
[[nodiscard]] const PlanHardware& machine_named(const Plan& plan, const std::string& name);
/// With what its `set` changes.
[[nodiscard]] MachineFacts facts_of(const Plan& plan, const PlanHardware& machine);

/// Throws SpecError (file, line, key, nearest valid name).
[[nodiscard]] Plan load_plan(const std::filesystem::path& file);

}  // namespace moeline
