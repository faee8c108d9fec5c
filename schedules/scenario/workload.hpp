// What a step has to do, of each GPU, by what it is for.
#pragma once

#include <variant>
#include <vector>

#include "schedules/scenario/choices.hpp"

namespace moeline {

struct TrainWorkload {
  int micro_batch_size = 0;     ///< sequences
  int seq_len = 0;              ///< tokens; of unequal micro-batches the longest
  int global_batch_size = 0;    ///< sequences per step; 0: not given
  std::vector<int> seq_lens{};  ///< of the micro-batches of a pipeline, in turn; empty: all alike
};

struct PrefillWorkload {
  int tokens = 0;             ///< new tokens per step
  int prompt_len = 0;         ///< with the cached part
  int cached_len = 0;         ///< of each prompt: in the KV cache already
  double kv_transfer_MB = 0;  ///< of caches that go out over each GPU's NIC beside the step
};

struct DecodeWorkload {
  int batch_size = 0;                        ///< requests of an attention group
  int kv_len = 0;                            ///< mean, with the new tokens
  double kv_len_spread = 0;                  ///< standard deviation of the requests' lengths, tokens
  double batch_size_spread = 0;              ///< of the ranks' requests
  int query_len = 1;                         ///< tokens per request and step: one, and those that were drafted
  int draft_layers = 0;                      ///< of a draft model; 0: the model's own MTP modules draft
  std::vector<double> mtp_acceptance{0.85};  ///< of each drafted token, given that those before it were accepted; the
                                             ///< last number holds for all behind it
  double kv_transfer_MB = 0;                 ///< of caches that come in over each GPU's NIC beside the step
  GraphBatch graph_choice = GraphBatch::by_stack;
  int graph_batch = 0;  ///< requests whose rows each attention group computes; 0: of as many as it has
};

/// Requests decode while a chunk of prompts is prefilled.
struct MixedWorkload {
  DecodeWorkload decode;
  PrefillWorkload prefill;
};

/// In the order of WorkloadPhase.
using Workload = std::variant<TrainWorkload, PrefillWorkload, DecodeWorkload, MixedWorkload>;

[[nodiscard]] inline WorkloadPhase phase_of(const Workload& workload) {
  return static_cast<WorkloadPhase>(workload.index());
}

/// REQUIRES: the workload is of that phase.
[[nodiscard]] inline const TrainWorkload& as_train(const Workload& workload) {
  return std::get<TrainWorkload>(workload);
}

[[nodiscard]] inline int seq_len_of(const TrainWorkload& w, int micro_batch) {
  return w.seq_lens.empty() ? w.seq_len : w.seq_lens[static_cast<std::size_t>(micro_batch) % w.seq_lens.size()];
}

/// What a step prefills and decodes; null: nothing.
[[nodiscard]] inline const PrefillWorkload* prefill_of(const Workload& workload) {
  if (const auto* mixed = std::get_if<MixedWorkload>(&workload)) return &mixed->prefill;
  return std::get_if<PrefillWorkload>(&workload);
}
[[nodiscard]] inline const DecodeWorkload* decode_of(const Workload& workload) {
  if (const auto* mixed = std::get_if<MixedWorkload>(&workload)) return &mixed->decode;
  return std::get_if<DecodeWorkload>(&workload);
}

/// Beside the step; 0: nothing is.
[[nodiscard]] double kv_transfer_MB(const Workload& workload);

/// New tokens of each prompt in this step: all that is not cached, or as many as the step has.
[[nodiscard]] int new_tokens_per_prompt(const PrefillWorkload& workload);

/// Steps that a prompt takes.
[[nodiscard]] int steps_per_prompt(const PrefillWorkload& workload);

/// Tokens that one request gets from a step of decode: one, and drafted ones until the first that is rejected.
[[nodiscard]] double tokens_per_request(const DecodeWorkload& workload);

}  // namespace moeline
