// A step of decode computes the rows that its CUDA graph was captured for.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/run_metrics.hpp"
#include "moe/module_names.hpp"
#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/stack_habits.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/graph_batch") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr const char* kStep =
    "{schema: 1, model: deepseek-v3, hardware: h200, kernels: sglang, schedule: sequential, parallelism: {tp: 8},"
    " layers: 4, routing: {distribution: exact}, workload: {phase: decode, batch_size: 9, kv_len: 4096}}";

Setup step(const std::vector<std::string>& changes = {}) {
  return read_setup(Spec::parse("step.yaml", kStep), changes);
}

Setup step_of(int requests, std::vector<std::string> changes = {}) {
  changes.push_back(fmt::format("workload.batch_size={}", requests));
  return step(changes);
}

int graph_batch(const Setup& setup) { return decode_of(setup.scenario.workload)->graph_batch; }

struct Padded {
  int requests, rows;
};

void check_rows(const std::vector<Padded>& expected, const std::vector<std::string>& changes = {}) {
  CAPTURE(joined(changes));
  for (const Padded& each : expected) {
    CAPTURE(each.requests);
    CHECK(graph_batch(step_of(each.requests, changes)) == each.rows);
  }
}

double span_us(const Run& run) { return to_us(run.metrics.span); }

// Whose rows are those of the requests, however many a graph has.
bool goes_by_requests(const Operator& op) {
  return op.module == module_names::kCore || op.module == module_names::kSampling;
}

keys::Value resolved_graph_batch(const Setup& setup) {
  for (const keys::Entry& entry : keys::decode().resolved(*decode_of(setup.scenario.workload))) {
    if (entry.name == "graph_batch") return entry.value;
  }
  return {};
}

// A copy of a machine whose kernels of SGLang are said to be vLLM's.
std::string machine_of_vllm(const TemporaryFolder& folder) {
  const std::string profile = content_of(source("hwprofiles/h200.yaml"));
  return folder.write("vllm.yaml", replaced(profile, "stack: sglang", "stack: vllm"));
}

}  // namespace

TEST_CASE("SGLang captures 1, 2, 4, 8, 12, 16, by 8 and by 16, and runs larger batches as they are") {
  check_rows({{1, 1}, {3, 4}, {9, 12}, {13, 16}, {17, 24}, {256, 256}, {257, 272}, {497, 512}, {513, 0}});
  check_rows({{256, 256}, {257, 0}}, {"parallelism={tp: 2}"});
}

TEST_CASE("SGLang captures more batches where tokens are drafted") {
  check_rows({{9, 10}, {33, 40}, {65, 72}, {500, 512}}, {"workload.query_len=2"});
}

TEST_CASE("SGLang captures what two micro-batches, and ranks that send their part of the tokens, share equally") {
  check_rows({{3, 4}, {9, 12}}, {"parallelism={ep: 8}", "schedule=decode-two-batch"});
  check_rows({{1, 4}, {9, 12}, {17, 24}}, {"parallelism={tp: 4, dp: 2, ep: 8}"});
}

TEST_CASE("vLLM captures tokens by 8, and by 16 from 256 on") {
  const TemporaryFolder folder;
  const std::string machine = "hardware=" + machine_of_vllm(folder);
  check_rows({{3, 4}, {9, 16}, {249, 256}, {257, 272}, {513, 0}}, {machine});
  check_rows({{3, 4}, {5, 8}, {200, 200}}, {machine, "workload.query_len=2"});
}

TEST_CASE("no batch is padded by kernels of TensorRT-LLM and of DeepSeek, with a host, or beside prompts") {
  check_rows({{9, 0}}, {"kernels=trtllm"});
  check_rows({{9, 0}}, {"hardware=h800", "kernels=deepseek-2025-02", "parallelism={ep: 32}"});
  check_rows({{9, 0}}, {"launch=stream"});
  check_rows({{9, 12}}, {"launch=none"});
  const Setup mixed = step({"workload={phase: mixed, batch_size: 9, kv_len: 4096, tokens: 512, prompt_len: 512}"});
  CHECK(graph_batch(mixed) == 0);
  CHECK(mixed.inference_work({}).tokens() == 521);
}

TEST_CASE("9 requests on one of eight ranks make all eight compute 16") {
  const TemporaryFolder folder;
  Setup setup = step({"hardware=" + machine_of_vllm(folder), "parallelism={ep: 8}", "ranks=all",
                      "workload.batch_size=2", "workload.batch_size_spread=1"});
  setup.variation.requests = {1, 1, 9, 1, 1, 1, 1, 1};
  auto& decode = std::get<DecodeWorkload>(setup.scenario.workload);
  decode.graph_batch = habits::graph_batch(setup, setup.most_requests());
  CHECK(decode.graph_batch == 16);
  for (int rank = 0; rank < 8; ++rank) {
    const InferenceWork work = setup.inference_work({}, 0, rank);
    CHECK(work.tokens() == 16);
    CHECK(work.decode.requests == setup.variation.requests[static_cast<std::size_t>(rank)]);
  }
}

TEST_CASE("where the ranks' requests differ, the fullest one's decide for all of each draw") {
  for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {
    const Setup setup = step({"parallelism={ep: 8}", "workload.batch_size=40", "workload.batch_size_spread=8", seed});
    const int most = *std::max_element(setup.variation.requests.begin(), setup.variation.requests.end());
    CHECK(most > 40);
    CHECK(graph_batch(setup) == habits::graph_batch(setup, most));
    CHECK(setup.inference_work({}, 0, 0).tokens() == graph_batch(setup));
    CHECK(setup.inference_work({}, 0, 7).tokens() == graph_batch(setup));
    CHECK(resolved_graph_batch(setup) == keys::Value("auto"));
  }
}

TEST_CASE("9 requests cost what 12 cost, but for the core of attention and sampling, where padding is routed") {
  const Run padded = run_scenario(step_of(9, {"layers=all"}));
  const Run nine = run_scenario(step_of(9, {"layers=all", "workload.graph_batch=exact"}));
  const Run twelve = run_scenario(step_of(12, {"layers=all"}));
  CHECK(graph_batch(padded.setup) == 12);
  REQUIRE(padded.program.kernels.size() == twelve.program.kernels.size());
  int cores = 0;
  for (std::size_t i = 0; i < padded.program.kernels.size(); ++i) {
    const KernelWork& each = padded.program.kernels[i];
    CAPTURE(each.op.name);
    const Run& as = goes_by_requests(each.op) ? nine : twelve;
    cores += goes_by_requests(each.op) ? 1 : 0;
    CHECK(each.solo_us == as.program.kernels[i].solo_us);
  }
  CHECK(cores > 0);
  CHECK(span_us(nine) < span_us(padded));
  CHECK(span_us(padded) < span_us(twelve));
}

TEST_CASE("before DeepEP rows of no request are masked: they reach no expert, and nothing is sent for them") {
  const std::vector<std::string> deep_ep = {"parallelism={ep: 8}", "comm.mode=low_latency"};
  const InferenceWork padded = step_of(9, deep_ep).inference_work({});
  const InferenceWork twelve = step_of(12, deep_ep).inference_work({});
  CHECK(padded.tokens() == 12);
  CHECK(padded.load.valid == doctest::Approx(twelve.load.valid * 9 / 12));
  CHECK(padded.all_to_all().tokens == 9);
  CHECK(twelve.all_to_all().tokens == 12);
  CHECK(padded.own_tokens() == 12);
}

TEST_CASE("a batch that is captured costs what it costs without a graph of its own, and so does exact") {
  const Run sixteen = run_scenario(step_of(16));
  CHECK(graph_batch(sixteen.setup) == 16);
  CHECK(span_us(run_scenario(step_of(16, {"workload.graph_batch=exact"}))) == span_us(sixteen));
  CHECK(span_us(run_scenario(step_of(9, {"workload.graph_batch=16"}))) <= span_us(sixteen));
  CHECK(span_us(run_scenario(step_of(9, {"workload.graph_batch=9"}))) ==
        span_us(run_scenario(step_of(9, {"workload.graph_batch=exact"}))));
}

TEST_CASE("tokens per second, memory and FLOPs are those of the requests") {
  const std::vector<std::string> whole = {"layers=all", "workload.query_len=2"};
  const Run padded = run_scenario(step_of(9, whole));
  const Run exact = run_scenario(step_of(9, {whole[0], whole[1], "workload.graph_batch=exact"}));
  CHECK(graph_batch(padded.setup) == 10);
  CHECK(padded.setup.inference_work({}).tokens() == 20);
  CHECK(memory_bytes(padded) == memory_bytes(exact));
  CHECK(tokens_per_s(padded) * span_us(padded) == doctest::Approx(tokens_per_s(exact) * span_us(exact)));
  CHECK(padded.program.model_flops == doctest::Approx(exact.program.model_flops));
  double padded_flops = 0, exact_flops = 0;
  for (const KernelWork& each : padded.program.kernels) padded_flops += each.flops;
  for (const KernelWork& each : exact.program.kernels) exact_flops += each.flops;
  CHECK(padded_flops == doctest::Approx(exact_flops));
}

TEST_CASE("two micro-batches split the rows as they split requests") {
  const Setup setup = step_of(9, {"parallelism={ep: 8}", "schedule=decode-two-batch"});
  CHECK(graph_batch(setup) == 12);
  for (const int half : {0, 1}) {
    const InferenceWork work = setup.inference_work({half, 2});
    CHECK(work.tokens() == 6);
    CHECK(work.decode.requests == (half == 0 ? 5 : 4));
  }
}

TEST_CASE("on a pipeline each micro-batch has the batch of the fullest") {
  const Setup setup = step_of(21, {"parallelism={tp: 4, pp: 2}"});
  CHECK(graph_batch(setup) == 24);
  for (const int number : {0, 1}) CHECK(setup.inference_work({number, 2}).tokens() == 12);
  CHECK(graph_batch(step_of(9, {"parallelism={tp: 4, pp: 2}"})) == 16);  // 5 and 4
}

TEST_CASE("a pipeline's layers take what its micro-batches take one after the other, with the rows of a micro-batch") {
  const double alone = layer_us(run_scenario(step_of(11, {"parallelism={tp: 4}", "clock=burst"})));
  const double of_two = layer_us(run_scenario(step_of(21, {"parallelism={tp: 4, pp: 2}", "clock=burst"})));
  CHECK(of_two == doctest::Approx(2 * alone));
}

TEST_CASE("a resolved scenario has the number, or exact, and they give the same step") {
  CHECK(resolved_graph_batch(step_of(9)) == keys::Value(12));
  CHECK(resolved_graph_batch(step_of(600)) == keys::Value("exact"));
  CHECK(resolved_graph_batch(step_of(9, {"kernels=trtllm"})) == keys::Value("exact"));
  CHECK(span_us(run_scenario(step_of(9, {"workload.graph_batch=12"}))) == span_us(run_scenario(step_of(9))));
}

TEST_CASE("simulate says how many rows run, and why") {
  const auto told = [](const Setup& setup) {
    for (const std::string& warning : run_scenario(setup).warnings) {
      if (warning.starts_with("decode steps run")) return warning;
    }
    return std::string();
  };
  CHECK(told(step_of(9)) == "decode steps run 12 rows for 9 requests: SGLang captures 1, 2, 4, 8, 12, 16, ...");
  CHECK(told(step_of(70)) ==
        "decode steps run 72 rows for 70 requests: SGLang captures 1, 2, 4, ..., 56, 64, 72, 80, ...");
  CHECK(told(step_of(9, {"workload.graph_batch=20"})) ==
        "decode steps run 20 rows for 9 requests: workload.graph_batch says so");
  CHECK(told(step_of(9, {"workload.query_len=2"})) ==
        "decode steps run 10 x 2 rows for 9 requests: SGLang captures 1, 2, 3, ..., 7, 8, 10, 12, ...");
  CHECK(told(step_of(9, {"parallelism={tp: 4, pp: 2}"})) ==
        "decode steps run 16 rows for 9 requests: SGLang captures 1, 2, 4, 8, 12, ... for each of 2 micro-batches");
  CHECK(told(step_of(16)).empty());
  CHECK(told(step_of(9, {"workload.graph_batch=exact"})).empty());
}

TEST_CASE("a batch that does not hold the requests, or of a step without a graph, is refused by the key") {
  const TemporaryFolder folder;
  const std::string file = folder.write("step.yaml", kStep);
  const auto refused = [&](const std::vector<std::string>& changes, const char* says) {
    Arguments call = {"simulate", file};
    for (const std::string& change : changes) call.insert(call.end(), {"--set", change});
    check_refused(call, "--set: workload.graph_batch ", says);
  };
  refused({"workload.graph_batch=8"}, "must be at least 9, the requests of the fullest attention group, not 8");
  refused({"workload.graph_batch=0"}, "must be from 1 to 1048576, not 0");
  refused({"workload.graph_batch=often"}, "there is: auto, exact");
  refused({"launch=stream", "workload.graph_batch=16"}, "does not apply with launch: stream");
  refused({"workload={phase: mixed, batch_size: 9, kv_len: 64, tokens: 64, prompt_len: 64}", "workload.graph_batch=16"},
          "does not apply: no CUDA graph is captured for a step that has prompts");
  refused({"parallelism={ep: 8}", "workload.batch_size_spread=4", "ranks=all", "samples=50", "workload.graph_batch=16"},
          "the fullest attention group");
  check_refused({"simulate", file, "--set", "workload={phase: prefill, tokens: 64, prompt_len: 64}", "--set",
                 "workload.graph_batch=exact"},
                "--set: ", "unknown key 'workload.graph_batch'");
}

}  // TEST_SUITE("schedules/graph_batch")
