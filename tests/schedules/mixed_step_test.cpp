// A step that decodes and prefills at once: attention apart, all else together.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <map>

#include "experiments/run/run_metrics.hpp"
#include "moe/inference.hpp"
#include "moe/module_names.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/mixed_step") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const char* const kMixed = "workload={phase: mixed, batch_size: 32, kv_len: 4096, tokens: 2048, prompt_len: 8192}";
const char* const kDecode = "workload={phase: decode, batch_size: 32, kv_len: 4096}";

std::string chunk(int tokens, int cached) {
  return fmt::format("workload={{phase: prefill, tokens: {}, prompt_len: {}, cached_len: {}}}", tokens, cached + tokens,
                     cached);
}

InferenceWork work_of(const std::string& model, const std::string& workload) {
  return load_setup(served_scenario(),
                    {"model=" + model, "parallelism={tp: 8}", "routing.distribution=exact", workload})
      .inference_work({0, 1});
}

struct Sums {
  double flops = 0, bytes = 0;
};

// Of one layer's attention, by kernel.
std::map<std::string, Sums> attention_of(const InferenceWork& work) {
  std::map<std::string, Sums> sums;
  for (const Operator& op : inference_phase("attn", work, layer_of(work.model, work.model.num_hidden_layers - 1))) {
    sums[op.name].flops += op.flops;
    sums[op.name].bytes += op.bytes;
  }
  return sums;
}

}  // namespace

TEST_CASE("in a mixed step prompts and answers attend apart, each as in a step of its own") {
  for (const char* model : {"deepseek-v3", "qwen3-235b-a22b"}) {
    CAPTURE(model);
    const auto mixed = attention_of(work_of(model, kMixed));
    const auto decode = attention_of(work_of(model, kDecode));
    const char* const core = std::string(model) == "deepseek-v3" ? "MLA decode core" : "GQA decode core";
    CHECK(mixed.at(core).flops == decode.at(core).flops);
    CHECK(mixed.at(core).bytes == decode.at(core).bytes);
    double over_chunks = 0;
    for (const int cached : {0, 2048, 4096, 6144}) {
      over_chunks += attention_of(work_of(model, chunk(2048, cached))).at("FlashAttention forward").flops / 4;
    }
    CHECK(mixed.at("FlashAttention forward").flops == doctest::Approx(over_chunks));
  }
}

TEST_CASE("in a mixed step a linear layer takes the tokens of both, and reads its weights once") {
  for (const char* model : {"deepseek-v3", "qwen3-235b-a22b"}) {
    CAPTURE(model);
    const Sums both = attention_of(work_of(model, kMixed)).at("W_O");
    const Sums answers = attention_of(work_of(model, kDecode)).at("W_O");
    const Sums prompts = attention_of(work_of(model, chunk(2048, 0))).at("W_O");
    CHECK(both.flops == answers.flops + prompts.flops);
    CHECK(both.bytes < answers.bytes + prompts.bytes);
  }
}

TEST_CASE("a mixed step is longer than either of its parts, and shorter than one after the other") {
  const auto step_ms = [](const std::string& workload) {
    const Run run = run_scenario(load_setup(
        served_scenario(), {"parallelism={tp: 8, ep: 8}", "routing.distribution=exact", "launch=none", workload}));
    return to_us(run.metrics.span) / 1e3;
  };
  const double mixed = step_ms(kMixed), answers = step_ms(kDecode);
  CHECK(mixed > answers);
  CHECK(mixed > step_ms(chunk(2048, 0)));
  CHECK(mixed < answers + step_ms(chunk(2048, 6144)));
}

TEST_CASE("who decodes in a mixed step gets a token from it, and a prompt's first token comes after its chunks") {
  const Run run =
      run_scenario(load_setup(served_scenario(), {"parallelism={tp: 8, ep: 8}", kMixed, "workload.query_len=2",
                                                  "workload.mtp_acceptance=0.5", "workload.kv_len=2048"}));
  const double step = to_us(run.metrics.span) / 1e3;
  CHECK(tpot_ms(run) == doctest::Approx(step / 1.5));
  CHECK(run.inference()->ttft_ms == doctest::Approx(4 * step));
  CHECK(tokens_per_s(run) == doctest::Approx((32 * 1.5 + 2048) / (step / 1e3) / 8));
}

TEST_CASE("the caches of a mixed step are those of both") {
  const auto cache = [](const std::string& workload) {
    const Run run = run_scenario(load_setup(served_scenario(), {"parallelism={tp: 8}", workload}));
    return run.inference()->memory.kv_cache;
  };
  const double prompt = cache("workload={phase: prefill, tokens: 8192, prompt_len: 8192}");
  CHECK(cache(kMixed) == doctest::Approx(cache(kDecode) + prompt));
}

}  // TEST_SUITE("schedules/mixed_step")
