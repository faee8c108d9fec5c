#include "experiments/serve/schedulers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/serve/serve_keys.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

constexpr const char* kTokensSource =
    "chunked_prefill_size, over attention groups (SGLang); max_num_batched_tokens (vLLM); max_num_tokens "
    "(TensorRT-LLM)";

std::vector<SchedulerDefault> sglang(bool drafts) {
  return {{"prompts", drafts ? "first" : "first_by_rank",
           "get_next_batch_to_run of each rank, srt/managers/scheduler.py; with drafts the others stand idle"},
          {"kv_room", "share", "PrefillAdder.add_one_req, srt/managers/schedule_policy.py"},
          {"router", "ranks_in_turn", "round_robin_scheduler, srt/managers/data_parallel_controller.py"}};
}

// Running requests first, and the last that came is preempted.
std::vector<SchedulerDefault> vllm() {
  return {{"prompts", "mixed", "Scheduler.schedule, vllm/v1/core/sched/scheduler.py"},
          {"kv_room", "prompt", "allocate_slots and preemption, vllm/v1/core/sched/scheduler.py"},
          {"router", "least_loaded", "DPLBAsyncMPClient.get_core_engine_for_request, vllm/v1/engine/core_client.py"}};
}

std::vector<SchedulerDefault> trtllm() {
  return {{"prompts", "mixed", "BindMicroBatchScheduler, tensorrt_llm/_torch/pyexecutor/scheduler.py"},
          {"kv_room", "whole", "capacity_scheduler_policy GUARANTEED_NO_EVICT, llmapi/llm_args.py"},
          {"router", "least_loaded", "_balance_requests_across_ranks, tensorrt_llm/_torch/pyexecutor/py_executor.py"}};
}

// Where prompts are computed apart, no step has both, and requests are routed by a program of its own.
std::vector<SchedulerDefault> rules_of_answers(Stack stack) {
  if (stack == Stack::sglang) {
    return {{"kv_room", "reserve", "DecodePreallocQueue.resume_retracted_reqs, srt/disaggregation/decode.py"}};
  }
  std::vector<SchedulerDefault> rules = stack == Stack::vllm     ? vllm()
                                        : stack == Stack::trtllm ? trtllm()
                                                                 : std::vector<SchedulerDefault>{};
  std::erase_if(rules, [](const SchedulerDefault& each) { return each.key != "kv_room"; });
  return rules;
}

std::vector<SchedulerDefault> rules_of(const ServeWorkload& w) {
  if (w.prefill.replicas > 0) return rules_of_answers(w.scheduler);
  if (w.scheduler == Stack::sglang) return sglang(w.query_len > 1);
  if (w.scheduler == Stack::vllm) return vllm();
  return w.scheduler == Stack::trtllm ? trtllm() : std::vector<SchedulerDefault>{};
}

}  // namespace

Stack scheduler_of(const Setup& setup) {
  const Stack stack = setup.kernels().stack;
  return stack == Stack::megatron ? Stack::none : stack;
}

std::vector<SchedulerDefault> scheduler_defaults(const ServeWorkload& workload, const Setup& setup) {
  std::vector<SchedulerDefault> all = rules_of(workload);
  if (workload.scheduler == Stack::none) return all;
  const auto least = static_cast<int>(keys::serve().at("tokens").type.least);
  const int tokens = std::max(least, habits::prefill_tokens(setup, workload.scheduler));
  all.push_back({"tokens", std::to_string(tokens), kTokensSource});
  return all;
}

void take(const SchedulerDefault& each, ServeWorkload& workload) {
  const Spec spec = Spec::parse("scheduler", fmt::format("{{{}: {}}}", each.key, each.value));
  keys::serve().read(spec, each.key.c_str(), workload);
}

ServeWorkload with_defaults(ServeWorkload workload, const Setup& setup) {
  for (const SchedulerDefault& each : scheduler_defaults(workload, setup)) take(each, workload);
  return workload;
}

ServeWorkload by_its_stack(ServeWorkload workload, const Setup& setup) {
  workload.scheduler = scheduler_of(setup);
  return with_defaults(std::move(workload), setup);
}

// SGLANG_INIT_NEW_TOKEN_RATIO, SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR and SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS
// (srt/environ.py); _handle_data_parallelism multiplies schedule_conservativeness by 0.3 (srt/server_args.py).
NewTokenRatio new_token_ratio(double conservativeness, int attention_groups) {
  constexpr double kFirst = 0.7, kLeast = 0.14, kSteps = 600, kAmongGroups = 0.3;
  const double first = std::min(1.0, kFirst * conservativeness * (attention_groups > 1 ? kAmongGroups : 1));
  return {first, first * kLeast, first * (1 - kLeast) / kSteps};
}

// ScheduleBatch.retract_decode (srt/managers/schedule_batch.py), with SGLANG_RETRACT_DECODE_STEPS.
double ratio_after_retraction(double written, double requests, double most) {
  constexpr double kSteps = 20;
  return std::min(1.0, (written + kSteps * requests) / (most + 1));
}

}  // namespace moeline
