// What carries tokens to the ranks of their experts and brings results back, one description each: what it does with
// tokens, where it works, its kernels, buffers and names. Scenarios, kernel lists, memory, OPs and launch commands read
// it, so that another library is a file of kernels and a row in dispatcher.cpp.
#pragma once

#include <string>
#include <vector>

#include "moe/all_to_all.hpp"
#include "moe/comm_mode.hpp"

namespace moeline {

/// How what was sent lies at the rank of its experts.
enum class Arrival {
  gathered,  ///< as the tokens of all: a stack runs its experts as one body of kernels
  tokens,    ///< once for each rank: copied to a row for each expert, and summed again behind them
  rows,      ///< as tokens, or where a scenario says so as a row for each expert, sorted
  slabs,     ///< in a buffer for each expert, as its GEMMs take them
};

/// What an all-to-all's buffers are sized by.
struct BufferWork {
  double hidden = 0;
  double tokens = 0;  ///< the most that a rank sends at once
  int top_k = 0;
  double local_experts = 0;
  int ep = 1;
  int gpus_per_node = 8;
  int sms = 0;
  Precision dispatch = Precision::fp8;
  Topology topology = Topology::hybrid;
};

using TransferKernels = std::vector<Operator> (*)(const AllToAllWork&);
using BufferBytes = double (*)(const BufferWork&);

struct Dispatcher {
  CommMode mode = CommMode::none;
  std::string word;  ///< of comm.mode, and of OPs

  bool serves = false;            ///< in prefill and decode
  bool trains = false;            ///< in Megatron's steps
  bool sends_tokens = true;       ///< tokens leave their rank by kernels of their own, before the experts
  bool brings_results = true;     ///< results come back by kernels of their own
  bool by_rank = false;           ///< a token goes once to each rank that has its experts
  bool has_sms = false;           ///< a scenario says how many SMs it holds
  bool staged = false;            ///< kernels issue and receive, and between them the wire holds no SM
  bool has_layouts = false;       ///< a scenario says how it goes between nodes, and what it hands over (RowLayout)
  bool of_deep_ep = false;        ///< its buffers are DeepEP's, which a server holds back memory for
  bool from_hopper_on = false;    ///< its kernels need the SMs' copy engines (TMA), which came with FP8's tensor cores
  bool in_domain = false;         ///< one NVLink domain has all ranks
  bool gathers_choices = false;   ///< ranks tell each other their tokens' experts before the first transfer of a layer
  bool casts_on_the_way = false;  ///< takes tokens in BF16, and sends them in FP8
  Arrival arrival = Arrival::gathered;
  int most_ranks = 0, most_nodes = 0;  ///< that it works for; 0: any number

  // Kernels, in launch order; null where collectives do it (moe/tensor_parallel.hpp, moe/megatron_kernels.hpp).
  TransferKernels dispatch = nullptr, combine = nullptr;
  TransferKernels dispatch_gradients = nullptr;  ///< of results, out again by the layout of the forward pass
  TransferKernels combine_gradients = nullptr;   ///< of tokens, summed up on their way back
  TransferKernels asked_dispatch = nullptr, asked_combine = nullptr;  ///< what an OP of its name prices; null: no OP
  BufferBytes buffers = nullptr;                                      ///< bytes on each GPU; null: none

  // Of OPs.
  int usual_tokens = 4096;
  std::vector<std::string> sends_in{}, returns_in{};  ///< number formats, the usual one first

  // What stacks call it; "": they do not have it.
  std::string sglang{}, vllm{}, megatron{};  ///< SGLang's --moe-a2a-backend, vLLM's --all2all-backend, Megatron's flags
};

[[nodiscard]] const Dispatcher& dispatcher_of(CommMode mode);
/// In the order of CommMode.
[[nodiscard]] const std::vector<Dispatcher>& dispatchers();
/// Those of which `has` is true.
[[nodiscard]] std::vector<CommMode> modes_that(bool (*has)(const Dispatcher&));

// Short for what is asked often.
[[nodiscard]] inline bool brings_results(CommMode mode) { return dispatcher_of(mode).brings_results; }
[[nodiscard]] inline bool sends_tokens(CommMode mode) { return dispatcher_of(mode).sends_tokens; }

}  // namespace moeline
