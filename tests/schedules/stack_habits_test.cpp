// A stack's habits come with its kernels, whatever the set is called, and every habit is a row that a key overrules.
#include <doctest/doctest.h>

#include <set>

#include "experiments/run/run.hpp"
#include "experiments/run/stack_choices.hpp"
#include "schedules/scenario/kernel_habits.hpp"
#include "schedules/scenario/scenario.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("schedules/stack_habits") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// A copy of b200's profile, whose set of TensorRT-LLM's kernels is called so.
std::string machine_with(const TemporaryFolder& folder, const std::string& set) {
  const std::string profile = content_of(source("hwprofiles/b200.yaml"));
  return folder.write(set + ".yaml", replaced(profile, "\n  trtllm-1.3.0:", "\n  " + set + ":"));
}

Setup decode_of(const std::string& machine, const std::string& set, const std::string& parallelism,
                const std::vector<std::string>& changes = {}) {
  return read_setup(Spec::parse("s.yaml", "{schema: 1, model: qwen3-235b-a22b, hardware: " + machine + ", kernels: " +
                                              set + ", schedule: sequential, parallelism: " + parallelism +
                                              ", layers: 4, workload: {phase: decode, batch_size: 64, kv_len: 4096}}"),
                    changes);
}

// A step that a row of the table is about, and what the row says.
struct Example {
  const char *machine, *kernels, *parallelism, *model, *precision;
};

std::vector<std::string> settings_of(const Example& example) {
  return {std::string("model=") + example.model, std::string("precision=") + example.precision};
}

Setup setup_of(const Example& example, std::vector<std::string> more = {}) {
  std::vector<std::string> all = settings_of(example);
  all.insert(all.end(), more.begin(), more.end());
  return decode_of(example.machine, example.kernels, example.parallelism, all);
}

template <class Backend>
const habits::KernelHabit<Backend>* row_of(const std::vector<habits::KernelHabit<Backend>>& rows, const Setup& setup) {
  for (const habits::KernelHabit<Backend>& row : rows) {
    if (row.stack == setup.kernels().stack && row.applies(setup)) return &row;
  }
  return nullptr;
}

constexpr const char *kQwen = "qwen3-235b-a22b", *kDeepSeek = "deepseek-v3", *kGptOss = "gpt-oss-120b";

std::string choice_of_step(const Setup& setup, const std::string& what) {
  for (const StackChoice& choice : stack_choices(setup)) {
    if (choice.what == what) return line_of(choice);
  }
  return "";
}

std::string refusal(const std::string& machine, const std::string& set, const std::vector<std::string>& changes) {
  try {
    (void)decode_of(machine, set, "{tp: 8}", changes);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a copy of a machine whose kernel set has another name gives the same step") {
  const TemporaryFolder folder;
  const std::string mine = machine_with(folder, "my-1.3.0");
  for (const char* parallelism : {"{ep: 8}", "{tp: 8, ep: 8}", "{tp: 4, ep: 1}", "{ep: 8, pp: 3}"}) {
    CAPTURE(parallelism);
    const Setup named = decode_of("b200", "trtllm-1.3.0", parallelism),
                other = decode_of(mine, "my-1.3.0", parallelism);
    CHECK(other.scenario.comm.mode == named.scenario.comm.mode);
    CHECK(other.scenario.moe_backend == named.scenario.moe_backend);
    CHECK(run_scenario(other).metrics.span == run_scenario(named).metrics.span);
  }
}

TEST_CASE("every row of experts' kernels is what a step of its stack runs there") {
  using enum MoeBackend;
  struct Row : Example {
    MoeBackend backend;
  };
  const std::vector<Row> examples = {
      {{"b200", "trtllm", "{tp: 8}", kQwen, "{}"}, trtllm_gen},
      {{"b200", "trtllm", "{ep: 8}", kQwen, "{experts: fp8}"}, deepgemm},
      {{"b200", "trtllm", "{ep: 8}", kGptOss, "{experts: mxfp4}"}, trtllm_gen},
      {{"b200", "trtllm", "{ep: 8}", kQwen, "{experts: nvfp4}"}, cutlass},
      {{"gb300-nvl72", "sglang", "{tp: 4}", kQwen, "{}"}, trtllm_gen},
      {{"h200", "sglang", "{tp: 8}", kDeepSeek, "{experts: int4}"}, marlin},
      {{"h20", "sglang", "{tp: 8}", kDeepSeek, "{experts: fp8}"}, triton},
      {{"h200", "vllm", "{tp: 8}", kDeepSeek, "{experts: int4}"}, marlin},
      {{"b300", "vllm", "{ep: 8}", kDeepSeek, "{experts: nvfp4}"}, trtllm_gen},
      {{"h200", "vllm", "{ep: 8}", kDeepSeek, "{experts: fp8}"}, cutlass},
      {{"h200", "vllm", "{tp: 8}", kDeepSeek, "{experts: fp8}"}, triton},
      {{"h100", "vllm", "{tp: 8}", kQwen, "{}"}, triton},
  };
  std::set<const void*> shown;
  for (const Row& example : examples) {
    const Setup setup = setup_of(example);
    CAPTURE(setup.kernels().name);
    CAPTURE(example.precision);
    const auto* row = row_of(habits::expert_kernels(), setup);
    REQUIRE(row != nullptr);
    CHECK(row->backend == example.backend);
    CHECK(setup.scenario.moe_backend == example.backend);
    CHECK(says(choice_of_step(setup, "experts"), row->where));
    shown.insert(row);
  }
  // FP8 by tensor has no model of ours that is stored so.
  CHECK(shown.size() + 1 == habits::expert_kernels().size());
}

TEST_CASE("every row of attention's kernels is what a step of its stack runs there") {
  using enum AttentionBackend;
  struct Row : Example {
    AttentionBackend backend;
  };
  const std::vector<Row> examples = {
      {{"b200", "sglang", "{tp: 8}", kDeepSeek, "{}"}, trtllm_gen},
      {{"h200", "sglang", "{tp: 8}", kDeepSeek, "{kv_cache: fp8}"}, fa3},
      {{"gb200-nvl72", "trtllm", "{tp: 4}", kQwen, "{}"}, trtllm_gen},
      {{"h200", "trtllm", "{tp: 8}", kDeepSeek, "{kv_cache: fp8}"}, flashmla},
      {{"h100", "trtllm", "{tp: 8}", kQwen, "{}"}, xqa},
      {{"b200", "vllm", "{tp: 8}", kQwen, "{}"}, trtllm_gen},
      {{"h20", "vllm", "{tp: 8}", kDeepSeek, "{kv_cache: fp8}"}, flashmla},
      {{"h200", "vllm", "{tp: 8}", kDeepSeek, "{kv_cache: bf16}"}, fa3},
      {{"a100", "vllm", "{tp: 8}", kQwen, "{}"}, fa2},
  };
  std::set<const void*> shown;
  for (const Row& example : examples) {
    const Setup setup = setup_of(example);
    CAPTURE(setup.kernels().name);
    CAPTURE(example.machine);
    const auto* row = row_of(habits::attention_kernels(), setup);
    REQUIRE(row != nullptr);
    CHECK(row->backend == example.backend);
    CHECK(setup.scenario.attention_backend == example.backend);
    CHECK(says(choice_of_step(setup, "attention"), row->where));
    shown.insert(row);
  }
  CHECK(shown.size() == habits::attention_kernels().size());
}

TEST_CASE("a stack without tables has its habits over the nearest ones, or over those that are named") {
  CHECK(decode_of("h200", "vllm", "{tp: 8}").kernels().name == "vllm over sglang-0.5.14");
  CHECK(decode_of("b200", "vllm", "{tp: 8}").kernels().name == "vllm over trtllm-1.3.0");
  CHECK(decode_of("h800", "vllm", "{tp: 8}").kernels().name == "vllm over open-2025-late");
  const Setup over = decode_of("b200", "vllm over sglang", "{ep: 8}");
  CHECK(over.kernels().name == "vllm over sglang-0.5.14");
  CHECK(over.scenario.comm.mode == CommMode::all_gather);  // vLLM's, where SGLang has DeepEP's
  CHECK(over.scenario.memory.stack == Stack::vllm);
  CHECK(over.kernels().fitted_name() == "sglang-0.5.14");
  CHECK(says(refusal("b200", "megatron", {}), "megatron trains"));
  CHECK(says(refusal("b200", "vlm", {}), "did you mean 'vllm'"));
  CHECK(says(refusal("b200", "vllm over nobody", {}), "nobody"));
}

TEST_CASE("the resolved scenario of a stack without tables is a scenario, and gives the same step") {
  const Setup once = decode_of("h200", "vllm", "{tp: 8}");
  const Setup again = decode_of("h200", once.scenario.kernels, "{tp: 8}");
  CHECK(run_scenario(again).metrics.span == run_scenario(once).metrics.span);
}

TEST_CASE("keys overrule each choice, by its kernels' price, and name what there is") {
  const Example vllm = {"h200", "vllm", "{tp: 8}", kDeepSeek, "{kv_cache: fp8}"};
  const auto span = [&](std::vector<std::string> more) {
    return to_us(run_scenario(setup_of(vllm, std::move(more))).metrics.span);
  };
  const double usual = span({});
  CHECK(span({"attention_backend=fa3"}) > 1.5 * usual);  // which turns the cache into BF16 first
  CHECK(span({"attention_backend=flashmla"}) == usual);
  CHECK(span({"moe_backend=cutlass"}) != usual);
  CHECK(span({"moe_backend=triton"}) == usual);
  CHECK(span({"comm.all_reduce=nccl"}) > usual);
  CHECK(span({"shared_experts=in_turn"}) > usual);
  CHECK(says(refusal("h200", "sglang", {"attention_backend=trtllm_gen"}), "there is: usual, fa3, xqa"));
  CHECK(says(refusal("h200", "sglang", {"moe_backend=trtllm_gen"}), "there is: usual, triton, cutlass"));
  CHECK(says(refusal("h200", "sglang", {"attention_backend=fa"}), "did you mean 'fa2'"));
  CHECK(says(refusal("h200", "sglang", {"parallelism={ep: 8}", "comm={mode: low_latency, all_reduce: nccl}"}),
             "belongs to ranks that share attention"));
}

TEST_CASE("beyond 8192 tokens TensorRT-LLM shares out an indexer's queries over the ranks of a group") {
  const auto prefill = [](const char* kernels, int tokens, std::vector<std::string> more) {
    const std::string workload =
        "workload={phase: prefill, tokens: " + std::to_string(tokens) + ", prompt_len: " + std::to_string(tokens) + "}";
    more.emplace_back("model=deepseek-v3.2");
    more.push_back(workload);
    return decode_of("b200", kernels, "{tp: 8, ep: 8}", more);
  };
  const auto indexer = [&](const char* kernels, int tokens) {
    return prefill(kernels, tokens, {}).scenario.comm.indexer;
  };
  CHECK(indexer("trtllm", 8192) == IndexerQueries::whole);
  CHECK(indexer("trtllm", 16384) == IndexerQueries::split);
  CHECK(indexer("sglang", 16384) == IndexerQueries::whole);
  CHECK(says(choice_of_step(prefill("trtllm", 16384, {}), "indexer"), "comm.indexer"));
  const auto us = [&](const char* word) {
    return to_us(run_scenario(prefill("trtllm", 65536, {std::string("comm.indexer=") + word})).metrics.span);
  };
  CHECK(us("split") < us("whole"));
}

TEST_CASE("an FP8 cache takes other microseconds on every machine, and the line says what another kernel would give") {
  for (const char* machine : {"h100", "h200", "h20", "b200"}) {
    CAPTURE(machine);
    const auto us = [&](const char* cache) {
      return to_us(run_scenario(setup_of({machine, "sglang", "{tp: 1, ep: 8}", kDeepSeek, cache})).metrics.span);
    };
    CHECK(us("{kv_cache: fp8}") != us("{kv_cache: bf16}"));
  }
  const Setup setup = setup_of({"h200", "sglang", "{tp: 8}", kDeepSeek, "{kv_cache: fp8}"});
  const std::string line = choice_of_step(setup, "attention");
  CHECK(says(line, "FlashAttention-3, as SGLang runs attention on Hopper (attention_backend; "));
  CHECK(says(line, ", flashmla "));
}

TEST_CASE("kernels of another generation of GPUs are nobody's choice") {
  for (const StackChoice& choice : stack_choices(decode_of("b300", "sglang", "{tp: 8}"))) {
    for (const OtherKernels& other : choice.others) {
      CHECK(other.name != "fa3");
      CHECK(other.name != "triton");
    }
  }
  const Setup amd = decode_of("mi300x", "vllm", "{tp: 8}");
  CHECK(amd.scenario.attention_backend == AttentionBackend::usual);
}

TEST_CASE("wide expert parallelism of SGLang on GB200 is DeepEP's low latency and masked DeepGEMM") {
  const Setup setup = setup_of({"gb200-nvl72", "sglang", "{ep: 32}", kDeepSeek, "{}"});
  CHECK(says(choice_of_step(setup, "tokens to experts"), "low_latency, as SGLang runs ep 32 on gb200-nvl72"));
  CHECK(says(choice_of_step(setup, "experts"), "masked DeepGEMM, as SGLang runs low_latency's rows"));
  // SGLang's table of 8 experts of EP32: 83 to 87 us from 32 to 4096 tokens of the group.
  double us = 0;
  for (const StackChoice& choice : stack_choices(setup)) us = choice.what == "experts" ? choice.layer_us : us;
  CHECK(us == doctest::Approx(85).epsilon(0.05));
}

}  // TEST_SUITE("schedules/stack_habits")
