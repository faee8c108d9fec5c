// The commands that start a deployment, in the words of three programs.
//
// SGLang: the flags are those of docs/advanced_features/server_arguments.md at commit 004813e. Main has since renamed
// --cuda-graph-max-bs to --cuda-graph-max-bs-decode, and still takes the old name. vLLM: those of
// vllm/config/parallel.py at commit 00193b8; --all2all-backend is in v0.12's documentation, earlier versions have the
// variable VLLM_ALL2ALL_BACKEND instead.
//
// TensorRT-LLM: trtllm-serve's of release 1.2 (docs/source/commands/trtllm-serve), and LLM API options as YAML.
//
// Of a whole unit, which SGLang divides among its attention groups: --chunked-prefill-size, --max-running-requests. Of
// an attention group: --cuda-graph-max-bs, --max-num-seqs, --max-num-batched-tokens, --max_batch_size,
// --max_num_tokens, the tokens of DeepEP's low-latency mode. Redundant experts are those of a unit in all.
//
// What has no counterpart: SGLang overlaps two batches in prefill and decode or in neither. vLLM has one all-to-all for
// a server's prefill and decode, and at most 20 communication SMs, which can be lowered with dual batch overlap only.
// Where a program refuses what the plan has, or does something else, a flag is left out or a note says so; the rules
// are in tests/plan/stack_rules.hpp. SGLang's chunks are rounded up to whole pages of 64 tokens.
//
// What a plan does not know is left at its default: page size, KV transfer's devices, EPLB's intervals.
#pragma once

#include <string>
#include <vector>

#include "architecture/architecture.hpp"
#include "experiments/plan/deployment.hpp"
#include "experiments/plan/plan.hpp"

namespace moeline {

struct LaunchCommand {
  std::string role;                ///< prefill, decode, serve (both) or router
  int units = 1;                   ///< that are started like this
  int nodes = 1;                   ///< of each unit, on each of which the command runs
  std::string command;             ///< for a POSIX shell; $HEAD_IP, $NODE_IP, $NODE_RANK and the like are to be set
  std::vector<std::string> notes;  ///< what the command cannot say
};

/// REQUIRES: the memory of the deployment's sides. A model of the zoo is named as on Hugging Face, any other by its
/// path.
[[nodiscard]] std::vector<LaunchCommand> sglang_commands(const Deployment& deployment, const Plan& plan,
                                                         const Architecture& model, int gpus_per_node);
[[nodiscard]] std::vector<LaunchCommand> vllm_commands(const Deployment& deployment, const Plan& plan,
                                                       const Architecture& model, int gpus_per_node);

[[nodiscard]] std::vector<LaunchCommand> trtllm_commands(const Deployment& deployment, const Plan& plan,
                                                         const Architecture& model, int gpus_per_node);

}  // namespace moeline
