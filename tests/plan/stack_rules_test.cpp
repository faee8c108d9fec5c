// The printed commands against the rules of the programs that they are for.
#include "tests/plan/stack_rules.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "experiments/plan/flags.hpp"
#include "experiments/plan/solve.hpp"
#include "tests/plan/launched.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("plan/stack_rules") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct RuledStack {
  const char* name;
  const std::vector<StackRule>& rules;
  std::vector<LaunchCommand> (*commands)(const Deployment&, const Plan&, const Architecture&, int);
};

const std::vector<RuledStack>& ruled_stacks() {
  static const std::vector<RuledStack> kStacks = {{"SGLang", sglang_rules(), sglang_commands},
                                                  {"vLLM", vllm_rules(), vllm_commands},
                                                  {"TensorRT-LLM", trtllm_rules(), trtllm_commands}};
  return kStacks;
}

void check_obeyed(const Deployment& d, const Plan& plan, const Architecture& model, bool blackwell) {
  const StackFacts facts = facts_of(model, blackwell, d.gpus_per_node);
  for (const RuledStack& stack : ruled_stacks()) {
    CAPTURE(stack.name);
    for (const LaunchCommand& launch : stack.commands(d, plan, model, d.gpus_per_node)) {
      if (launch.role == "router") continue;
      CAPTURE(launch.command);
      const ReadCommand command = read_command(launch.command, launch.notes);
      for (const StackRule& rule : stack.rules) CHECK_MESSAGE(!rule.breaks(command, facts), std::string(rule.says));
    }
  }
}

struct RuledPlan {
  const char *model, *hardware, *serving, *prefill, *decode;
};

// Each way to serve, with and without what the rules are about: copies of experts, drafts, two batches, mixed steps,
// other dispatchers.
const std::vector<RuledPlan>& ruled_plans() {
  static const std::vector<RuledPlan> kPlans = {
      {"deepseek-v3", "h800", "disaggregated", "ep: [32], tokens: [4096]", "ep: [32], batch_size: [32], mtp: [0, 1]"},
      {"deepseek-v3", "h800", "disaggregated", "ep: [16], tokens: [1000]", "ep: [144], batch_size: [64]"},
      {"deepseek-v3", "h200", "disaggregated", "ep: [64], tokens: [2048]", "ep: [64], batch_size: [128], mtp: [2]"},
      {"deepseek-v3", "b200", "disaggregated", "ep: [8, 16], tokens: [4096]", "ep: [16], batch_size: [96], mtp: [1]"},
      {"deepseek-v3", "b200", "colocated", "ep: [16], tokens: [4096]", "ep: [16], batch_size: [50], mtp: [0, 1]"},
      {"deepseek-v3", "h200", "colocated", "ep: [16], tokens: [2048]", "ep: [16], batch_size: [32], mtp: [1]"},
      {"deepseek-v3", "h200", "colocated", "ep: [8], tp: [8], tokens: [4096]", "ep: [8], tp: [8], batch_size: [16]"},
      {"deepseek-v3", "h200", "disaggregated", "ep: [16], tokens: [4096], set: [comm.mode=deepep_v2]",
       "ep: [16], batch_size: [32], mtp: [1], set: [comm.mode=deepep_v2]"},
      {"deepseek-v3", "b200", "disaggregated", "ep: [8], tokens: [4096], set: [comm.mode=nvlink]",
       "ep: [8], batch_size: [64]"},
      {"deepseek-v3", "gb200-nvl72", "disaggregated", "ep: [72], tokens: [4096]", "ep: [72], batch_size: [64]"},
      {"kimi-k2", "b200", "disaggregated", "ep: [32], tokens: [8192]", "ep: [32], batch_size: [64]"},
      {"kimi-k2", "h200", "colocated", "ep: [32], tokens: [4096]", "ep: [32], batch_size: [32]"},
      {"qwen3-235b-a22b", "h100", "disaggregated", "ep: [8, 16], tokens: [4096]", "ep: [16], batch_size: [48]"},
      {"qwen3-235b-a22b", "b200", "colocated", "ep: [8], tokens: [4096]", "ep: [8], batch_size: [100]"},
      {"qwen3-235b-a22b", "h100", "colocated", "ep: [16], tokens: [2048], set: [comm.mode=all_gather]",
       "ep: [16], batch_size: [32]"},
      {"gpt-oss-120b", "h100", "colocated", "ep: [4], tokens: [2048]", "ep: [4], batch_size: [32]"},
      {"gpt-oss-120b", "b200", "disaggregated", "ep: [2], tp: [1, 2], tokens: [4096]",
       "ep: [2], tp: [1, 2], batch_size: [64]"},
      {"gpt-oss-120b", "h100", "disaggregated", "ep: [1], tokens: [4096]",
       "ep: [8], batch_size: [64], redundant_experts: [8]"},
      {"mixtral-8x7b", "h100", "colocated", "ep: [8], tokens: [2048]", "ep: [8], batch_size: [16, 64]"},
      {"mixtral-8x7b", "h200", "disaggregated", "ep: [2], tp: [2], tokens: [4096]",
       "ep: [4], tp: [4], batch_size: [32]"},
      {"llama-4-maverick", "b200", "disaggregated", "ep: [8], tokens: [4096]", "ep: [8], batch_size: [64]"},
      {"llama-4-maverick", "h200", "colocated", "ep: [16], tokens: [2048]", "ep: [16], batch_size: [32]"},
  };
  return kPlans;
}

std::string text_of(const RuledPlan& each) {
  return fmt::format(
      "schema: 1\nmodel: {}\nhardware: {{{}: {{}}}}\n"
      "traffic: {{requests_per_s: 5, input: {{mean: 1000, spread: 300}}, output: {{mean: 200, spread: 100}}}}\n"
      "limits: {{ttft_ms: 30000, tpot_ms: 500}}\nserving: [{}]\n"
      "prefill: {{comm_sms: [16], {}}}\ndecode: {{{}}}\n",
      each.model, each.hardware, each.serving, each.prefill, each.decode);
}

// With copies, drafts and several nodes, as no search of a plan has them so soon.
Deployment large(int ep, int batch_size, int mtp) {
  Deployment d;
  d.gpus_per_node = 8;
  const int copies = (ep - 256 % ep) % ep;
  d.prefill_choice = {
      .hardware = "h800", .unit = {.dp = ep, .ep = ep}, .redundant_experts = copies, .tokens = 4096, .comm_sms = 16};
  d.decode_choice = {.hardware = "h800",
                     .unit = {.dp = ep, .ep = ep},
                     .redundant_experts = copies,
                     .batch_size = batch_size,
                     .mtp = mtp};
  d.prefill.units = d.decode.units = 1;
  d.prefill.memory = d.decode.memory = launched_memory();
  return d;
}

}  // namespace

TEST_CASE("every rule is broken by a command") {
  StackFacts without_mtp{.model_type = "mixtral", .experts = 8, .heads = 32, .mtp = 0};
  for (const RuledStack& stack : ruled_stacks()) {
    for (const StackRule& rule : stack.rules) {
      CAPTURE(stack.name);
      CAPTURE(rule.says);
      if (rule.broken_by != nullptr) CHECK(rule.breaks(read_command(rule.broken_by), {}));
      CHECK(std::string(rule.source).find(':') != std::string::npos);
    }
  }
  const ReadCommand second_version = read_command("--moe-a2a-backend deepep_v2");
  const ReadCommand drafting = read_command(R"(--speculative-config '{"method":"mtp","num_speculative_tokens":1}')");
  const auto broken = [&](const std::vector<StackRule>& rules, const ReadCommand& command, const StackFacts& facts) {
    return std::count_if(rules.begin(), rules.end(), [&](const StackRule& rule) {
      return rule.broken_by == nullptr && rule.breaks(command, facts);
    });
  };
  CHECK(broken(sglang_rules(), second_version, without_mtp) == 1);
  CHECK(broken(sglang_rules(), second_version, {}) == 0);
  CHECK(broken(vllm_rules(), drafting, without_mtp) == 1);
  CHECK(broken(vllm_rules(), drafting, {}) == 0);
}

TEST_CASE("a note of ours keeps a rule that the command alone would break") {
  const std::string mixed = "--tp-size 8 --enable-mixed-chunk --speculative-algorithm EAGLE --max-running-requests 64";
  const auto broken = [&](const ReadCommand& command) {
    return std::count_if(sglang_rules().begin(), sglang_rules().end(), [&](const StackRule& rule) {
      return rule.effect == Effect::changed && rule.breaks(command, {});
    });
  };
  const auto without = broken(read_command(mixed));
  CHECK(broken(read_command(mixed, {"prompts and answers take turns where tokens are drafted"})) == without - 1);
}

TEST_CASE("commands of the deployments that small plans find obey the rules of their programs" *
          doctest::skip(kSanitized)) {
  KnownSteps known;
  const TemporaryFolder folder;
  std::size_t deployments = 0;
  for (const RuledPlan& each : ruled_plans()) {
    const std::string text = text_of(each);
    CAPTURE(text);
    const Plan plan = load_plan(folder.write("plan.yaml", text));
    const Architecture model = load_architecture(plan.model);
    const Answer answer = solve(plan, known, 2);
    const std::string why = answer.impossible.empty() ? "" : answer.impossible.front().why;
    CHECK_MESSAGE(!answer.deployments.empty(), why);
    const bool blackwell = std::string(each.hardware).find("b200") != std::string::npos;
    for (const Deployment& d : answer.deployments) check_obeyed(d, plan, model, blackwell);
    deployments += answer.deployments.size();
  }
  CHECK(deployments > ruled_plans().size());
}

TEST_CASE("units of many nodes, large batches and drafts, and other dispatchers obey them as well") {
  const Architecture model = load_architecture("deepseek-v3");
  const Plan plan = launched_plan();
  for (const int ep : {8, 64, 144}) {
    for (const int batch_size : {8, 600, 1200}) {
      for (const int mtp : {0, 1, 2}) {
        Deployment d = large(ep, batch_size, mtp);
        for (const CommMode mode :
             {CommMode::normal, CommMode::deepep_v2, CommMode::all_gather, CommMode::nvlink, CommMode::pplx}) {
          d.prefill_choice.mode = mode;
          d.decode_choice.mode = mode == CommMode::normal ? CommMode::low_latency : mode;
          for (const char* schedule : {"sequential", "decode-two-batch", "single-batch"}) {
            d.decode_choice.schedule = schedule;
            d.prefill_choice.schedule = is_two_batch(schedule) ? "prefill-two-batch" : "sequential";
            for (const bool mixed : {false, true}) {
              d.colocated = d.mixed = mixed;
              check_obeyed(d, plan, model, true);
            }
          }
        }
      }
    }
  }
}

}  // TEST_SUITE("plan/stack_rules")
