// What happened to requests, and in which steps.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <string>
#include <vector>

#include "experiments/serve/traffic.hpp"

namespace moeline {

/// What an attention group has in a step; all groups of a replica take the step together.
struct StepLoad {
  double answers = 0;   ///< requests that get a token
  double keys = 0;      ///< of these, tokens in the KV cache, on average
  double prompts = 0;   ///< tokens of prompts that are computed
  double seen = 0;      ///< keys that such a token's last one sees, on average over the tokens
  double parts = 0;     ///< prompts that these tokens are of, as many of `seen` keys as have the keys of all of them
  double moved_MB = 0;  ///< of caches and experts, that cross each GPU's NIC beside it, in one direction
  bool apart = false;   ///< its answers and its prompts are of different groups
};

/// Where routing stands in a step, and what chance makes of it. The default: as the scenario has it.
struct StepState {
  int loads = -1;          ///< time step of the file of loads
  int placed_before = -1;  ///< time step; experts are placed by the loads before it
  int draw = 0;            ///< of the scenario's samples

  auto operator<=>(const StepState&) const = default;
};

/// Its cached part is what it found where it was computed last.
struct ServedRequest : Asked {
  double arrival_ms = 0, begin_ms = 0, first_token_ms = 0, end_ms = 0;  ///< begin: of its first step; the first token
                                                                        ///< is told where it decodes
  double slot_ms = 0;          ///< its prompt is computed elsewhere: until there is room for it where it decodes
  double transfer_ms = 0;      ///< of its cache, from there on
  double stalled_ms = 0;       ///< after it lost its cache, until it decoded again
  double beside_ms = 0;        ///< by which steps in which it decoded, or might have, were longer for others' prompts
  int replica = 0, group = 0;  ///< where it got its answer
  int retries = 0;             ///< times that its replica went
  int restarts = 0;            ///< times that it lost its cache

  /// When its prompt was computed.
  [[nodiscard]] double computed_ms() const { return first_token_ms - transfer_ms - slot_ms; }
  [[nodiscard]] double ttft_ms() const { return first_token_ms - arrival_ms; }
  /// Of each token but the first; 0 where there are none.
  [[nodiscard]] double tpot_ms() const { return (end_ms - first_token_ms) / std::max(1, output_len - 1); }
  [[nodiscard]] int new_tokens() const { return input_len - cached_len; }
  [[nodiscard]] double kv_tokens() const { return double{1} * input_len + output_len; }
};

/// One after the other, some of no length.
struct RequestStage {
  const char* name;
  double from_ms, to_ms;
};
[[nodiscard]] inline std::array<RequestStage, 5> stages_of(const ServedRequest& r) {
  const double moves_ms = r.computed_ms() + r.slot_ms;
  return {{{"queue", r.arrival_ms, r.begin_ms},
           {"prefill", r.begin_ms, r.computed_ms()},
           {"wait for a slot", r.computed_ms(), moves_ms},
           {"transfer", moves_ms, r.first_token_ms},
           {"decode", r.first_token_ms, r.end_ms}}};
}

/// Why requests that had come are not in a step.
enum class HeldBack { nothing, cache, batch_limit };
[[nodiscard]] const char* name_of(HeldBack reason);

struct ServedStep {
  double start_ms = 0, ms = 0;
  StepLoad busiest{};  ///< of each the most that a group has
  StepLoad mean{};     ///< over the groups
  StepState state{};
  double paused_ms = 0;      ///< of `ms`, before it: experts moved
  bool placed_anew = false;  ///< experts begin to move with it
  int graph_batch = 0;       ///< requests whose rows each group computes; 0: of as many as it has
  int waiting = 0;           ///< requests of which no step has begun
  HeldBack held_back{};      ///< requests that wait; of several groups the cache first
  int replica = 0;           ///< those that prefill alone come after the others
};

struct ReplicasOn {
  double from_ms = 0, to_ms = 0;
  int replicas = 0;
};

/// Between two tokens of an answer, or with drafts two steps that brought some.
struct TokenGap {
  double ms = 0;
  int answers = 0;  ///< that waited so long
};

struct ServeLog {
  std::vector<ServedRequest> requests;  ///< by arrival
  std::vector<ServedStep> steps;        ///< by start
  double end_ms = 0;
  std::vector<TokenGap> gaps{};
  std::vector<ReplicasOn> replicas_on{};  ///< that answer, where they are switched; starting and draining ones too
};

// Steps and requests as a Chrome trace: what ran when, and what each request waited for.

/// A process for each replica, with its steps as slices and what is in them as counters; and one for requests, each an
/// asynchronous slice over its parts: queue, prefill, transfer, decode. Perfetto and chrome://tracing open it.
[[nodiscard]] std::string serve_trace(const ServeLog& log);

}  // namespace moeline
