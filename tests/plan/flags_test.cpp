// The commands that deploy an answer: every number in the unit its program takes, and no flag that was not chosen.
#include "experiments/plan/flags.hpp"

#include <doctest/doctest.h>

#include <map>
#include <sstream>

#include "base/file.hpp"
#include "tests/plan/launched.hpp"

TEST_SUITE("plan/flags") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Deployment disaggregated() {
  Deployment d;
  d.prefill_choice = {
      .hardware = "h800", .unit = {.dp = 32, .ep = 32}, .redundant_experts = 32, .tokens = 8192, .comm_sms = 16};
  d.prefill_choice.schedule = "prefill-two-batch";
  d.decode_choice = {
      .hardware = "h800", .unit = {.dp = 144, .ep = 144}, .redundant_experts = 32, .batch_size = 96, .mtp = 1};
  d.prefill.units = 3;
  d.decode.units = 1;
  d.prefill.memory = d.decode.memory = launched_memory();
  return d;
}

Deployment colocated(int ep = 32) {
  Deployment d = disaggregated();
  d.colocated = true;
  d.prefill_choice.unit = d.decode_choice.unit = {.dp = ep, .ep = ep};
  if (ep == 1) {
    d.prefill_choice.mode = d.decode_choice.mode = CommMode::none;
    d.prefill_choice.comm_sms = 0;
  }
  d.prefill.units = d.decode.units = 2;
  return d;
}

// One node whose GPUs share attention and split the experts.
Deployment tensor_parallel() {
  Deployment d = colocated(1);
  d.prefill_choice.unit = d.decode_choice.unit = {.tp = 8, .ep = 8};
  d.prefill_choice.mode = d.decode_choice.mode = CommMode::all_reduce;
  return d;
}

// Flags and variables with what follows them, and how often each is there.
struct Parsed {
  std::map<std::string, std::string> value;
  std::map<std::string, int> count;

  [[nodiscard]] std::string operator[](const std::string& flag) const {
    const auto found = value.find(flag);
    return found == value.end() ? "absent" : found->second;
  }
};

Parsed parse(const std::string& command) {
  Parsed parsed;
  std::istringstream lines(command);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" \\")) line.resize(line.size() - 2);
    line.erase(0, line.find_first_not_of(' '));
    const std::size_t end = line.starts_with("--") ? line.find(' ') : line.find('=');
    parsed.value[line.substr(0, end)] = end == std::string::npos ? "" : line.substr(end + 1);
    ++parsed.count[line.substr(0, end)];
  }
  return parsed;
}

using Commands = std::vector<LaunchCommand> (*)(const Deployment&, const Plan&, const Architecture&, int);

Parsed server(Commands commands, const Deployment& d, const std::string& role, int gpus_per_node = 8) {
  for (const LaunchCommand& launch : commands(d, launched_plan(), load_architecture("deepseek-v3"), gpus_per_node)) {
    if (launch.role == role) return parse(launch.command);
  }
  FAIL("no server: ", role);
  return {};
}

std::vector<LaunchCommand> all(Commands commands, const Deployment& d) {
  return commands(d, launched_plan(), load_architecture("deepseek-v3"), 8);
}

}  // namespace

TEST_CASE("SGLang is told the tokens and requests of a whole unit, and the graphs of one rank") {
  const Parsed prefill = server(sglang_commands, disaggregated(), "prefill");
  CHECK(prefill["--chunked-prefill-size"] == "262144");  // 32 * 8192
  CHECK(prefill["--max-running-requests"] == "65536");   // 32 * 2048: where tokens are drafted it would run 48 in all
  const Parsed decode = server(sglang_commands, disaggregated(), "decode");
  CHECK(decode["--max-running-requests"] == "13824");  // 144 * 96
  CHECK(decode["--cuda-graph-max-bs"] == "96");
  CHECK(decode["--chunked-prefill-size"] == "absent");
}

TEST_CASE("vLLM is told the tokens and requests of one rank") {
  const Parsed prefill = server(vllm_commands, disaggregated(), "prefill");
  CHECK(prefill["--max-num-batched-tokens"] == "8192");
  CHECK(prefill["--max-num-seqs"] == "absent");
  const Parsed decode = server(vllm_commands, disaggregated(), "decode");
  CHECK(decode["--max-num-seqs"] == "96");
  CHECK(decode["--max-num-batched-tokens"] == "192");  // each request's newest token and its drafted one
}

TEST_CASE("buffers of DeepEP's low-latency mode hold a rank's requests and what they drafted") {
  const std::string variable = "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK";
  CHECK(server(sglang_commands, disaggregated(), "decode")[variable] == "192");
  CHECK(server(sglang_commands, disaggregated(), "prefill")[variable] == "absent");
}

TEST_CASE("every GPU of a unit is a rank of attention's data parallelism and of expert parallelism") {
  const Parsed sglang = server(sglang_commands, disaggregated(), "decode");
  CHECK(sglang["--tp-size"] == "144");
  CHECK(sglang["--dp-size"] == "144");
  CHECK(sglang["--ep-size"] == "144");
  const Parsed vllm = server(vllm_commands, disaggregated(), "decode");
  CHECK(vllm["--tensor-parallel-size"] == "1");
  CHECK(vllm["--data-parallel-size"] == "144");
  CHECK(vllm.value.contains("--enable-expert-parallel"));
}

TEST_CASE("a unit of several nodes is started on each of them, one of a single node without ranks of nodes") {
  CHECK(all(sglang_commands, disaggregated())[1].nodes == 18);
  CHECK(server(sglang_commands, disaggregated(), "decode")["--nnodes"] == "18");
  CHECK(server(vllm_commands, disaggregated(), "decode")["--data-parallel-size-local"] == "8");
  CHECK(server(vllm_commands, disaggregated(), "decode")["--data-parallel-start-rank"] == "$((NODE_RANK * 8))");
  CHECK(server(sglang_commands, colocated(8), "serve")["--nnodes"] == "absent");
  CHECK(server(vllm_commands, colocated(8), "serve")["--data-parallel-size-local"] == "absent");
  CHECK(server(sglang_commands, colocated(32), "serve", 72)["--nnodes"] == "absent");
}

TEST_CASE("a unit of one GPU has no all-to-all") {
  CHECK(server(sglang_commands, colocated(1), "serve")["--moe-a2a-backend"] == "absent");
  CHECK(server(vllm_commands, colocated(1), "serve")["--all2all-backend"] == "absent");
}

TEST_CASE("an attention group is told of as tensor parallel, with its requests and without data parallelism") {
  const Parsed sglang = server(sglang_commands, tensor_parallel(), "serve");
  CHECK(sglang["--tp-size"] == "8");
  CHECK(sglang["--ep-size"] == "8");
  CHECK(sglang["--dp-size"] == "absent");
  CHECK(sglang["--moe-a2a-backend"] == "absent");
  CHECK(sglang["--max-running-requests"] == "96");
  const Parsed vllm = server(vllm_commands, tensor_parallel(), "serve");
  CHECK(vllm["--tensor-parallel-size"] == "8");
  CHECK(vllm["--enable-expert-parallel"] == "");
  CHECK(vllm["--data-parallel-size"] == "absent");
  CHECK(vllm["--all2all-backend"] == "absent");
  const Parsed trtllm = server(trtllm_commands, tensor_parallel(), "serve");
  CHECK(trtllm["--tp_size"] == "8");
  CHECK(trtllm["--ep_size"] == "8");
  CHECK(trtllm["--max_batch_size"] == "96");
  CHECK(trtllm["--max_num_tokens"] == "8192");
}

TEST_CASE("SGLang is told to prefill in steps that decode, where the plan has that") {
  Deployment d = tensor_parallel();
  CHECK(server(sglang_commands, d, "serve")["--enable-mixed-chunk"] == "absent");
  d.mixed = true;
  // 8192 of prompts and 96 requests with a drafted token each
  CHECK(server(vllm_commands, d, "serve")["--max-num-batched-tokens"] == "8384");
  CHECK(server(sglang_commands, d, "serve")["--enable-mixed-chunk"] == "absent");  // it would be turned off by drafts
  CHECK(server(trtllm_commands, d, "serve")["--max_num_tokens"] == "8384");
  d.decode_choice.mtp = 0;
  CHECK(server(sglang_commands, d, "serve")["--enable-mixed-chunk"] == "");
  CHECK(server(sglang_commands, d, "serve")["--chunked-prefill-size"] == "8320");  // 8192 + 96, whole pages
}

TEST_CASE("experts that are split, not spread, need no flag") {
  Deployment d = tensor_parallel();
  d.prefill_choice.unit = d.decode_choice.unit = {.tp = 8, .moe_tp = 8};
  CHECK(server(sglang_commands, d, "serve")["--ep-size"] == "absent");
  CHECK(server(vllm_commands, d, "serve")["--enable-expert-parallel"] == "absent");
  CHECK(server(trtllm_commands, d, "serve")["--ep_size"] == "absent");
}

TEST_CASE("tokens that are gathered need no all-to-all backend of SGLang's, and vLLM's by that name") {
  Deployment d = colocated(8);
  d.prefill_choice.mode = d.decode_choice.mode = CommMode::all_gather;
  d.prefill_choice.comm_sms = 0;
  CHECK(server(sglang_commands, d, "serve")["--moe-a2a-backend"] == "absent");
  CHECK(server(sglang_commands, d, "serve")["--enable-dp-attention"] == "");
  CHECK(server(vllm_commands, d, "serve")["--all2all-backend"] == "allgather_reducescatter");
  CHECK(all(trtllm_commands, d).front().command.find("enable_attention_dp: true") != std::string::npos);
}

TEST_CASE("TensorRT-LLM's cache takes its share of what weights leave free") {
  // 72 GB fill 90 % of 80; 15 of the 35 that 45 of weights leave
  CHECK(server(trtllm_commands, colocated(), "serve")["--kv_cache_free_gpu_memory_fraction"] ==
        "0.652");  // 15 / (80 - 57)
}

TEST_CASE("prefill communicates in DeepEP's normal mode, decode in the low-latency one") {
  CHECK(server(sglang_commands, disaggregated(), "prefill")["--deepep-mode"] == "normal");
  CHECK(server(sglang_commands, disaggregated(), "decode")["--deepep-mode"] == "low_latency");
  CHECK(server(sglang_commands, colocated(), "serve")["--deepep-mode"] == "auto");
  CHECK(server(vllm_commands, disaggregated(), "prefill")["--all2all-backend"] == "deepep_high_throughput");
  CHECK(server(vllm_commands, disaggregated(), "decode")["--all2all-backend"] == "deepep_low_latency");
}

TEST_CASE("communication SMs are those of prefill") {
  CHECK(server(sglang_commands, disaggregated(), "prefill")["--deepep-config"] ==
        R"('{"normal_dispatch":{"num_sms":16},"normal_combine":{"num_sms":16}}')");
  CHECK(server(sglang_commands, disaggregated(), "decode")["--deepep-config"] == "absent");
  CHECK(server(vllm_commands, disaggregated(), "prefill")["VLLM_DBO_COMM_SMS"] == "16");
  CHECK(server(vllm_commands, disaggregated(), "decode")["VLLM_DBO_COMM_SMS"] == "absent");
}

TEST_CASE("vLLM communicates on at most 20 SMs, and on 20 without dual batch overlap, where the plan differs, a note") {
  Deployment d = disaggregated();
  const std::size_t as_chosen = all(vllm_commands, d).front().notes.size();
  d.prefill_choice.comm_sms = 24;
  CHECK(server(vllm_commands, d, "prefill")["VLLM_DBO_COMM_SMS"] == "20");
  CHECK(all(vllm_commands, d).front().notes.front() == "20 SMs communicate; the plan has 24");
  CHECK(all(vllm_commands, d).front().notes.size() == as_chosen + 1);
  d.prefill_choice.comm_sms = 16;
  d.prefill_choice.schedule = "sequential";
  CHECK(server(vllm_commands, d, "prefill")["VLLM_DBO_COMM_SMS"] == "absent");
  CHECK(all(vllm_commands, d).front().notes.front() == "20 SMs communicate; the plan has 16");
}

TEST_CASE("two batches overlap only where that was chosen") {
  CHECK(server(sglang_commands, disaggregated(), "prefill")["--enable-two-batch-overlap"] == "");
  CHECK(server(sglang_commands, disaggregated(), "decode")["--enable-two-batch-overlap"] == "absent");
  CHECK(server(vllm_commands, disaggregated(), "prefill")["--enable-dbo"] == "");
  CHECK(server(vllm_commands, disaggregated(), "decode")["--enable-dbo"] == "absent");
}

TEST_CASE("one batch overlaps with itself by SGLang's flag, and where there is none a note says so") {
  Deployment d = disaggregated();
  CHECK(server(sglang_commands, d, "decode")["--enable-single-batch-overlap"] == "absent");
  const std::size_t as_chosen = all(vllm_commands, d)[1].notes.size(),
                    of_sglang = all(sglang_commands, d)[1].notes.size();
  d.decode_choice.schedule = "single-batch";
  CHECK(server(sglang_commands, d, "decode")["--enable-single-batch-overlap"] == "");
  CHECK(all(sglang_commands, d)[1].notes.size() == of_sglang);
  CHECK(all(vllm_commands, d)[1].notes.size() == as_chosen + 1);
  d.decode_choice.schedule = "per-expert";
  CHECK(server(sglang_commands, d, "decode")["--enable-single-batch-overlap"] == "absent");
  CHECK(all(sglang_commands, d)[1].notes.size() == of_sglang + 1);
}

TEST_CASE("colocated, vLLM's thresholds keep the other kind of batch whole, and SGLang says that it cannot") {
  Deployment d = colocated();
  CHECK(server(vllm_commands, d, "serve")["--dbo-decode-token-threshold"] == "193");
  CHECK(server(vllm_commands, d, "serve")["--dbo-prefill-token-threshold"] == "absent");
  CHECK(all(sglang_commands, d).front().notes.size() == 1);
  d.decode_choice.schedule = "decode-two-batch";
  CHECK(server(vllm_commands, d, "serve")["--dbo-decode-token-threshold"] == "absent");
  CHECK(all(sglang_commands, d).front().notes.empty());
  d.prefill_choice.schedule = "sequential";
  CHECK(server(vllm_commands, d, "serve")["--dbo-prefill-token-threshold"] == "8193");
}

TEST_CASE("both sides are told of MTP, where tokens are drafted") {
  Deployment d = disaggregated();
  d.decode_choice.mtp = 2;
  for (const std::string role : {"prefill", "decode"}) {
    const Parsed sglang = server(sglang_commands, d, role);
    CHECK(sglang["--speculative-num-steps"] == "2");
    CHECK(sglang["--speculative-num-draft-tokens"] == "3");  // with the token they follow
    CHECK(server(vllm_commands, d, role)["--speculative-config"] == R"('{"method":"mtp","num_speculative_tokens":2}')");
  }
  d.decode_choice.mtp = 0;
  for (const std::string role : {"prefill", "decode"}) {
    CHECK(server(sglang_commands, d, role)["--speculative-algorithm"] == "absent");
    CHECK(server(vllm_commands, d, role)["--speculative-config"] == "absent");
  }
}

TEST_CASE("redundant experts are a unit's, and EPLB places them") {
  Deployment d = disaggregated();
  CHECK(server(sglang_commands, d, "prefill")["--ep-num-redundant-experts"] == "32");
  CHECK(server(sglang_commands, d, "prefill")["--enable-eplb"] == "");
  CHECK(server(vllm_commands, d, "prefill")["--enable-eplb"] == "");
  CHECK(server(vllm_commands, d, "prefill")["--eplb-config"] == R"('{"num_redundant_experts":32}')");
  d.prefill_choice.redundant_experts = 0;
  CHECK(server(sglang_commands, d, "prefill")["--enable-eplb"] == "absent");
  CHECK(server(vllm_commands, d, "prefill")["--enable-eplb"] == "absent");
}

TEST_CASE(
    "SGLang's static memory holds weights and KV cache, and leaves the reserve and what the plan has beside them") {
  CHECK(server(sglang_commands, disaggregated(), "decode")["--mem-fraction-static"] == "0.75");  // 60 / 80
  CHECK(server(vllm_commands, disaggregated(), "decode")["--gpu-memory-utilization"] == "0.9");  // 72 / 80
}

TEST_CASE("a colocated deployment is one server command, a disaggregated one has a server for each side") {
  CHECK(all(sglang_commands, colocated()).size() == 1);
  CHECK(all(vllm_commands, colocated()).size() == 1);
  CHECK(server(sglang_commands, colocated(), "serve")["--disaggregation-mode"] == "absent");
  CHECK(server(vllm_commands, colocated(), "serve")["--kv-transfer-config"] == "absent");
  const std::vector<LaunchCommand> commands = all(sglang_commands, disaggregated());
  REQUIRE(commands.size() == 3);
  CHECK(commands[0].units == 3);
  CHECK(commands[1].units == 1);
  CHECK(commands[2].role == "router");
  CHECK(server(sglang_commands, disaggregated(), "decode")["--disaggregation-mode"] == "decode");
  CHECK(server(vllm_commands, disaggregated(), "decode").value.contains("--kv-transfer-config"));
}

TEST_CASE("no flag is repeated") {
  for (const Commands commands : {sglang_commands, vllm_commands, trtllm_commands}) {
    for (const Deployment& d : {disaggregated(), colocated(), colocated(1), tensor_parallel()}) {
      for (const LaunchCommand& launch : all(commands, d)) {
        for (const auto& flag : parse(launch.command).count) CHECK_MESSAGE(flag.second == 1, flag.first);
      }
    }
  }
}

TEST_CASE("every model of the zoo is named as on Hugging Face") {
  for (const std::string& name : names_in("model/zoo")) {
    Plan plan = launched_plan();
    plan.model = name;
    const Parsed parsed = parse(sglang_commands(colocated(), plan, load_architecture(name), 8).front().command);
    CHECK_MESSAGE(parsed["--model-path"].find('/') != std::string::npos, name);
  }
  CHECK(server(sglang_commands, colocated(), "serve")["--model-path"] == "deepseek-ai/DeepSeek-V3");
}

TEST_CASE("a model of one's own is served from its folder, quoted for the shell, without one it has its name alone") {
  Plan plan = launched_plan();
  Architecture model = load_architecture("deepseek-v3");
  model.name = "mine";
  plan.model = "/models/mine's/config.json";
  CHECK(parse(sglang_commands(colocated(), plan, model, 8).front().command)["--model-path"] ==
        R"('/models/mine'\''s')");
  plan.model = "/models/mine.yaml";
  CHECK(parse(sglang_commands(colocated(), plan, model, 8).front().command)["--model-path"] == "mine");
}

}  // TEST_SUITE("plan/flags")
