#include "moe/architecture.hpp"

#include <algorithm>

#include "base/file.hpp"
#include "base/spec.hpp"

namespace moeline {

Architecture load_architecture(const std::string& reference, const std::filesystem::path& written_in) {
  constexpr int kLargest = 1 << 22;
  const auto path = find_named("model", reference, "model/zoo", written_in);
  const Spec spec = Spec::load(path);
  spec.expect({"model_type", "num_hidden_layers", "hidden_size", "intermediate_size", "moe_intermediate_size",
               "n_routed_experts", "n_shared_experts", "num_experts_per_tok", "first_k_dense_replace", "n_group",
               "topk_group", "num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
               "qk_rope_head_dim", "v_head_dim", "vocab_size"});
  const auto size = [&](const char* key) { return spec.integer(key, 1, kLargest); };
  (void)spec.choice("model_type", {"deepseek_v3"});
  Architecture a;
  a.name = path.stem().string();
  a.num_hidden_layers = spec.integer("num_hidden_layers", 1, 10000);
  a.hidden_size = size("hidden_size");
  a.intermediate_size = size("intermediate_size");
  a.moe_intermediate_size = size("moe_intermediate_size");
  a.n_routed_experts = spec.integer("n_routed_experts", 2, 4096);
  a.n_shared_experts = spec.integer("n_shared_experts", 1, 64);
  a.num_experts_per_tok = spec.integer("num_experts_per_tok", 1, std::min(64, a.n_routed_experts));
  a.first_k_dense_replace = spec.integer("first_k_dense_replace", 0, a.num_hidden_layers - 1);
  a.n_group = spec.integer("n_group", 1, a.n_routed_experts);
  a.topk_group = spec.integer("topk_group", 1, a.n_group);
  a.num_attention_heads = spec.integer("num_attention_heads", 1, 4096);
  a.q_lora_rank = size("q_lora_rank");
  a.kv_lora_rank = size("kv_lora_rank");
  a.qk_nope_head_dim = size("qk_nope_head_dim");
  a.qk_rope_head_dim = size("qk_rope_head_dim");
  a.v_head_dim = size("v_head_dim");
  a.vocab_size = size("vocab_size");
  if (a.n_routed_experts % a.n_group != 0) throw spec.error("n_group", "must divide n_routed_experts");
  if (a.num_experts_per_tok > a.topk_group * (a.n_routed_experts / a.n_group)) {
    throw spec.error("num_experts_per_tok", "exceeds the experts of topk_group groups");
  }
  return a;
}

}  // namespace moeline
