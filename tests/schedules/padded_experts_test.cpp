// Stacks pad what a rank has of experts in MXFP4, so that their blocks need not divide.
#include <doctest/doctest.h>

#include "experiments/memory/inference_memory.hpp"
#include "moe/inference.hpp"
#include "moe/tensor_parallel.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("schedules/padded_experts") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Setup gpt_oss(const std::string& hardware, const std::string& kernels, int tp,
              const std::vector<std::string>& changes = {}) {
  std::vector<std::string> all = {"hardware=" + hardware, "kernels=" + kernels,
                                  "parallelism={tp: " + std::to_string(tp) + "}"};
  all.insert(all.end(), changes.begin(), changes.end());
  return read_setup(
      Spec::parse("s.yaml",
                  "{schema: 1, model: gpt-oss-120b, hardware: b200, schedule: sequential, parallelism: {tp: 8}, "
                  "precision: {experts: mxfp4}, workload: {phase: decode, batch_size: 64, kv_len: 4096}}"),
      all);
}

std::vector<Operator> experts_of(const Setup& setup) {
  const InferenceWork work = setup.inference_work({0, 1});
  return inference_phase("mlp", work, blocks_of(setup.model, 0).at(1));
}

// FLOPs that the model asks for, of the experts' products.
double needed_flops(const Setup& setup) {
  double sum = 0;
  for (const Operator& op : experts_of(setup)) {
    if (op.experts.role != ExpertRole::none) sum += op.flops - op.padding_flops;
  }
  return sum;
}

}  // namespace

TEST_CASE("ranks whose blocks do not divide all have as many as the first one") {
  CHECK(columns_of_rank(2880, 8, Precision::mxfp4) == 12 * 32);
  CHECK(columns_of_rank(2880, 4, Precision::mxfp4) == 23 * 32);
  CHECK(columns_of_rank(2880, 2, Precision::mxfp4) == 1440);
  CHECK(columns_of_rank(2048, 8, Precision::fp8) == 256);
}

TEST_CASE("gpt-oss-120b runs with tp 8, its experts as wide as each stack pads them") {
  struct Padded {
    const char *hardware, *kernels;
    double width, hidden;
  };
  for (const Padded& each : {Padded{"b200", "sglang", 512, 3072}, Padded{"b200", "trtllm", 384, 3072},
                             Padded{"h100", "sglang", 384, 3072}, Padded{"h200", "trtllm", 384, 2880}}) {
    CAPTURE(each.hardware);
    CAPTURE(each.kernels);
    const std::vector<Operator> ops = experts_of(gpt_oss(each.hardware, each.kernels, 8));
    const auto expert =
        std::find_if(ops.begin(), ops.end(), [](const Operator& op) { return op.experts.role == ExpertRole::gate_up; });
    REQUIRE(expert != ops.end());
    CHECK(expert->experts.width == each.width);
    CHECK(expert->experts.hidden == each.hidden);
  }
}

TEST_CASE("what pads is no work of the model's: eight ranks have the FLOPs of one") {
  for (const char* routing : {"routing.distribution=exact"}) {
    const double alone = needed_flops(gpt_oss("b200", "sglang", 1, {routing, "parallelism={ep: 1}"}));
    CHECK(8 * needed_flops(gpt_oss("b200", "sglang", 8, {routing})) == doctest::Approx(alone));
  }
}

TEST_CASE("weights take what they are padded to: 3.8 GiB more on H100, as vLLM's log of gpt-oss-120b has it") {
  const auto weights = [](const char* kernels) {
    return gib(memory_of(gpt_oss("h100", kernels, 1, {"parallelism={ep: 1}", "workload.batch_size=1"})).weights);
  };
  CHECK(weights("sglang") - weights("open-2025-late") == doctest::Approx(3.8).epsilon(0.02));
}

TEST_CASE("rows of MXFP4 experts are BF16 by vLLM and FP8 by the others, and a key overrules that") {
  const auto math = [](const char* kernels, const std::vector<std::string>& changes) {
    for (const Operator& op : experts_of(gpt_oss("b200", kernels, 8, changes))) {
      if (op.experts.role == ExpertRole::gate_up) return op.experts.math;
    }
    return Precision::int4;
  };
  CHECK(math("vllm", {}) == Precision::bf16);
  CHECK(math("sglang", {}) == Precision::fp8);
  CHECK(math("vllm", {"precision.expert_inputs=fp8"}) == Precision::fp8);
  CHECK(math("trtllm", {"precision.expert_inputs=bf16"}) == Precision::bf16);
  CHECK_THROWS_AS(math("sglang", {"precision.experts=nvfp4", "precision.expert_inputs=fp8"}), SpecError);
  CHECK_THROWS_AS(gpt_oss("h200", "sglang", 8, {"precision.expert_inputs=bf16"}), SpecError);
}

TEST_CASE("a rank without a block is refused, and DeepSeek-V4's experts, which run by another method, are not padded") {
  const auto message = [](int moe_tp) -> std::string {
    try {
      (void)gpt_oss("b200", "sglang", 8,
                    {"parallelism={tp: 8, dp: 16, ep: 1, moe_tp: " + std::to_string(moe_tp) + "}"});
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message(128).find("leaves a rank without a block of 32 of the 2880") != std::string::npos);
  CHECK(message(64).empty());
  const Setup v4 = gpt_oss("b200", "sglang", 8, {"model=deepseek-v4-flash", "precision={experts: mxfp4, linear: fp8}"});
  CHECK(v4.inference_work({0, 1}).expert_padding.width == 1);
}

}  // TEST_SUITE("schedules/padded_experts")
