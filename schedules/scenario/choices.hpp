// What a scenario chooses from fixed words: enumerations, and the words in their order.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/spec.hpp"
#include "hardware/kernel_library.hpp"
#include "hardware/kernel_set.hpp"
#include "moe/dispatcher.hpp"
#include "moe/operator.hpp"
#include "moe/training.hpp"

namespace moeline {

/// What a step is for.
enum class WorkloadPhase { train, prefill, decode, mixed };
/// Of tokens over experts.
enum class Distribution {
  balanced,  ///< alike on average: chance scatters what each expert gets
  exact,     ///< equally many for each
  skewed,    ///< some of a rank's experts more often than others
  power_law,
  file,
  given,  ///< padded expert rows of rank 0, per layer; those of the others are balanced
};
enum class PlacementRule {
  in_order,  ///< "static"
  eplb,      ///< by load
};
enum class Launch {
  graph,   ///< a CUDA graph: no host
  stream,  ///< the host launches kernels and reads dispatch's counts
  none,    ///< kernels follow each other at once: what launches cost is the difference
};
/// Of a MoE layer's shared experts.
enum class SharedExperts {
  in_turn,  ///< before the routed ones
  beside,   ///< on a stream of their own
};
/// Of a whole pipeline's simulation.
enum class Level {
  by_operator,
  by_slot,  ///< "phase": each kind of slot is simulated once, alone
};
enum class RankChoice {
  automatic,  ///< all that differ
  all,
  folded,  ///< one for all that differ by chance
};
enum class Jitter { measured, none };
/// What each piece of dispatch, experts and combine has.
enum class PiecesBy {
  token,   ///< a part of the tokens, and all experts
  expert,  ///< a part of each rank's experts, and their rows
};
/// Where the first half of attention ends, in decode.
enum class AttentionCut { before_core, behind_core };
/// Of the SMs: what a GPU at work keeps to, or what a rested one starts with.
enum class ClockChoice { sustained, burst };
/// Of a step of decode, the requests whose rows it computes.
enum class GraphBatch {
  by_stack,  ///< "auto": the next batch for which the stack captures a CUDA graph
  exact,     ///< those that there are
  given,     ///< a number stands in the place of the word
};
/// What kernels that compute beside a transfer do to it.
enum class Neighbours { measured, none };

/// Of sums over an attention group: whose kernel.
enum class AllReduce {
  stack,  ///< its own, up to the messages that it takes, which norms what it sums
  nccl,
};

/// Of the queries that an indexer scores, in prompts: who of an attention group has them.
enum class IndexerQueries {
  none,   ///< there is no indexer, no prompt, or no other rank
  whole,  ///< every rank all of them
  split,  ///< each rank a part, and choices are gathered
};

/// What collectives between nodes take: NCCL's time, or that of the links' peaks.
enum class Collectives { nccl, ideal };

/// The words of an enumeration, in its order.
template <class Choice>
inline constexpr std::array<const char*, 0> kWords{};
template <>
inline constexpr std::array kWords<WorkloadPhase> = {"train", "prefill", "decode", "mixed"};
template <>
inline constexpr std::array kWords<Topology> = {"direct", "hybrid"};
template <>
inline constexpr std::array kWords<RowLayout> = {"contiguous", "expanded"};
template <>
inline constexpr std::array kWords<AllReduce> = {"stack", "nccl"};
template <>
inline constexpr std::array kWords<IndexerQueries> = {"none", "whole", "split"};
template <>
inline constexpr std::array kWords<Collectives> = {"nccl", "ideal"};
template <>
inline constexpr std::array kWords<PiecesBy> = {"token", "expert"};
template <>
inline constexpr std::array kWords<AttentionCut> = {"before_core", "behind_core"};
template <>
inline constexpr std::array kWords<ContextMode> = {"all_gather", "ring", "copy_engines"};
template <>
inline constexpr std::array kWords<StageSends> = {"nccl", "rdma"};
template <>
inline constexpr std::array kWords<Stack> = {"none", "sglang", "trtllm", "vllm"};  // of those that serve
template <>
inline constexpr std::array kWords<AttentionBackend> = {"usual", "fa2", "fa3", "flashmla", "xqa", "trtllm_gen"};
template <>
inline constexpr std::array kWords<MoeBackend> = {"usual", "triton", "cutlass", "deepgemm", "marlin", "trtllm_gen"};
template <>
inline constexpr std::array kWords<Distribution> = {"balanced", "exact", "skewed", "power_law", "file", "given"};
template <>
inline constexpr std::array kWords<PlacementRule> = {"static", "eplb"};
template <>
inline constexpr std::array kWords<TrainingOperators> = {"deepseek", "megatron"};
template <>
inline constexpr std::array kWords<Recompute> = {"selective", "none", "full"};
template <>
inline constexpr std::array kWords<Launch> = {"graph", "stream", "none"};
template <>
inline constexpr std::array kWords<SharedExperts> = {"in_turn", "beside"};
template <>
inline constexpr std::array kWords<Level> = {"operator", "phase"};
template <>
inline constexpr std::array kWords<RankChoice> = {"auto", "all", "folded"};
template <>
inline constexpr std::array kWords<Jitter> = {"measured", "none"};
template <>
inline constexpr std::array kWords<ClockChoice> = {"sustained", "burst"};
template <>
inline constexpr std::array kWords<GraphBatch> = {"auto", "exact"};
template <>
inline constexpr std::array kWords<Neighbours> = {"measured", "none"};

template <class Choice>
[[nodiscard]] const std::vector<std::string>& words_of() {
  static_assert(!kWords<Choice>.empty());
  static const std::vector<std::string> words(kWords<Choice>.begin(), kWords<Choice>.end());
  return words;
}

/// Each has its own in its description.
template <>
[[nodiscard]] inline const std::vector<std::string>& words_of<CommMode>() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const Dispatcher& each : dispatchers()) all.push_back(each.word);
    return all;
  }();
  return words;
}

template <class Choice>
[[nodiscard]] const std::string& word_of(Choice choice) {
  return words_of<Choice>()[static_cast<std::size_t>(choice)];
}

template <class Choice>
[[nodiscard]] std::vector<std::string> words_of(const std::vector<Choice>& choices) {
  std::vector<std::string> words;
  for (const Choice choice : choices) words.push_back(word_of(choice));
  return words;
}

/// REQUIRES: one of the words.
template <class Choice>
[[nodiscard]] Choice choice_of(const std::string& word) {
  return choice_of<Choice>(word, words_of<Choice>());
}

/// What stands at `key`, or the fallback where nothing does. Throws SpecError for another word.
template <class Choice>
[[nodiscard]] Choice read_choice(const Spec& spec, const std::string& key, Choice fallback) {
  return spec.has(key) ? choice_at<Choice>(spec, key, words_of<Choice>()) : fallback;
}

}  // namespace moeline
