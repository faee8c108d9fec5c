// What stacks do by habit: what a scenario that leaves a choice open gets from the stack whose kernels it is priced by.
// A serving stack is the word `stack` of the kernel set; in training it is whose operators run.
#pragma once

#include <string>
#include <vector>

#include "schedules/scenario/scenario.hpp"

namespace moeline::habits {

// How tokens travel. REQUIRES, of these functions: the setup has its parallelism.

/// How tokens reach experts in prefill and decode, the best first. The first that the scenario may have is taken.
[[nodiscard]] std::vector<CommMode> inference_modes(const Setup& setup);
/// Which of Megatron's token dispatchers; DeepSeek's operators have DeepEP.
[[nodiscard]] CommMode training_mode(const Setup& setup);
/// The number format that tokens are dispatched in.
[[nodiscard]] Precision dispatch_format(CommMode mode, const Setup& setup);
/// Whether the mode's kernels send four bits on this machine: DeepEP's send no FP4.
[[nodiscard]] bool may_send_fp4(CommMode mode, const Setup& setup);
/// SMs that an all-to-all holds.
[[nodiscard]] int transfer_sms(CommMode mode, const Setup& setup);
/// As what DeepEP's second version hands tokens over.
[[nodiscard]] RowLayout row_layout(const Setup& setup);
/// SMs on which a combine runs while the GEMM before it does; 0: it waits for that GEMM.
[[nodiscard]] int released_sms(const Setup& setup);
/// How keys reach the ranks that share a prompt or a sequence.
[[nodiscard]] ContextMode context_mode(WorkloadPhase phase, bool has_windows);
/// Which queries of a prompt each rank of an attention group scores, where there is an indexer.
[[nodiscard]] IndexerQueries indexer_queries(const Setup& setup);
/// Whether its kernels have an all-reduce beside NCCL's.
[[nodiscard]] bool has_own_all_reduce(const Setup& setup);
/// Bytes of the largest message that the stack's own all-reduce takes; 0: it has none, or is not to run.
[[nodiscard]] double largest_custom_all_reduce(const Setup& setup);

// Which kernels run beside those of kernel_habits.hpp. REQUIRES: the setup has its comm and launch.

/// What it pads the weights of experts to that run as one fused layer.
[[nodiscard]] ExpertPadding expert_padding(const Setup& setup);
/// Which small kernels of a layer it runs apart, and which in one.
[[nodiscard]] SmallKernelHabits small_kernels(const Setup& setup);
/// Whether a step's shared experts run on a stream of their own where they can.
[[nodiscard]] bool runs_shared_beside(const Setup& setup);

// How a step is planned.

/// The overlap plan of the scenario's schedule; "": it has none.
[[nodiscard]] const std::string& overlap_plan(const Setup& setup);
[[nodiscard]] Launch launch(WorkloadPhase phase);
/// Of so many stages of prefill or decode, the first of those that have one layer more where layers do not divide.
[[nodiscard]] int first_longer_stage(const Setup& setup, int stages, int longer);

// What a CUDA graph of decode is captured for. REQUIRES: the setup has its parallelism, comm and launch.

/// Requests of an attention group for which the stack captures a step by default, ascending. Empty: whatever comes is
/// computed as it is.
[[nodiscard]] std::vector<int> captured_batches(const Setup& setup);
/// The least captured batch that holds so many requests; 0: they run without one, as many rows as there are.
[[nodiscard]] int graph_batch(const Setup& setup, int requests);
/// Whether rows that no request has choose experts, as tokens do.
[[nodiscard]] bool routes_padding(const Setup& setup);

// What a serving stack fills a GPU's memory with (memory_habits.cpp). REQUIRES: the setup has its parallelism and comm.

/// What its fraction of the memory is of.
enum class FractionOf {
  all,           ///< weights, activations, buffers and caches of all the memory
  static_parts,  ///< weights and caches; activations and buffers have the rest
  rest,          ///< caches, of what weights, activations and buffers leave
};
[[nodiscard]] FractionOf fraction_of(Stack stack);
/// The command-line option that sets it, "" where there is no stack.
[[nodiscard]] std::string fraction_option(Stack stack);
/// Where the scenario says nothing.
[[nodiscard]] double memory_fraction(const Setup& setup);
/// Tokens of prompts that an attention group computes in a step at most, and with vLLM of answers as well.
[[nodiscard]] int prefill_tokens(const Setup& setup, Stack scheduler);
/// Requests that an attention group runs at a time at most, where its cache holds so many tokens. No limit: kNoLimit.
inline constexpr int kNoLimit = 1 << 30;
[[nodiscard]] int most_running(const Setup& setup, double cached_tokens);
/// That it takes once when it starts, to measure what a step needs: caches do without, as much as steps take less.
[[nodiscard]] double start_bytes(const Setup& setup);
/// vLLM's, told to run so many requests.
[[nodiscard]] double vllm_start_bytes(const Architecture& model, int requests);

// How training runs, by operators.

[[nodiscard]] Recompute recompute(TrainingOperators operators);
[[nodiscard]] bool keeps_fp32_moments(TrainingOperators operators);

}  // namespace moeline::habits
