// Descriptions of models as texts, and what is said about them.
#pragma once

#include <string>

#include "architecture/architecture.hpp"
#include "base/error.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/refusal.hpp"

namespace moeline::testing {

/// A plain model of a family that many write for: dense, routed, and routed with latent attention.
inline const std::string kPlainDense = R"({
  "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 16,
  "num_hidden_layers": 8, "num_key_value_heads": 8, "vocab_size": 32000
})";
inline const std::string kPlainRouted = R"({
  "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 16,
  "num_experts_per_tok": 2, "num_hidden_layers": 8, "num_key_value_heads": 8, "num_local_experts": 8,
  "vocab_size": 32000
})";
inline const std::string kPlainLatent = R"({
  "model_type": "deepseek_v3", "first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944,
  "kv_lora_rank": 512, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 1,
  "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 8, "num_key_value_heads": 16,
  "q_lora_rank": 1024, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 96, "vocab_size": 102400
})";

/// The object with one more entry at its beginning.
inline std::string with(const std::string& config, const std::string& entry) {
  return "{" + entry + "," + config.substr(config.find('{') + 1);
}

inline Architecture load_config(const std::string& config) {
  const TemporaryFolder folder;
  return load_architecture(folder.write("config.json", config));
}

/// What is said about a config.json, behind its name; "" where it loads.
inline std::string config_refusal(const std::string& config) {
  const TemporaryFolder folder;
  const std::string file = folder.write("config.json", config);
  const std::string message = refusal_of([&] { (void)load_architecture(file); });
  if (message.empty()) return "";
  REQUIRE(message.starts_with(file));
  return message.substr(file.size());
}

}  // namespace moeline::testing
