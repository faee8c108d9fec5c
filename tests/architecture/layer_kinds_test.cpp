// Layers that differ: which attention each has, what it keeps of a sequence, and what it weighs, by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "architecture/blocks.hpp"
#include "architecture/parameters.hpp"
#include "tests/support/model_configs.hpp"

TEST_SUITE("architecture/layer_kinds") {

using namespace moeline;
using namespace moeline::testing;

namespace {

int count(const Architecture& model, AttentionKind kind) {
  const auto is = [&](const Layer& layer) { return layer.attention.kind == kind; };
  return static_cast<int>(std::count_if(model.layers.begin(), model.layers.end(), is));
}

Module module_of(const Architecture& model, const std::string& name) {
  for (const Module& module : modules(model)) {
    if (module.name == name) return module;
  }
  FAIL(name << " is missing");
  return {};
}

}  // namespace

TEST_CASE("of Qwen3-Next each fourth layer attends to all keys, and the others keep a state of one size") {
  const Architecture model = load_architecture("qwen3-next-80b-a3b");
  CHECK(count(model, AttentionKind::delta_net) == 36);
  CHECK(model.layer(3).attention.kind == AttentionKind::gqa);
  CHECK(model.layer(3).attention.gated);
  const double state =
      32.0 * 128 * 128 * 4 + 3.0 * (2 * 16 * 128 + 32 * 128) * 2;  // FP32, and the convolution's inputs
  CHECK(state_bytes(model) == 36 * state);
  CHECK(kv_bytes_per_token(model) == 12 * 2 * 2 * 256 * 2);
  CHECK(kv_bytes(model, 100) - kv_bytes(model, 99) == kv_bytes_per_token(model));
  // Queries, keys, values and gate, two numbers per head, the output; the convolution, decays and a norm.
  const Module linear = module_of(model, kLinearAttention);
  CHECK(linear.matrices == 2048 * (2 * 2048.0 + 2 * 4096 + 2 * 32) + 4096 * 2048.0);
  CHECK(linear.vectors == 4 * (2 * 2048 + 4096) + 2 * 32 + 128);
  CHECK(module_of(model, kAttention).matrices == 2048 * 256 * (2 * 16.0 + 2 + 2 + 16));  // queries with their gates
  CHECK(module_of(model, kRouter).matrices == 2048 * (512 + 1));                         // and the shared expert's gate
}

TEST_CASE("Nemotron's mixers and experts are joined where they follow each other") {
  const Architecture model = load_architecture("nemotron-3-nano");  // MEMEM*EMEMEM*E...: 23 mixers M, 6 of *, 23 of E
  CHECK(model.num_hidden_layers == 29);
  CHECK(model.moe_layers() == 23);
  CHECK(count(model, AttentionKind::mamba) == 23);
  CHECK_FALSE(model.layer(2).has_ffn());  // the M before the first *
  CHECK(model.layer(3).attention.kind == AttentionKind::gqa);
  CHECK(model.layer(3).routed);
  CHECK(model.numbers[3] == LayerNumbers{5, 6});
  CHECK(module_of(model, kNormVectors).count == 52 + 1);
  CHECK(module_of(model, kRoutedExperts).matrices == 2 * 2688.0 * 1856);  // without a gate
  const double inner = 64 * 64;
  const Module mamba = module_of(model, kLinearAttention);
  CHECK(mamba.matrices == 2688 * (2 * inner + 2 * 8 * 128 + 64) + inner * 2688);
  CHECK(parameters(model) == doctest::Approx(31.6e9).epsilon(0.002));
}

TEST_CASE("an indexer adds its matrices and a key per token to latent attention") {
  const Architecture dense = load_architecture("deepseek-v3"), sparse = load_architecture("deepseek-v3.2");
  const double indexer = 1536.0 * 64 * 128 + 7168 * 128 + 7168 * 64 + 2 * 128;
  CHECK(parameters(sparse) - parameters(dense) == 61 * indexer);
  CHECK(kv_bytes_per_token(sparse) - kv_bytes_per_token(dense) == 61 * (128 + 4));
  // Beyond 2048 keys the core's work stays, and only scores grow: 64 heads of 128 instead of 128 of 320.
  const LayerAttention& a = sparse.layer(0).attention;
  CHECK(attention_core_flops(a, 1 << 17) < attention_core_flops(dense.layer(0).attention, 1 << 17) / 3);
  CHECK(attention_core_flops(a, 1024) > attention_core_flops(dense.layer(0).attention, 1024));
}

TEST_CASE("layers of GLM-5.2 share an indexer's choice, and only those with one have its weights and keys") {
  const Architecture model = load_architecture("glm-5.2");
  CHECK(module_of(model, kIndexer).count == 21);
  CHECK(model.layer(2).attention.selection.own);
  CHECK_FALSE(model.layer(3).attention.selection.own);
  CHECK(kv_bytes_per_token(model) == 78 * 576 * 2 + 21 * 132);
  CHECK(model.mtp_layer.attention.selection.own);
}

TEST_CASE("compressed attention keeps a window, one latent of so many tokens, and what is not compressed yet") {
  const Architecture model = load_architecture("deepseek-v4-flash");
  CHECK(model.kv_cache == Precision::fp8);
  const double row = 448 + 64 * 2 + 8;  // as SGLang and vLLM keep it
  const auto bytes = [&](double tokens) { return kv_bytes(model, tokens, Precision::fp8); };
  CHECK(bytes(8192) - bytes(4096) == doctest::Approx(4096 * (21 * (row + 132) / 4 + 20 * row / 128)));
  const double states = 21 * (65536 + 16384) + 20 * 524288;  // FP32, of blocks of 4 (twice) and of 128
  CHECK(bytes(4096) - 4096 * (21 * (row + 132) / 4 + 20 * row / 128) == doctest::Approx(43 * 128 * row + states));
  CHECK(model.layer(2).hashed);
  CHECK_FALSE(model.layer(3).hashed);
  CHECK(parameters(model) == doctest::Approx(284e9).epsilon(0.002));
  CHECK(active_parameters(model) == doctest::Approx(13e9).epsilon(0.03));
}

TEST_CASE("of Llama-4 three of four layers see chunks, and every second one has experts") {
  const Architecture model = load_architecture("llama-4-maverick");
  const auto chunked = [](const Layer& layer) { return layer.attention.chunk == 8192; };
  CHECK(std::count_if(model.layers.begin(), model.layers.end(), chunked) == 36);
  CHECK(model.layer(3).attention.chunk == 0);
  CHECK(model.moe_layers() == 24);
  CHECK(model.layer(0).dense_width == 16384);
  const double layer = 2 * 8 * 128 * 2;
  CHECK(kv_bytes(model, 1 << 20) == (36 * 8192.0 + 12 * (1 << 20)) * layer);
  CHECK(active_parameters(model) == doctest::Approx(17e9).epsilon(0.06));
}

TEST_CASE("Kimi-K3's experts are of a smaller hidden size, and three of four layers keep a state") {
  const Architecture model = load_architecture("kimi-k3");
  CHECK(count(model, AttentionKind::kda) == 69);
  CHECK(model.expert_hidden_size() == 3584);
  CHECK(module_of(model, kRoutedExperts).matrices == 3 * 3584.0 * 3072);
  CHECK(module_of(model, kLatentProjections).matrices == 2 * 7168.0 * 3584);
  CHECK(state_bytes(model) == 69 * (96.0 * 128 * 128 * 4 + 3 * 3 * 12288 * 2));
  CHECK(parameters(model) == doctest::Approx(2.8e12).epsilon(0.01));
}

// arXiv 2509.01322: 560 billion parameters in all, 27 of a token on average.
TEST_CASE(
    "of LongCat-Flash every second layer has experts beside its dense network, and some of those compute nothing") {
  const Architecture model = load_architecture("longcat-flash");
  CHECK(model.num_hidden_layers == 56);
  CHECK(model.moe_layers() == 28);
  CHECK(model.num_experts_per_tok == 8);  // of twelve choices among 512 experts and 256 that compute nothing
  CHECK(module_of(model, kRouter).matrices == 6144 * (512 + 256));
  CHECK(module_of(model, kSharedExperts).matrices == 3.0 * 6144 * 12288);
  CHECK(parameters(model) == doctest::Approx(560e9).epsilon(0.005));
  CHECK(active_parameters(model) == doctest::Approx(27e9).epsilon(0.02));
}

TEST_CASE("what differs is told by its own name, what is alike by one") {
  const Architecture gpt = load_architecture("gpt-oss-120b");  // windows have no weights
  CHECK(attention_module(gpt, gpt.layer(0).attention) == attention_module(gpt, gpt.layer(1).attention));
  CHECK(describe(gpt.layer(0).attention) == "GQA, window 128");
  CHECK(describe(load_architecture("glm-5.2").layer(3).attention) == "MLA, 2048 selected keys (of an earlier layer)");
  CHECK(describe(load_architecture("nemotron-3-nano").layer(0).attention) == "Mamba-2");
}

TEST_CASE("lists of layers that contradict each other are refused") {
  const std::string qwen = R"({"model_type": "qwen3_next", "hidden_size": 2048, "moe_intermediate_size": 512,
    "num_attention_heads": 16, "num_experts": 512, "num_experts_per_tok": 10, "num_hidden_layers": 4, "head_dim": 256,
    "num_key_value_heads": 2, "vocab_size": 151936, "linear_num_value_heads": 32, "linear_num_key_heads": 16,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4, "layer_types": ["linear_attention", "linear_attention", "linear_attention",
    "full_attention"]})";
  CHECK(count(load_config(qwen), AttentionKind::delta_net) == 3);
  CHECK(config_refusal(replaced(qwen, "\"full_attention_interval\": 4", "\"full_attention_interval\": 2"))
            .find("layer_types are not what full_attention_interval says") != std::string::npos);
  CHECK(config_refusal(replaced(qwen, "\"linear_num_key_heads\": 16", "\"linear_num_key_heads\": 12"))
            .find("linear_num_key_heads must divide linear_num_value_heads") != std::string::npos);
  CHECK(
      config_refusal(replaced(qwen, "\"linear_conv_kernel_dim\": 4,", "")).find("linear_conv_kernel_dim is missing") !=
      std::string::npos);
}

}  // TEST_SUITE("architecture/layer_kinds")
