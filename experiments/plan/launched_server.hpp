// What the commands of every program are made of: the servers of a deployment, and words of a shell.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/plan/flags.hpp"

namespace moeline {

using Flags = std::vector<std::string>;

/// One kind of server: what prefills, what decodes, or, colocated, what does both.
struct LaunchedServer {
  std::string role;
  int units = 0, nodes = 0;
  Parallelism unit{};
  CommMode mode = CommMode::normal;  ///< of decode, where both sides are one server
  int redundant_experts = 0;
  int mtp = 0;         ///< prefill drafts, too: decode needs the MTP module's KV cache of the prompt
  bool mixes = false;  ///< prompts are prefilled in steps that decode as well
  const PrefillChoice* prefill = nullptr;
  const DecodeChoice* decode = nullptr;
  GpuMemory memory;

  [[nodiscard]] bool alone() const { return prefill != nullptr && decode != nullptr; }
  [[nodiscard]] int gpus() const { return unit.group(); }
  [[nodiscard]] int gpus_per_node() const { return gpus() / nodes; }
  [[nodiscard]] int groups() const { return unit.attention_groups(); }
  [[nodiscard]] bool sends_by_deep_ep() const { return dispatcher_of(mode).of_deep_ep; }
  [[nodiscard]] bool prefill_overlaps() const { return prefill != nullptr && is_two_batch(prefill->schedule); }
  [[nodiscard]] bool decode_overlaps() const { return decode != nullptr && is_two_batch(decode->schedule); }
  [[nodiscard]] bool overlaps() const { return prefill_overlaps() || decode_overlaps(); }
  /// What overlaps one batch with itself.
  [[nodiscard]] bool decodes_by(const char* schedule) const {
    return decode != nullptr && decode->schedule == schedule;
  }
  /// Of an attention group. A request's drafted tokens are verified beside its newest one.
  [[nodiscard]] int decode_tokens() const { return decode == nullptr ? 0 : decode->batch_size * (1 + mtp); }
  /// Of a step: a mixed one has both.
  [[nodiscard]] int tokens() const {
    const int prompts = prefill == nullptr ? 0 : prefill->tokens;
    return mixes ? prompts + decode_tokens() : std::max(prompts, decode_tokens());
  }
};

[[nodiscard]] std::vector<LaunchedServer> launched_servers(const Deployment& deployment, int gpus_per_node);

void add_flags(Flags& flags, const Flags& more);
[[nodiscard]] std::string joined(const Flags& flags);
[[nodiscard]] std::string for_shell(const std::string& text);
// What the plan fills, as each stack counts it: whatever its own rule is, caches get as much.

/// SGLang's: weights and caches, of what is free before they are loaded.
[[nodiscard]] double static_share(const GpuMemory& memory);
/// vLLM's: everything, of the GPU's memory, `start_bytes` of its start where steps take less.
[[nodiscard]] double share_of_all(const GpuMemory& memory, double start_bytes);
/// TensorRT-LLM's: caches, of what all else leaves.
[[nodiscard]] double share_of_free(const GpuMemory& memory);

/// A share of memory, rounded down: what is granted to one is taken from another.
[[nodiscard]] std::string rounded_share(double value);
/// What the server is to load. Our own YAML is not loaded by anyone: there is only the name.
[[nodiscard]] std::string served_model(const Plan& plan, const Architecture& model);
/// Where decode overlaps one batch with itself, and the program has no such option.
void note_one_batch(const LaunchedServer& server, std::vector<std::string>& notes);
[[nodiscard]] LaunchCommand launch_command(const LaunchedServer& server, const Flags& flags,
                                           std::vector<std::string> notes);

}  // namespace moeline
