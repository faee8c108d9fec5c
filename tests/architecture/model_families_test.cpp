// Families of models are a list; a configuration of another is refused by what it is made of.
#include "architecture/model_families.hpp"

#include <doctest/doctest.h>

#include "architecture/parameters.hpp"
#include "base/file.hpp"
#include "tests/support/data.hpp"
#include "tests/support/model_configs.hpp"

TEST_SUITE("architecture/model_families") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("a family that is not known is refused by what it is made of, or by its name") {
  const auto typed = [](const std::string& type, const std::string& entries) {
    return "{\"model_type\": \"" + type + "\", " + entries + R"("hidden_size": 4096, "num_hidden_layers": 32,
      "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000})";
  };
  CHECK(config_refusal(typed("jamba", R"("attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2,
      "mamba_d_state": 16, "num_experts": 16, )")) ==
        ":1: not modelled: mamba layers (attn_layer_period), dense layers between MoE layers (expert_layer_period), "
        "model_type jamba");
  CHECK(config_refusal(typed("rwkv6", ""))
            .starts_with(":1: not modelled: unknown model_type 'rwkv6'; there is: bailing_moe,"));
  CHECK(config_refusal(typed("lama", "")) == ":1: not modelled: unknown model_type 'lama'; did you mean 'llama'?");
  CHECK(config_refusal(R"({"hidden_size": 8})") == ":1: model_type is missing");
}

TEST_CASE("a wrapper that is not known is refused though the model inside it is") {
  const std::string wrapped = R"({"model_type": "mllama", "text_config": )" + kPlainDense + "}";
  CHECK(config_refusal(wrapped).starts_with(":1: not modelled: unknown model_type 'mllama'"));
}

TEST_CASE("Ling counts its shared experts, by the name that it has for them") {
  const Architecture ling =
      load_config(R"({"model_type": "bailing_moe", "embedding_dropout": 0.0, "first_k_dense_replace": 0,
    "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size": 1408, "norm_head": false,
    "num_attention_heads": 16, "num_experts": 64, "num_experts_per_tok": 6, "num_hidden_layers": 28,
    "num_key_value_heads": 4, "num_shared_experts": 2, "use_bias": false, "use_qkv_bias": false, "vocab_size": 126464})");
  CHECK(ling.n_shared_experts == 2);
  CHECK(parameters(ling) == doctest::Approx(16.8e9).epsilon(0.005));
  CHECK(active_parameters(ling) == doctest::Approx(2.75e9).epsilon(0.1));
}

TEST_CASE("ERNIE's experts begin at a layer and have names of their own") {
  const std::string ernie = R"({"model_type": "ernie4_5_moe", "hidden_size": 8192, "intermediate_size": 28672,
    "moe_intermediate_size": 3584, "moe_k": 8, "moe_layer_end_index": 53, "moe_layer_interval": 1,
    "moe_layer_start_index": 3, "moe_num_experts": 64, "moe_num_shared_experts": 0, "moe_use_aux_free": true,
    "num_attention_heads": 64, "num_hidden_layers": 54, "num_key_value_heads": 8, "vocab_size": 103424})";
  CHECK(load_config(ernie).first_main_layer() == 3);
  CHECK(parameters(load_config(ernie)) == doctest::Approx(300e9).epsilon(0.005));
  const Architecture ends = load_config(replaced(ernie, "_end_index\": 53", "_end_index\": 40"));
  CHECK(ends.moe_layers() == 38);
  CHECK_FALSE(ends.layer(41).routed);
}

TEST_CASE("two names of one field must say the same") {
  CHECK(load_config(with(kPlainLatent, "\"num_routed_experts\": 64, \"num_shared_experts\": 1")).n_routed_experts ==
        64);
  CHECK(config_refusal(with(kPlainLatent, "\"num_shared_experts\": 2")) ==
        ":1: num_shared_experts is not what n_shared_experts is, which means the same");
}

TEST_CASE("latent attention has as many keys and values as heads") {
  CHECK(load_config(with(kPlainLatent, "\"head_dim\": 64")).layers == load_config(kPlainLatent).layers);
  CHECK(
      config_refusal(with(kPlainLatent, "\"head_dim\": 80")).find("qk_nope_head_dim, qk_rope_head_dim or their sum") !=
      std::string::npos);
  CHECK(config_refusal(replaced(kPlainLatent, "\"num_key_value_heads\": 16", "\"num_key_value_heads\": 8"))
            .find("num_key_value_heads must be num_attention_heads") != std::string::npos);
}

TEST_CASE("weights of 32 bits are refused, of 16 bits not") {
  CHECK(load_config(with(kPlainDense, "\"torch_dtype\": \"float16\"")).weights == Precision::bf16);
  CHECK(config_refusal(with(kPlainDense, "\"torch_dtype\": \"float32\"")) ==
        ":1: not modelled: weights of 32 bits (torch_dtype)");
}

TEST_CASE("what a family's configuration may ask for and is not modelled is refused by name") {
  const std::string qwen = R"({"model_type": "qwen3_moe", "hidden_size": 4096, "moe_intermediate_size": 1536,
    "num_attention_heads": 64, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 94,
    "num_key_value_heads": 4, "vocab_size": 151936})";
  CHECK(config_refusal(with(qwen, "\"interleave_moe_layer_step\": 2")) ==
        ":1: not modelled: dense layers between MoE layers (interleave_moe_layer_step)");
  CHECK(config_refusal(with(qwen, "\"index_topk\": 2048")) ==
        ":1: not modelled: attention to selected tokens (index_topk)");
  CHECK(config_refusal(with(qwen, "\"shared_expert_intermediate_size\": 512")) ==
        ":1: not modelled: shared experts of a size of their own (shared_expert_intermediate_size)");
  CHECK(config_refusal(with(qwen, "\"shared_expert_intermediate_size\": null, \"moe_layer_freq\": 1")).empty());
}

TEST_CASE("MiniMax-M2 normalizes queries and keys over all heads, and may leave its MTP modules out") {
  const std::string minimax = R"({"model_type": "minimax_m2", "attn_type_list": [1, 1], "head_dim": 128,
    "hidden_size": 3072, "intermediate_size": 1536, "mtp_transformer_layers": 1, "num_attention_heads": 48,
    "num_experts_per_tok": 8, "num_hidden_layers": 2, "num_key_value_heads": 8, "num_local_experts": 256,
    "num_mtp_modules": 3, "qk_norm_type": "per_layer", "shared_intermediate_size": 0, "use_mtp": true,
    "use_qk_norm": true, "use_routing_bias": true, "vocab_size": 200064})";
  const Architecture model = load_config(minimax);
  CHECK(model.qk_norm == QkNorm::per_layer);
  CHECK(model.router_bias);
  CHECK(model.num_nextn_predict_layers == 3);
  CHECK(modules(model)[1].vectors == (48 + 8) * 128);
  CHECK(load_config(replaced(minimax, "\"use_mtp\": true", "\"use_mtp\": false")).num_nextn_predict_layers == 0);
  CHECK(config_refusal(replaced(minimax, "[1, 1]", "[0, 1]")) ==
        ":1: not modelled: lightning attention (attn_type_list)");
}

// Its card: 80 billion parameters in all, 13 of a token.
TEST_CASE("Hunyuan lists for each layer what all layers have alike, and is refused where they differ") {
  const std::string lists = R"("moe_topk": [8, 8], "moe_intermediate_size": [3072, 3072], "num_shared_expert": [1, 1])";
  const std::string hunyuan = R"({"model_type": "hunyuan_v1_moe", "attention_head_dim": 128, "cla_share_factor": 2,
    "hidden_size": 4096, "intermediate_size": 3072, "norm_type": "rms", "num_attention_heads": 32, "num_experts": 64,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "tie_word_embeddings": true, "use_cla": false,
    "use_mixed_mlp_moe": true, "use_qk_norm": true, "vocab_size": 128167, )" +
                              lists + "}";
  const Architecture model = load_config(hunyuan);
  CHECK(parameters(model) == doctest::Approx(80.4e9).epsilon(0.005));
  CHECK(active_parameters(model) == doctest::Approx(13e9).epsilon(0.03));
  CHECK(config_refusal(replaced(hunyuan, "[8, 8]", "[8, 4]")) ==
        ":4: moe_topk must be one number: layers that differ in it are not modelled");
  CHECK(config_refusal(replaced(hunyuan, "\"use_cla\": false", "\"use_cla\": true")) ==
        ":3: not modelled: layers that share keys and values (use_cla)");
}

TEST_CASE("of a model that sees, the language model is read, and what is left out is named") {
  const Architecture model = load_config(R"({"model_type": "qwen3_vl", "vision_config": {"depth": 27},
    "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 4096, "intermediate_size": 12288,
    "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "vocab_size": 151936}})");
  CHECK(model.towers == std::vector<std::string>{"vision_config"});
  CHECK(model.hidden_size == 4096);
}

TEST_CASE("the zoo's page names every family and every description once") {
  const std::string page = content_of(source("model/zoo/README.md"));
  const std::string rest = page.substr(page.find("\n|")), table = rest.substr(0, rest.find("\n\n"));
  const auto times = [&](const std::string& name) {
    std::size_t count = 0;
    for (std::size_t at = table.find(name); at != std::string::npos; at = table.find(name, at + 1)) {
      const auto is_end = [](char c) { return c == ' ' || c == ','; };
      count += is_end(table[at - 1]) && is_end(table[at + name.size()]) ? 1 : 0;
    }
    return count;
  };
  for (const std::string& family : model_types()) CHECK_MESSAGE(times(family) == 1, family);
  for (const std::string& name : names_in("model/zoo")) CHECK_MESSAGE(times(name) == 1, name);
}

}  // TEST_SUITE("architecture/model_families")
