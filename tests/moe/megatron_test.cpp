// Megatron's lists of kernels against counts by hand and closed forms.
#include "moe/megatron.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "architecture/blocks.hpp"
#include "architecture/checkpoint_format.hpp"
#include "architecture/parameters.hpp"
#include "moe/kernels.hpp"
#include "moe/training_memory.hpp"

TEST_SUITE("moe/megatron") {

using namespace moeline;

namespace {

struct Layout {
  int ep = 1, tp = 1;
  CommMode mode = CommMode::none;
  Precision format = Precision::bf16;
  RecomputedModules modules{};
};

// Of a block; experts get what they get on average.
LayerWork work_of(const Architecture& of, const Block& block, const Layout& layout = {}) {
  LayerWork work;
  work.model = of;
  store_linear_as(layout.format, work.model);
  if (of.n_routed_experts > 0) store_experts_as(layout.format, work.model);
  work.kind = block.kind;
  work.content = block.content;
  work.content.formats = work.model.layers.front().formats;
  work.choices.operators = TrainingOperators::megatron;
  work.choices.recompute = Recompute::selective;
  work.choices.modules = layout.modules;
  work.ep = layout.ep;
  work.tp = layout.tp;
  work.mode = layout.mode;
  if (of.n_routed_experts == 0) return work;
  work.spread = expected_spread(work.model, work.ep, work.gpus_per_node);
  work.load = exact_load(work.model, work.own_tokens(), work.ep, work.spread);
  return work;
}

std::vector<Operator> phases(const LayerWork& work, const std::vector<std::string>& names) {
  std::vector<Operator> ops;
  for (const std::string& name : names) {
    for (Operator& op : training_phase(name, work)) ops.push_back(std::move(op));
  }
  return ops;
}

std::vector<Operator> forward(const LayerWork& w) { return phases(w, forward_phases(w.kind, sends_tokens(w.mode))); }
std::vector<Operator> backward(const LayerWork& w) { return phases(w, backward_phases(w.kind, sends_tokens(w.mode))); }
std::vector<Operator> weights(const LayerWork& w) { return phases(w, weight_phases(w.kind)); }

std::vector<std::string> names(const std::vector<Operator>& ops) {
  std::vector<std::string> list;
  for (const Operator& op : ops) list.push_back(op.name);
  return list;
}

// Of the model: what is computed again does not count.
double flops(const std::vector<Operator>& ops) {
  double sum = 0;
  for (const Operator& op : ops) sum += op.purpose == Purpose::recompute ? 0 : op.flops - op.recomputed_flops;
  return sum;
}

double all_flops(const LayerWork& work) { return flops(forward(work)) + flops(backward(work)) + flops(weights(work)); }

double message_bytes(const std::vector<Operator>& ops, Family family) {
  double sum = 0;
  for (const Operator& op : ops) sum += op.family == family ? op.traffic.message_bytes : 0;
  return sum;
}

std::size_t count(const std::vector<Operator>& ops, Family family) {
  return static_cast<std::size_t>(
      std::count_if(ops.begin(), ops.end(), [&](const Operator& op) { return op.family == family; }));
}

const Architecture& qwen3() {
  static const Architecture model = load_architecture("qwen3-235b-a22b");
  return model;
}

const std::vector<const char*> kModels = {"qwen3-235b-a22b", "mixtral-8x7b", "gpt-oss-120b", "deepseek-v3",
                                          "deepseek-v2",     "glm-4.5",      "qwen-2.5-72b", "llama-3.1-405b"};

}  // namespace

TEST_CASE("a BF16 layer of grouped-query attention and experts on one GPU has the kernels of a count by hand") {
  const Block layer = layer_of(qwen3(), 0);
  const LayerWork work = work_of(qwen3(), layer, {.ep = 128});  // one expert
  const std::vector<std::string> attention = {"RMSNorm",
                                              "W_QKV fprop",
                                              "RMSNorm of q heads",
                                              "RMSNorm of k heads",
                                              "rotary q",
                                              "rotary k",
                                              "cudnn_generated_fort_native_sdpa_fprop",
                                              "W_O fprop",
                                              "bias, dropout and residual add",
                                              "RMSNorm",
                                              "router gate fprop",
                                              "scores and top-k",
                                              "tokens per expert",
                                              "scores for the auxiliary loss",
                                              "auxiliary loss"};
  CHECK(names(training_phase("attn(F)", work)) == attention);
  const std::vector<std::string> experts = {
      "map of rows",       "permute tokens", "expert gate_up fprop",          "SwiGLU",
      "expert down fprop", "unpermute rows", "bias, dropout and residual add"};
  CHECK(names(training_phase("mlp(F)", work)) == experts);
  CHECK(names(training_phase("attn(W)", work)) == std::vector<std::string>{"W_O wgrad", "W_QKV wgrad"});
  CHECK(names(training_phase("mlp(W)", work)) == std::vector<std::string>{"expert down wgrad", "expert gate_up wgrad"});
}

TEST_CASE("each expert has a product of its own, and so many kernels are launched") {
  const Block layer = layer_of(qwen3(), 0);
  for (const int ep : {8, 16, 32}) {
    const LayerWork work = work_of(qwen3(), layer, {.ep = ep, .mode = CommMode::all_to_all});
    CHECK(count(forward(work), Family::gemm_bf16_grouped) == static_cast<std::size_t>(2 * 128 / ep));
    CHECK(count(weights(work), Family::gemm_bf16_grouped) == static_cast<std::size_t>(2 * 128 / ep));
    CHECK(weights(work).front().streams == 4);  // of TransformerEngine
  }
}

TEST_CASE("every model's blocks have the FLOPs of the closed form, three times the forward pass") {
  for (const char* name : kModels) {
    CAPTURE(name);
    const Architecture model = load_architecture(name);
    double sum = 0, tokens = 0;
    for (const Block& block : blocks_of(model, 0)) {
      const LayerWork work = work_of(model, block);
      sum += all_flops(work);
      tokens = work.tokens();
    }
    CHECK(sum / tokens == doctest::Approx(train_flops_per_token(model, 4096)).epsilon(0.002));
  }
}

TEST_CASE("in each direction a block multiplies its matrices once") {
  const Block layer = layer_of(qwen3(), 0);
  const LayerWork work = work_of(qwen3(), layer);
  const double core = flops({training_phase("attn(F)", work)[6]});
  const double matrices = flops(forward(work)) - core;
  CHECK(flops(weights(work)) + 2 * work.tokens() * 4096 * 128 ==
        doctest::Approx(matrices));  // the gate's is in attn(B)
  CHECK(flops(backward(work)) - 2 * work.tokens() * 4096 * 128 - 2 * core == doctest::Approx(matrices));
}

TEST_CASE("tensor parallel ranks share the FLOPs, and exchange each part of a layer twice a pass") {
  for (const char* name : {"qwen3-235b-a22b", "llama-3.1-405b"}) {
    CAPTURE(name);
    const Architecture model = load_architecture(name);
    const Block layer = layer_of(model, 0);
    const LayerWork alone = work_of(model, layer), shared = work_of(model, layer, {.tp = 4});
    CHECK(4 * all_flops(shared) == doctest::Approx(all_flops(alone)).epsilon(1e-9));
    const double hidden = alone.tokens() * model.hidden_size * 2;
    const double parts = model.n_routed_experts > 0 ? 1 : 2;  // attention, and a dense network
    CHECK(message_bytes(forward(shared), Family::all_gather) == doctest::Approx(parts * hidden));
    CHECK(message_bytes(forward(shared), Family::reduce_scatter) == doctest::Approx(parts * hidden));
    CHECK(message_bytes(backward(shared), Family::all_gather) == doctest::Approx(2 * parts * hidden));  // inputs again
    CHECK(message_bytes(backward(shared), Family::reduce_scatter) == doctest::Approx(parts * hidden));
    CHECK(message_bytes(forward(alone), Family::all_gather) == 0);
  }
}

TEST_CASE("NCCL sends a copy of each token for each of its experts, each way, forward and backward") {
  const Block layer = layer_of(qwen3(), 0);
  const LayerWork work = work_of(qwen3(), layer, {.ep = 16, .mode = CommMode::all_to_all});
  const double rows = work.tokens() * 8, bytes = rows * 4096 * 2;
  CHECK(message_bytes(training_phase("dispatch(F)", work), Family::all_to_all) == doctest::Approx(bytes + rows * 4));
  CHECK(message_bytes(training_phase("combine(F)", work), Family::all_to_all) == doctest::Approx(bytes));
  CHECK(message_bytes(backward(work), Family::all_to_all) == doctest::Approx(2 * bytes + rows * 4));
  const LayerWork half = work_of(qwen3(), layer, {.ep = 16, .tp = 2, .mode = CommMode::all_to_all});
  CHECK(message_bytes(training_phase("combine(F)", half), Family::all_to_all) == doctest::Approx(bytes / 2));
}

TEST_CASE(
    "without ranks that share the experts there is no all-to-all, and with them no other phase changes its name") {
  CHECK(forward_phases(BlockKind::moe_layer, false) == std::vector<std::string>{"attn(F)", "mlp(F)"});
  CHECK(backward_phases(BlockKind::moe_layer, false) == std::vector<std::string>{"mlp(B)", "attn(B)"});
  const Block layer = layer_of(qwen3(), 0);
  for (const CommMode mode : {CommMode::normal, CommMode::all_to_all, CommMode::nvlink}) {
    const LayerWork work = work_of(qwen3(), layer, {.ep = 8, .mode = mode});
    for (const char* phase : {"dispatch(F)", "combine(F)", "dispatch(B)", "combine(B)"}) {
      const std::vector<Operator> ops = training_phase(phase, work);
      CHECK(std::any_of(ops.begin(), ops.end(), [](const Operator& op) { return is_communication(op.family); }));
    }
  }
}

TEST_CASE("FP8 casts what a linear layer takes both ways, once for each of its two tensors, and BF16 casts nothing") {
  const Block layer = layer_of(qwen3(), 0);
  const LayerWork bf16 = work_of(qwen3(), layer), fp8 = work_of(qwen3(), layer, {.format = Precision::fp8});
  for (const auto& ops : {forward(bf16), backward(bf16), weights(bf16)}) {
    CHECK(count(ops, Family::cast_transpose) == 0);
  }
  CHECK(count(forward(fp8), Family::cast_transpose) == 4);  // QKV, O, gate_up, down
  CHECK(count(backward(fp8), Family::cast_transpose) == 4);
  CHECK(count(weights(fp8), Family::cast_transpose) == 0);
  const double t = fp8.tokens();
  const auto cast = forward(fp8)[1];
  CHECK(cast.bytes == t * 4096 * 4);  // BF16 read, FP8 written twice
  CHECK(all_flops(fp8) == all_flops(bf16));
}

TEST_CASE("a window takes FLOPs from the core in both directions alike") {
  const Architecture model = load_architecture("gpt-oss-120b");
  const Block windowed = layer_of(model, 0), full = layer_of(model, 1);
  REQUIRE(windowed.content.attention.window == 128);
  const auto core = [&](const Block& block, const char* phase, Family family) {
    const std::vector<Operator> ops = training_phase(phase, work_of(model, block));
    return std::find_if(ops.begin(), ops.end(), [&](const Operator& op) { return op.family == family; })->flops;
  };
  const double forward_share =
      core(windowed, "attn(F)", Family::attention_forward) / core(full, "attn(F)", Family::attention_forward);
  CHECK(forward_share == doctest::Approx(2 * 128 / 4096.0).epsilon(0.02));
  CHECK(core(windowed, "attn(B)", Family::attention_backward) / core(full, "attn(B)", Family::attention_backward) ==
        doctest::Approx(forward_share));
}

TEST_CASE("what is computed again is marked, costs no FLOPs of the model, and is kept no longer") {
  const Architecture v3 = load_architecture("deepseek-v3");
  const auto check = [&](const Block& block, bool RecomputedModules::*module, bool applies) {
    Layout layout;
    const Architecture& model = block.content.attention.kind == AttentionKind::mla ? v3 : qwen3();
    const LayerWork kept = work_of(model, block, layout);
    layout.modules.*module = true;
    const LayerWork again = work_of(model, block, layout);
    CHECK(all_flops(again) == all_flops(kept));
    const std::vector<Operator> ops = backward(again);
    const bool any =
        std::any_of(ops.begin(), ops.end(), [](const Operator& op) { return op.purpose == Purpose::recompute; });
    CHECK(any == applies);
    CHECK((ops.size() > backward(kept).size()) == applies);
    CHECK((saved_bytes(again) <= saved_bytes(kept)) == true);
    return saved_bytes(kept) - saved_bytes(again);
  };
  const Block dense = layer_of(v3, 0), routed = layer_of(v3, 3);
  CHECK(check(routed, &RecomputedModules::mla_up_proj, true) > 0);
  CHECK(check(routed, &RecomputedModules::layernorm, true) > 0);
  CHECK(check(routed, &RecomputedModules::moe_act, true) > 0);
  CHECK(check(routed, &RecomputedModules::mlp, false) == 0);
  CHECK(check(dense, &RecomputedModules::mlp, true) > 0);
  CHECK(check(layer_of(qwen3(), 0), &RecomputedModules::moe_act, true) > 0);
  CHECK(check(dense, &RecomputedModules::core_attn, true) == 0);  // FlashAttention keeps no scores
}

TEST_CASE("a layer keeps per token what autograd does, term by term") {
  const LayerWork work = work_of(qwen3(), layer_of(qwen3(), 0));
  const double q = 64 * 128, kv = 4 * 128;
  const double attention = 2 * 4096 * 2 + (q + 2 * kv) * 2 + (q + kv) * 2 + q * 2 + 64 * 4;
  const double router = 2 * 4096 * 2 + 128 * 5;
  const double row = 4096 * 2 + 2 * 1536 * 2 + 1536 * 2;
  CHECK(saved_bytes(work) == doctest::Approx(work.tokens() * (attention + router + 8 * row)));
}

TEST_CASE("ranks hold their part of a stage, and all of it together: memory of four layouts by hand") {
  const Architecture llama = load_architecture("llama-3.1-405b");
  const auto of = [](const Architecture& model, int ep, int tp) {
    return stage_parameters(model, blocks_of(model, 0), {.ep = ep, .tp = tp, .operators = TrainingOperators::megatron});
  };
  const double norms = 2 * 126 * 16384.0 + 16384;
  const StageParameters dense = of(llama, 1, 8);
  CHECK(dense.experts == 0);
  CHECK(8 * (dense.replicated - norms) + norms == doctest::Approx(parameters(llama)).epsilon(1e-6));
  CHECK(dense.replicated_bytes == doctest::Approx(2 * dense.replicated));
  const StageParameters routed = of(qwen3(), 16, 1);
  CHECK(routed.experts == doctest::Approx(94 * 8 * 3 * 4096.0 * 1536));
  CHECK(routed.replicated + 16 * routed.experts == doctest::Approx(parameters(qwen3())).epsilon(1e-9));
  const StageParameters both = of(qwen3(), 16, 4);
  CHECK(both.experts == routed.experts);
  CHECK(both.replicated < 0.3 * routed.replicated);
  Architecture fp8 = qwen3();
  store_linear_as(Precision::fp8, fp8);
  store_experts_as(Precision::fp8, fp8);
  CHECK(of(fp8, 16, 1).experts_bytes ==
        doctest::Approx((2 + 2 * 33.0 / 32) * routed.experts));  // BF16, and FP8 by rows and by columns
}

}  // TEST_SUITE("moe/megatron")
