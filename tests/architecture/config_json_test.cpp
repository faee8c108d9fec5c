// Hugging Face's config.json files are read as they are. The texts hold the fields of the published files, shortened by
// what says nothing about size or time.
#include <doctest/doctest.h>

#include "architecture/config_json.hpp"
#include "architecture/parameters.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/model_configs.hpp"

TEST_SUITE("architecture/config_json") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kDeepSeekV3 = R"({
  "architectures": ["DeepseekV3ForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"},
  "bos_token_id": 0,
  "ep_size": 1,
  "first_k_dense_replace": 3,
  "hidden_act": "silu",
  "hidden_size": 7168,
  "intermediate_size": 18432,
  "kv_lora_rank": 512,
  "max_position_embeddings": 163840,
  "model_type": "deepseek_v3",
  "moe_intermediate_size": 2048,
  "moe_layer_freq": 1,
  "n_group": 8,
  "n_routed_experts": 256,
  "n_shared_experts": 1,
  "norm_topk_prob": true,
  "num_attention_heads": 128,
  "num_experts_per_tok": 8,
  "num_hidden_layers": 61,
  "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1,
  "q_lora_rank": 1536,
  "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64,
  "quantization_config": {
    "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]
  },
  "rms_norm_eps": 1e-06,
  "rope_scaling": {"beta_fast": 32, "factor": 40, "mscale": 1.0, "type": "yarn"},
  "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid",
  "tie_word_embeddings": false,
  "topk_group": 4,
  "topk_method": "noaux_tc",
  "torch_dtype": "bfloat16",
  "use_cache": true,
  "v_head_dim": 128,
  "vocab_size": 129280
}
)";

const std::string kQwen3 = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128,
  "hidden_size": 4096, "intermediate_size": 12288, "max_window_layers": 94, "mlp_only_layers": [],
  "model_type": "qwen3_moe", "moe_intermediate_size": 1536, "num_attention_heads": 64, "num_experts": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 94, "num_key_value_heads": 4, "rope_scaling": null,
  "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936
})";

const std::string kGlm = R"({
  "architectures": ["Glm4MoeForCausalLM"], "attention_bias": true, "eos_token_id": [151329, 151336, 151338],
  "first_k_dense_replace": 3, "head_dim": 128, "hidden_size": 5120, "intermediate_size": 12288,
  "model_type": "glm4_moe", "moe_intermediate_size": 1536, "n_group": 1, "n_routed_experts": 160,
  "n_shared_experts": 1, "num_attention_heads": 96, "num_experts_per_tok": 8, "num_hidden_layers": 92,
  "num_key_value_heads": 8, "num_nextn_predict_layers": 1, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05,
  "tie_word_embeddings": false, "topk_group": 1, "use_qk_norm": true, "vocab_size": 151552
})";

const std::string kMixtral = R"({
  "architectures": ["MixtralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "model_type": "mixtral",
  "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "num_local_experts": 8, "output_router_logits": false, "sliding_window": null, "tie_word_embeddings": false,
  "vocab_size": 32000
})";

const std::string kLlama = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "hidden_size": 16384, "intermediate_size": 53248,
  "mlp_bias": false, "model_type": "llama", "num_attention_heads": 128, "num_hidden_layers": 126,
  "num_key_value_heads": 8, "pretraining_tp": 1, "tie_word_embeddings": false, "vocab_size": 128256
})";

const std::string kDeepSeekV2Lite = R"({
  "first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
  "model_type": "deepseek_v2", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1,
  "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6,
  "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy", "v_head_dim": 128,
  "vocab_size": 102400
})";

std::string gpt_oss() {
  std::string types;
  for (int pair = 0; pair < 18; ++pair) {
    if (pair > 0) types += ", ";
    types += R"("sliding_attention", "full_attention")";
  }
  return R"({
  "architectures": ["GptOssForCausalLM"], "attention_bias": true, "experts_per_token": 4, "head_dim": 64,
  "hidden_size": 2880, "intermediate_size": 2880, "layer_types": [)" +
         types + R"(], "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4,
  "num_hidden_layers": 36, "num_key_value_heads": 8, "num_local_experts": 128,
  "quantization_config": {"modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"], "quant_method": "mxfp4"},
  "rms_norm_eps": 1e-05, "sliding_window": 128, "tie_word_embeddings": false, "vocab_size": 201088
})";
}

Architecture load(const std::string& config) { return load_config(config); }
std::string refusal(const std::string& config) { return config_refusal(config); }

std::string without(const std::string& config, const std::string& field) {
  const std::size_t at = config.find("\"" + field + "\"");
  REQUIRE(at != std::string::npos);
  return std::string(config).insert(at + 1, "_");  // private keys say nothing
}

}  // namespace

TEST_CASE("an unchanged config.json describes the same model as the zoo") {
  const std::vector<std::pair<const char*, std::string>> configs = {
      {"deepseek-v3", kDeepSeekV3}, {"qwen3-235b-a22b", kQwen3}, {"glm-4.5", kGlm},
      {"gpt-oss-120b", gpt_oss()},  {"mixtral-8x7b", kMixtral},  {"llama-3.1-405b", kLlama}};
  for (const auto& [name, config] : configs) {
    MOELINE_CAPTURE_BINDING(name);
    Architecture model = load(config);
    model.name = name;
    CHECK(model == load_architecture(name));
  }
}

TEST_CASE("the folder of a config.json stands for it and names the model") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "Mixtral-8x7B-v0.1");
  folder.write("Mixtral-8x7B-v0.1/config.json", kMixtral);
  CHECK(load_architecture(folder / "Mixtral-8x7B-v0.1").name == "Mixtral-8x7B-v0.1");
  CHECK(load_architecture(folder / "Mixtral-8x7B-v0.1/").num_hidden_layers == 32);
  CHECK(load_architecture("Mixtral-8x7B-v0.1", folder.path() / "scenario.yaml").hidden_size == 4096);
  CHECK(load_architecture(folder / "Mixtral-8x7B-v0.1/config.json").name == "Mixtral-8x7B-v0.1");
}

TEST_CASE("the fields may stand in text_config, with the rest around it") {
  const std::string wrapped =
      R"({"model_type": "qwen3_vl_moe", "tie_word_embeddings": true, "vision_config": {"hidden_size": 1152}, )"
      R"("text_config": )" +
      without(kQwen3, "tie_word_embeddings") + "}";
  const Architecture model = load(wrapped);
  CHECK(model.hidden_size == 4096);
  CHECK(model.n_routed_experts == 128);
  CHECK(model.model_type == "qwen3_moe");
  CHECK(model.tie_word_embeddings);
  CHECK(load(replaced(kMixtral, "{", "{\"text_config\": null, ")).hidden_size == 4096);
}

TEST_CASE("JSON that YAML would not take is read: tabs, no spaces, surrogate pairs, exponents, a byte order mark") {
  const Architecture plain = load(kMixtral);
  std::string tabs = kMixtral, dense;
  for (std::size_t at = tabs.find("  "); at != std::string::npos; at = tabs.find("  ")) tabs.replace(at, 2, 1, '\t');
  for (const char c : kMixtral) dense += c == ' ' || c == '\n' ? std::string() : std::string(1, c);
  for (const std::string& text :
       {tabs, dense, "\xEF\xBB\xBF" + kMixtral, replaced(kMixtral, "\n", "\r\n"),
        replaced(kMixtral, "\"hidden_size\"", R"("_x": "\ud83d\ude00 \/ \\ud83d \u00e9 {% # - %}", "hidden_size")"),
        replaced(kMixtral, "\"hidden_size\"", R"("_y": [1e-05, -1.5E+3, NaN, {}], "hidden_size")"),
        replaced(kMixtral, "\"hidden_size\"", "\"_z\": \"" + std::string(5000, 'z') + "\", \"hidden_size\"")}) {
    Architecture model = load(text);
    model.name = plain.name;
    CHECK(model == plain);
  }
}

TEST_CASE("surrogates become question marks and everything else keeps its place") {
  CHECK(json_as_yaml("\t\"\\ud83d\\uDE00\"") == " \"?     ?     \"");
  CHECK(json_as_yaml(R"("\\ud83d \u00e9 \ud7ff \")") == R"("\\ud83d \u00e9 \ud7ff \")");
  CHECK(json_as_yaml("\\ud8") == "\\ud8");
}

TEST_CASE("DeepSeek-V2-Lite projects queries directly and chooses among all experts") {
  const Architecture model = load(kDeepSeekV2Lite);
  CHECK(model.is_mla());
  CHECK(model.q_lora_rank == 0);
  CHECK(model.n_group == 1);
  CHECK(parameters(model) == 15'706'484'224);  // as counted from its published weights
  CHECK(load(replaced(kDeepSeekV2Lite, "\"n_group\": 1", "\"n_group\": 8")).n_group == 1);
}

TEST_CASE("groups that are null or absent are one group") {
  CHECK(load(replaced(kGlm, "\"n_group\": 1", "\"n_group\": null")).n_group == 1);
  CHECK(load(without(without(kGlm, "n_group"), "topk_group")).topk_group == 1);
}

TEST_CASE("keys and values have their own number of heads, which only LLaMA may leave out") {
  CHECK(load(without(kLlama, "num_key_value_heads")).layer(0).attention.kv_heads == 128);
  CHECK(refusal(without(kMixtral, "num_key_value_heads")) == ":1: num_key_value_heads is missing");
}

TEST_CASE("a head's dimension follows from the hidden size where it is absent") {
  CHECK(load(kMixtral).layer(0).attention.qk_dim == 128);
  CHECK(refusal(replaced(kMixtral, "\"hidden_size\": 4096", "\"hidden_size\": 4100")) ==
        ":1: head_dim is missing, and num_attention_heads does not divide hidden_size");
}

TEST_CASE("layers have windows as layer_types lists them, or as the family alternates, or all of them") {
  const Architecture listed = load(gpt_oss());
  CHECK(listed.layer(0).attention.window == 128);
  CHECK(listed.layer(35).attention.window == 0);
  CHECK(load(without(gpt_oss(), "layer_types")).layers == listed.layers);
  const Architecture all = load(replaced(kMixtral, "\"sliding_window\": null", "\"sliding_window\": 4096"));
  for (const Layer& layer : all.layers) CHECK(layer.attention.window == 4096);
  std::string qwen = replaced(kQwen3, "\"sliding_window\": null", "\"sliding_window\": 4096");
  CHECK(load(qwen).layer(93).attention.window == 0);
  qwen = replaced(qwen, "\"use_sliding_window\": false", "\"use_sliding_window\": true");
  qwen = replaced(qwen, "\"max_window_layers\": 94", "\"max_window_layers\": 90");
  CHECK(load(qwen).layer(89).attention.window == 0);
  CHECK(load(qwen).layer(90).attention.window == 4096);
}

TEST_CASE("dense layers stand where Qwen lists them, or at each step") {
  CHECK(load(replaced(kQwen3, "\"mlp_only_layers\": []", "\"mlp_only_layers\": [1, 0]")).first_main_layer() == 2);
  const Architecture listed = load(replaced(kQwen3, "\"mlp_only_layers\": []", "\"mlp_only_layers\": [0, 5]"));
  CHECK(listed.moe_layers() == 92);
  CHECK(listed.first_main_layer() == 1);
  CHECK(listed.main_layers() == 93);
  CHECK(listed.layer(5).dense_width == 12288);
  const Architecture stepped = load(replaced(kQwen3, "\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2"));
  CHECK(stepped.moe_layers() == 47);
  CHECK(stepped.layer(1).routed);
}

TEST_CASE("one message names every missing field and what it was looked for under") {
  CHECK(refusal(R"({"model_type": "qwen3", "num_labels": null})") ==
        ":1: num_hidden_layers, hidden_size, vocab_size, num_attention_heads, num_key_value_heads, intermediate_size "
        "are missing");
  CHECK(refusal(without(kQwen3, "num_experts"))
            .starts_with(":1: n_routed_experts (or num_experts, num_local_experts, num_routed_experts"));
  CHECK(refusal(without(without(kMixtral, "intermediate_size"), "num_experts_per_tok"))
            .ends_with("intermediate_size are missing"));
  CHECK(refusal(without(kDeepSeekV3, "moe_intermediate_size")) == ":1: moe_intermediate_size is missing");
  CHECK(refusal(without(kDeepSeekV3, "q_lora_rank")) == ":1: q_lora_rank is missing");
  CHECK(refusal(R"({"text_config": {"hidden_size": 8, "model_type": "llama"}, "vocab_size": 9})") ==
        ":1: num_hidden_layers, num_attention_heads, intermediate_size are missing in text_config and around it");
}

TEST_CASE("layers of other attention are refused, and a list of layers has one entry for each") {
  CHECK(refusal(replaced(gpt_oss(), "sliding_attention", "linear_attention")) ==
        ":3: not modelled: layers of linear_attention (layer_types)");
  CHECK(refusal(replaced(gpt_oss(), "\"sliding_attention\", ", "")) ==
        ":3: layer_types must have num_hidden_layers values");
}

TEST_CASE("absurd numbers and wrong types are refused at their line") {
  CHECK(refusal(replaced(kDeepSeekV3, "\"hidden_size\": 7168", "\"hidden_size\": 1e9")) ==
        ":10: hidden_size must be a whole number, not '1e9'");
  CHECK(refusal(replaced(kDeepSeekV3, "\"hidden_size\": 7168", "\"hidden_size\": 71680000")) ==
        ":10: hidden_size must be from 1 to 4194304, not 71680000");
  CHECK(refusal(replaced(kDeepSeekV3, "\"hidden_size\": 7168", "\"hidden_size\": \"7168\"")) ==
        ":10: hidden_size must be a whole number, not the text '7168'");
  CHECK(refusal(replaced(kDeepSeekV3, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": 0")) ==
        ":36: tie_word_embeddings must be true or false, not '0'");
  CHECK(refusal(replaced(kDeepSeekV3, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": \"true\"")) ==
        ":36: tie_word_embeddings must be true or false, not the text 'true'");
  CHECK(refusal(replaced(kMixtral, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7")) ==
        ":3: num_key_value_heads must divide num_attention_heads");
  CHECK(refusal("[1, 2]") == ":1: must be a mapping of keys to values");
  CHECK(refusal("{\"hidden_size\": ").find("not valid YAML") != std::string::npos);
}

}  // TEST_SUITE("architecture/config_json")
