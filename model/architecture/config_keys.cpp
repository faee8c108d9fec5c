#include "architecture/config_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

namespace moeline {
namespace {

const std::vector<std::vector<std::string>>& spellings() {
  static const std::vector<std::vector<std::string>> fields = {
      {"n_routed_experts", "num_experts", "num_local_experts", "num_routed_experts", "moe_num_experts"},
      {"num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts"},
      {"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"},
      {"first_k_dense_replace", "moe_layer_start_index"},
      {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
       "share_expert_dim"},
      {"attn_output_gate", "attention_output_gate", "mla_use_output_gate"},
      {"n_group", "num_expert_group"},
      {"use_routing_bias", "moe_router_enable_expert_bias", "use_moe_router_bias", "moe_use_aux_free"},
      {"num_nextn_predict_layers", "mtp_num_hidden_layers"},
      {"head_dim", "attention_head_dim"},
      {"attention_bias", "qkv_bias", "use_qkv_bias"},
      {"mlp_bias", "use_bias", "use_mlp_bias"}};
  return fields;
}

constexpr std::string_view kNeutral[] = {
    "activation_situ_beta",
    "activation_situ_linear_beta",
    "architectures",
    "attention_value_scale",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "chunk_size_feed_forward",
    "cla_share_factor",  // of use_cla, which asks
    "compression_ratio",
    "dense_list",  // of the head of a classifier
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "ep_size",
    "expand",  // of Nemotron-H, whose code goes by heads and their size
    "exponential_decay_length_penalty",
    "final_logit_softcapping",
    "finetuning_task",
    "hidden_act",
    "hidden_activation",
    "id2label",
    "ignore_index",
    "image_placeholder",
    "index_share_for_mtp_iteration",  // later drafts take the first one's choice: less work than is counted
    "indexer_rope_interleave",
    "initial_context_length",
    "is_decoder",
    "label2id",
    "language_model_only",
    "length_penalty",
    "mamba_hidden_act",
    "max_length",
    "max_model_len",
    "max_position_embeddings",
    "min_length",
    "mla_scale_kv_lora",
    "mla_scale_q_lora",
    "mla_use_nope",  // dimensions and bytes stay, and are not rotated
    "model_max_length",
    "moe_capacity",
    "moe_dropout_prob",
    "moe_gate",
    "moe_norm_min",
    "moe_renormalize",
    "moe_router_activation_func",
    "moe_router_dtype",
    "moe_router_scaling_factor",
    "moe_router_topk_scaling_factor",
    "moe_shared_expert_overlap",
    "no_repeat_ngram_size",
    "norm_head",
    "norm_softmax",
    "norm_topk_prob",
    "num_beam_groups",
    "num_beams",
    "num_logits_to_keep",
    "num_return_sequences",
    "output_attentions",
    "output_gate_type",
    "output_hidden_states",
    "output_router_logits",
    "output_scores",
    "partial_rotary_factor",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "pruned_heads",
    "remove_invalid_values",
    "repetition_penalty",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "return_dict",
    "return_dict_in_generate",
    "rope_interleave",
    "rope_parameters",
    "rope_scaling",
    "rotary_dim",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_dtype",
    "router_jitter_noise",
    "score_function",
    "scoring_func",
    "seq_aux",
    "suppress_tokens",
    "begin_suppress_tokens",
    "swiglu_alpha",
    "swiglu_limit",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "time_step_floor",
    "time_step_limit",
    "time_step_max",
    "time_step_min",
    "time_step_rank",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
    "use_flash_attention",
    "use_gemma_norm",
    "use_grouped_topk",
    "use_mamba_kernels",
    "use_mrope",
    "use_rmsnorm",
    "use_unified_vision_chunk",
    "video_placeholder",
    "vision_soft_tokens_per_image",
    "z_loss_coeff",
};

// Endings and beginnings of names that are neutral whatever stands before or after them.
constexpr std::string_view kNeutralEndings[] = {"_token_id", "_token_ids",    "_token_index",
                                                "_dropout",  "_dropout_prob", "_eps",
                                                "_epsilon",  "_theta",        "initializer_range"};

constexpr const char* kMambaKey = "mamba layers";
constexpr const char* kLinear = "linear attention";
constexpr const char* kSelected = "attention to selected tokens";
constexpr const char* kCompressed = "attention to compressed tokens";
constexpr const char* kInterleaved = "dense layers between MoE layers";
constexpr const char* kSharedKey = "shared experts of a size of their own";
constexpr const char* kLatent = "experts of a smaller hidden size";
constexpr const char* kWindowHeads = "windowed layers with heads of their own";
constexpr const char* kGlobalHeads = "full attention with heads of its own";
constexpr const char* kSharedCache = "layers that share keys and values";
constexpr const char* kGated = "gated attention";
constexpr const char* kStreams = "hyper-connections";
constexpr const char* kMtpKey = "multi-token prediction";
constexpr const char* kCross = "cross attention";
constexpr const char* kRouted = "routed experts";
constexpr const char* kMlaKey = "latent attention";
constexpr const char* kGroupsKey = "groups of experts";
constexpr const char* kWindowsKey = "sliding windows";
constexpr const char* kIdle = "experts that compute nothing";
constexpr const char* kPerLayer = "embeddings of each layer";

const std::vector<KeyMeaning> kMeanings = {
    {"hybrid_override_pattern", kMambaKey, {}},
    {"layers_block_type", kMambaKey, {}},
    {"attn_layer_period", kMambaKey, {"1"}},
    {"attn_layer_offset", kMambaKey, {}},
    {"mamba_num_heads", kMambaKey, {}},
    {"mamba_head_dim", kMambaKey, {}},
    {"mamba_d_state", kMambaKey, {}},
    {"mamba_d_conv", kMambaKey, {}},
    {"mamba_expand", kMambaKey, {}},
    {"mamba_dt_rank", kMambaKey, {}},
    {"mamba_proj_bias", kMambaKey, {}},
    {"mamba_conv_bias", kMambaKey, {}},
    {"mamba_ssm_cache_dtype", kMambaKey, {}},
    {"ssm_state_size", kMambaKey, {}},
    {"ssm_cfg", kMambaKey, {}},
    {"state_size", kMambaKey, {}},
    {"conv_kernel", kMambaKey, {}},
    {"n_groups", kMambaKey, {}},
    {"chunk_size", kMambaKey, {}},
    {"use_conv_bias", kMambaKey, {}},
    {"attn_type_list", "lightning attention", {"1"}},
    {"full_attention_interval", kLinear, {"1"}},
    {"layer_group_size", kLinear, {"1"}},
    {"linear_attn_config", kLinear, {}},
    {"linear_conv_kernel_dim", kLinear, {}},
    {"mamba_ssm_dtype", kLinear, {}},  // of the state of the gated delta net
    {"linear_key_head_dim", kLinear, {}},
    {"linear_num_key_heads", kLinear, {}},
    {"linear_num_value_heads", kLinear, {}},
    {"linear_value_head_dim", kLinear, {}},
    {"index_topk", kSelected, {}},
    {"index_n_heads", kSelected, {}},
    {"index_head_dim", kSelected, {}},
    {"index_topk_freq", kSelected, {}},
    {"index_topk_pattern", kSelected, {}},
    {"index_skip_topk_offset", kSelected, {}},
    {"indexer_types", kSelected, {}},
    {"sparse_attention_config", "sparse attention", {}},
    {"compress_ratios", kCompressed, {}},
    {"attention_chunk_size", "attention within chunks", {}},
    {"block_configs", "layers that differ from each other", {}},
    {"hybrid_layer_pattern", "layers of two kinds of attention", {}},
    {"layer_types", "layers of other attention", {"full_attention"}},
    {"sliding_window_pattern", "a pattern of sliding windows without layer_types", {"1"}},
    {"sliding_window", kWindowsKey, {}},
    {"sliding_window_size", kWindowsKey, {}},
    {"use_sliding_window", kWindowsKey, {}},
    {"max_window_layers", kWindowsKey, {}},
    {"swa_head_dim", kWindowHeads, {}},
    {"swa_num_attention_heads", kWindowHeads, {}},
    {"swa_num_key_value_heads", kWindowHeads, {}},
    {"swa_v_head_dim", kWindowHeads, {}},
    {"add_swa_attention_sink_bias", "attention sinks", {}},
    {"add_full_attention_sink_bias", "attention sinks", {}},
    {"global_head_dim", kGlobalHeads, {}},
    {"num_global_key_value_heads", kGlobalHeads, {}},
    {"attention_k_eq_v", "keys that are the values as well", {}},
    {"num_kv_shared_layers", kSharedCache, {}},
    {"use_cla", kSharedCache, {}},
    {"attn_output_gate", kGated, {}},
    {"attn_res_block_size", "attention to the residuals of other layers", {}},
    {"hc_mult", kStreams, {"1"}},
    {"hc_sinkhorn_iters", kStreams, {}},
    {"o_lora_rank", "a low-rank output projection", {}},
    {"o_groups", "a low-rank output projection", {}},
    {"kv_lora_rank", kMlaKey, {}},
    {"q_lora_rank", kMlaKey, {}},
    {"qk_nope_head_dim", kMlaKey, {}},
    {"qk_rope_head_dim", kMlaKey, {}},
    {"attention_method", "another attention", {"MLA"}},
    {"v_head_dim", "values of a size of their own", {}},
    {"qk_head_dim", "queries and keys of a size of their own", {}},
    {"head_dim", "heads of a size of their own", {}},
    {"num_key_value_heads", "heads of keys and values", {}},
    {"num_attention_groups", "heads of keys and values", {}},
    {"multi_query_attention", "heads of keys and values", {}},
    {"num_attention_heads_per_layer", "layers with heads of their own", {}},
    {"use_qk_norm", "norms of queries and keys", {}},
    {"qk_layernorm", "norms of queries and keys", {}},
    {"qk_norm_type", "norms of queries and keys", {"per_head"}},
    {"attention_bias", "biases of attention", {}},
    {"mlp_bias", "biases of FFNs", {}},
    {"norm_type", "other norms than RMSNorm", {"rms", "hf_rms"}},
    {"use_bidirectional_attention", "attention in both directions", {}},
    {"is_encoder_decoder", "an encoder", {}},
    {"add_cross_attention", kCross, {}},
    {"cross_attention_hidden_size", kCross, {}},
    {"cross_attention_layers", kCross, {}},
    {"n_routed_experts", kRouted, {}},
    {"num_experts_per_tok", kRouted, {}},
    {"moe_intermediate_size", kRouted, {}},
    {"expert_intermediate_size", kRouted, {}},
    {"expert_ffn_hidden_size", kRouted, {}},
    {"enable_moe_block", "experts beside a dense FFN", {}},
    {"use_mixed_mlp_moe", "shared experts", {}},
    {"n_shared_experts", "shared experts", {}},
    {"shared_expert_intermediate_size", kSharedKey, {}},
    {"first_k_dense_replace", "dense layers before the MoE layers", {}},
    {"moe_layer_freq", kInterleaved, {"1"}},
    {"decoder_sparse_step", kInterleaved, {"1"}},
    {"interleave_moe_layer_step", kInterleaved, {"1"}},
    {"moe_layer_interval", kInterleaved, {"1"}},
    {"expert_layer_period", kInterleaved, {"1"}},
    {"expert_layer_offset", kInterleaved, {}},
    {"mlp_only_layers", kInterleaved, {}},
    {"mlp_layer_types", "a list of dense and MoE layers", {"sparse"}},
    {"moe_layers_enum", kInterleaved, {}},
    {"moe_layer_end_index", "dense layers after the MoE layers", {"-1"}},
    {"intermediate_size_mlp", "a second size of dense layers", {}},
    {"dense_intermediate_size", "a second size of dense layers", {}},
    {"use_double_wide_mlp", "a second size of dense layers", {}},
    {"mlp_hidden_act", "FFNs without a gate", {}},
    {"n_group", kGroupsKey, {"1"}},
    {"topk_group", kGroupsKey, {"1"}},
    {"topk_method", "another choice of experts", {"greedy"}},
    {"use_routing_bias", "a bias of the router", {}},
    {"router_bias", "a bias of the router", {}},
    {"no_rope_layers", "attention within chunks", {}},
    {"num_hash_layers", "layers routed by a hash", {}},
    {"moe_latent_size", kLatent, {}},
    {"routed_expert_hidden_size", kLatent, {}},
    {"latent_moe_use_norm", kLatent, {}},
    {"num_layers", "layers of two parts each", {}},
    {"ffn_hidden_size", "a second size of dense layers", {}},
    {"zero_expert_num", kIdle, {}},
    {"zero_expert_type", kIdle, {}},
    {"expert_dtype", "experts of a format that no quantization_config names", {}},
    {"num_nextn_predict_layers", kMtpKey, {}},
    {"num_mtp_modules", kMtpKey, {}},
    {"use_mtp", kMtpKey, {}},
    {"mtp_transformer_layers", kMtpKey, {}},
    {"mtp_hybrid_override_pattern", kMtpKey, {}},
    {"mtp_layers_block_type", kMtpKey, {}},
    {"mtp_use_dedicated_embeddings", kMtpKey, {}},
    {"hidden_size_per_layer_input", kPerLayer, {}},
    {"vocab_size_per_layer_input", kPerLayer, {}},
    {"torch_dtype", "weights of 32 bits", {"bfloat16", "float16"}},
    {"dtype", "weights of 32 bits", {"bfloat16", "float16"}},
};

}  // namespace

std::vector<std::string> names_of(const std::string& field) {
  for (const std::vector<std::string>& names : spellings()) {
    if (names.front() == field) return names;
  }
  return {field};
}

std::string field_of(const std::string& name) {
  for (const std::vector<std::string>& names : spellings()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return names.front();
  }
  return name;
}

bool is_neutral(const std::string& key) {
  static const std::set<std::string_view> neutral(std::begin(kNeutral), std::end(kNeutral));
  return key.starts_with('_') || neutral.contains(key) ||
         std::any_of(std::begin(kNeutralEndings), std::end(kNeutralEndings),
                     [&](std::string_view ending) { return key.ends_with(ending); });
}

std::span<const KeyMeaning> key_meanings() { return kMeanings; }

std::string not_modelled(const std::string& what, const std::string& key) {
  return fmt::format("not modelled: {} ({})", what, key);
}

bool says_nothing(const std::string& word) {
  double value = 1;
  const char* end = word.data() + word.size();
  const bool is_number = std::from_chars(word.data(), end, value).ptr == end;
  return word.empty() || word == "false" || (is_number && value == 0);
}

}  // namespace moeline
