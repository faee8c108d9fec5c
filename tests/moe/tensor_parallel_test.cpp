// Ranks that share a layer: together they do its work once, and each holds its part of the weights.
#include "moe/tensor_parallel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "architecture/parameters.hpp"
#include "moe/memory.hpp"
#include "moe/module_names.hpp"
#include "tests/support/capture.hpp"

TEST_SUITE("moe/tensor_parallel") {

using namespace moeline;
using namespace moeline::module_names;

namespace {

struct Split {
  int tp, ep, moe_tp;
  CommMode mode;
};

InferenceWork decode_work(const std::string& model, const Split& split) {
  InferenceWork work;
  work.model = load_architecture(model);
  work.decode = {.requests = 64, .kv_len = 4096};
  work.tp = split.tp;
  work.ep = split.ep;
  work.moe_tp = split.moe_tp;
  work.mode = split.mode;
  work.dispatch = Precision::bf16;
  if (work.model.n_routed_experts == 0) return work;
  work.spread = expected_spread(work.model, work.ep, work.gpus_per_node);
  work.load = exact_load(work.model, work.all_tokens() / work.ep, work.ep, work.spread);
  return work;
}

std::vector<Operator> ops_of(const InferenceWork& work) {
  const Block last = layer_of(work.model, work.model.num_hidden_layers - 1);
  std::vector<std::string> phases = inference_phases(work.model, true, work.mode);
  phases.insert(phases.end(), {"embedding", "lm_head"});
  std::vector<Operator> ops;
  for (const std::string& phase : phases) {
    for (Operator& op : inference_phase(phase, work, last)) ops.push_back(std::move(op));
  }
  return ops;
}

std::map<std::string, double> flops_by_module(const InferenceWork& work) {
  std::map<std::string, double> flops;
  for (const Operator& op : ops_of(work)) flops[op.module] += op.flops;
  return flops;
}

int collectives_in(const std::string& phase, const InferenceWork& work) {
  const Block last = layer_of(work.model, work.model.num_hidden_layers - 1);
  const std::vector<Operator> ops = inference_phase(phase, work, last);
  return static_cast<int>(
      std::count_if(ops.begin(), ops.end(), [](const Operator& op) { return is_collective(op.family); }));
}

// What every rank of an attention group computes for itself.
bool is_replicated(const std::string& module) {
  return module == kDownProjections || module == kQAndDownKv || module == kRouterGate;
}

constexpr double kBf16Bytes = 2;

GpuWork gpu(const Split& split) {
  GpuWork work;
  work.tp = split.tp;
  work.ep = split.ep;
  work.moe_tp = split.moe_tp;
  work.mode = split.mode;
  work.decode = {.requests = 16, .kv_len = 1000};
  return work;
}

double grouped_attention(double hidden, double heads, double kv_heads, double head_dim) {
  return hidden * head_dim * (2 * heads + 2 * kv_heads);
}

}  // namespace

TEST_CASE("the FLOPs of the ranks that share a layer add up to those of one that has it alone") {
  for (const char* name : {"deepseek-v3", "qwen3-235b-a22b", "mixtral-8x7b", "llama-3.1-405b", "kimi-k2"}) {
    const InferenceWork one = decode_work(name, {1, 1, 1, CommMode::none});
    const bool experts = one.model.n_routed_experts > 0;
    for (const int tp : {2, 4, 8}) {
      for (const bool by_expert : {true, false}) {
        CAPTURE(name);
        CAPTURE(tp);
        CAPTURE(by_expert);
        const Split split{tp, experts && by_expert ? tp : 1, experts && !by_expert ? tp : 1, CommMode::all_reduce};
        const auto alone = flops_by_module(one);
        for (const auto& [module, flops] : flops_by_module(decode_work(name, split))) {
          MOELINE_CAPTURE_BINDING(module);
          if (flops == 0 || is_replicated(module)) continue;
          const bool kv_repeated = module == kQkv && one.model.layer(0).attention.kv_heads % tp != 0;
          if (!kv_repeated) CHECK(tp * flops == doctest::Approx(alone.at(module)).epsilon(1e-3));
        }
      }
    }
  }
}

TEST_CASE("key and value heads are repeated where there are fewer than ranks") {
  const LayerAttention qwen = load_architecture("qwen3-235b-a22b").layer(0).attention;
  CHECK(attention_of_rank(qwen, 8).kv_heads == 1);
  CHECK(attention_of_rank(qwen, 2).kv_heads == 2);
}

TEST_CASE("tokens that all ranks have need one sum behind attention and one behind the experts") {
  const InferenceWork work = decode_work("deepseek-v3", {8, 8, 1, CommMode::all_reduce});
  CHECK(collectives_in("attn-0", work) == 0);
  CHECK(collectives_in("attn-1", work) == 1);
  CHECK(collectives_in("shared", work) == 0);
  CHECK(collectives_in("mlp", work) == 0);
  CHECK(collectives_in("combine", work) == 1);
  CHECK(inference_phase("dispatch", work, layer_of(work.model, 60)).empty());
  CHECK(inference_phase("combine", work, layer_of(work.model, 60)).front().traffic.message_bytes == 64 * 7168 * 2);
}

TEST_CASE("the stack's own all-reduce norms what it sums, a library's does not") {
  const auto norms_of = [](const InferenceWork& work) {
    int norms = 0;
    for (const Operator& op : ops_of(work)) norms += op.name == "RMSNorm and residual add" ? 1 : 0;
    return norms;
  };
  InferenceWork work = decode_work("qwen3-235b-a22b", {8, 8, 1, CommMode::all_reduce});
  CHECK(norms_of(work) == 3);  // before attention, before the experts, before the LM head
  work.most_custom_bytes = 1 << 20;
  CHECK(norms_of(work) == 1);
  work.decode.requests = 256;  // 2 MB
  CHECK(norms_of(work) == 3);
}

TEST_CASE("trtllm-gen's experts choose themselves") {
  InferenceWork work = decode_work("qwen3-235b-a22b", {8, 8, 1, CommMode::all_reduce});
  const auto chooses = [&] {
    const std::vector<Operator> ops = ops_of(work);
    return std::any_of(ops.begin(), ops.end(), [](const Operator& op) { return op.name == "scores and top-k"; });
  };
  CHECK(chooses());
  work.experts_choose = true;
  CHECK_FALSE(chooses());
}

TEST_CASE("rows meet MXFP4 weights in MXFP8 where tensor cores multiply FP4, and in BF16 elsewhere") {
  RankWork work;
  CHECK(work.fused_format(Precision::mxfp4) == Precision::bf16);
  work.has_fp4 = true;
  CHECK(work.fused_format(Precision::mxfp4) == Precision::fp8);
  CHECK(work.fused_format(Precision::nvfp4) == Precision::nvfp4);
}

TEST_CASE("a rank alone sends nothing") {
  const InferenceWork work = decode_work("mixtral-8x7b", {1, 1, 1, CommMode::none});
  for (const Operator& op : ops_of(work)) CHECK_FALSE(is_communication(op.family));
  CHECK(inference_phases(work.model, false, CommMode::none) == std::vector<std::string>{"attn", "mlp"});
}

TEST_CASE(
    "between attention and experts that tokens are sent to, an attention group's ranks have a part of them each") {
  const InferenceWork work = decode_work("deepseek-v3", {4, 16, 1, CommMode::all_gather});
  CHECK(work.own_tokens() == 16);
  CHECK(work.all_tokens() == 4 * 64);
  CHECK(collectives_in("attn-1", work) == 1);
  const std::vector<Operator> gather = inference_phase("dispatch", work, layer_of(work.model, 60));
  REQUIRE(gather.size() == 1);
  CHECK(gather.front().traffic.message_bytes == 4 * 64 * (7168 * 2 + 8 * 8));
  CHECK(gather.front().traffic.members == 16);
  const std::vector<Operator> back = inference_phase("combine", work, layer_of(work.model, 60));
  REQUIRE(back.size() == 2);
  CHECK(back[0].family == Family::reduce_scatter);
  CHECK(back[1].family == Family::all_gather);
  CHECK(back[1].traffic.members == 4);
}

TEST_CASE("a rank's weights and cache, by hand: llama-3.1-405b") {
  for (const double tp : {1.0, 2.0, 4.0, 8.0}) {
    const double kv = 8 / tp;
    const double layer = grouped_attention(16384, 128 / tp, kv, 128) + 3 * 16384.0 * 53248 / tp + 2 * 16384;
    const double weights = 126 * layer + 16384 + 2 * 128256.0 * 16384 / tp;
    const CommMode mode = tp > 1 ? CommMode::all_reduce : CommMode::none;
    const Memory memory = memory_per_gpu(load_architecture("llama-3.1-405b"), gpu({static_cast<int>(tp), 1, 1, mode}));
    CHECK(memory.weights == doctest::Approx(kBf16Bytes * weights));
    CHECK(memory.kv_cache == doctest::Approx(16 * 1000 * 126 * 2 * kv * 128 * kBf16Bytes));
  }
}

TEST_CASE("a rank's weights and cache, by hand: qwen3-235b-a22b, whose four key and value heads eight ranks repeat") {
  for (const double tp : {1.0, 2.0, 4.0, 8.0}) {
    const double kv = std::max(1.0, 4 / tp);
    const double norms = 2 * 4096 + 2 * 128;
    const double layer = grouped_attention(4096, 64 / tp, kv, 128) + 128 / tp * 3 * 4096 * 1536 + 4096 * 128 + norms;
    const double weights = 94 * layer + 4096 + 2 * 151936.0 * 4096 / tp;
    const CommMode mode = tp > 1 ? CommMode::all_reduce : CommMode::none;
    const Memory memory = memory_per_gpu(load_architecture("qwen3-235b-a22b"),
                                         gpu({static_cast<int>(tp), static_cast<int>(tp), 1, mode}));
    CHECK(memory.weights == doctest::Approx(kBf16Bytes * weights));
    CHECK(memory.kv_cache == doctest::Approx(16 * 1000 * 94 * 2 * kv * 128 * kBf16Bytes));
  }
}

TEST_CASE("a rank's weights and cache, by hand: mixtral-8x7b with each expert split") {
  for (const double tp : {1.0, 2.0, 4.0, 8.0}) {
    const double layer =
        grouped_attention(4096, 32 / tp, 8 / tp, 128) + 8 * 3 * 4096 * 14336 / tp + 8 * 4096 + 2 * 4096;
    const double weights = 32 * layer + 4096 + 2 * 32000.0 * 4096 / tp;
    const CommMode mode = tp > 1 ? CommMode::all_reduce : CommMode::none;
    const Memory memory =
        memory_per_gpu(load_architecture("mixtral-8x7b"), gpu({static_cast<int>(tp), 1, static_cast<int>(tp), mode}));
    CHECK(memory.weights == doctest::Approx(kBf16Bytes * weights));
    CHECK(memory.kv_cache == doctest::Approx(16 * 1000 * 32 * 2 * 8 / tp * 128 * kBf16Bytes));
  }
}

TEST_CASE("a rank's weights and cache, by hand: deepseek-v3, whose latents every rank has") {
  const Architecture model = load_architecture("deepseek-v3");
  const auto weights_of = [&](int tp) {
    const CommMode mode = tp > 1 ? CommMode::all_reduce : CommMode::none;
    return memory_per_gpu(model, gpu({tp, tp, 1, mode})).weights;
  };
  const double fp8 = bytes_per_weight(Precision::fp8);
  for (const double tp : {2.0, 4.0, 8.0}) {
    const double heads = 1536 * 24576.0 + 512 * 32768.0 + 16384 * 7168.0;
    const double layers = 61 * heads + 3 * 3 * 7168.0 * 18432 + 58 * 257 * 3 * 7168.0 * 2048;
    const double split = fp8 * layers + kBf16Bytes * 2 * 129280.0 * 7168;
    CHECK(weights_of(1) - weights_of(static_cast<int>(tp)) == doctest::Approx(split * (1 - 1 / tp)));
    CHECK(memory_per_gpu(model, gpu({static_cast<int>(tp), static_cast<int>(tp), 1, CommMode::all_reduce})).kv_cache ==
          16.0 * 1000 * 61 * 576 * kBf16Bytes);
  }
}

}  // TEST_SUITE("moe/tensor_parallel")
