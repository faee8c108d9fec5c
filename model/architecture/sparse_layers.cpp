#include <fmt/format.h>

#include "architecture/config_keys.hpp"
#include "architecture/read_layers.hpp"

namespace moeline {
namespace {

// GLM-5.2: the first of every so many layers from an offset on has an indexer, or those that a list says; the others
// take its choice.
std::vector<bool> own_indexers(const ModelFields& fields, const Architecture& a) {
  const std::vector<std::string> types = word_per_layer(fields, "indexer_types", {"full", "shared"}, a);
  const int every = fields.integer_or("index_topk_freq", 1, kWidest, 1);
  const int offset = fields.integer_or("index_skip_topk_offset", 0, kWidest, 0);
  std::vector<bool> own(a.layers.size());
  for (int i = 0; i < a.num_hidden_layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool by_rule = i < offset || (i - offset + 1) % every == 0;
    own[at] = types.empty() ? by_rule : types[at] == "full";
    if (fields.has("index_topk_freq") && own[at] != by_rule) {
      throw fields.error("indexer_types", "are not what index_topk_freq and index_skip_topk_offset say");
    }
  }
  if (!own.front()) throw fields.error("indexer_types", "must begin with a layer that has an indexer");
  return own;
}

KeySelection read_indexer(const ModelFields& fields) {
  return {.heads = fields.integer("index_n_heads", 1, kMostHeads),
          .dim = fields.integer("index_head_dim", 1, kWidest),
          .top_k = fields.integer("index_topk", 1, kWidest)};
}

}  // namespace

void indexed_layers(const ModelFields& fields, Architecture& a) {
  fields.require({"index_n_heads", "index_head_dim", "index_topk"});
  (void)word_per_layer(fields, "layer_types", {"deepseek_sparse_attention"}, a);
  KeySelection selection = read_indexer(fields);
  if (a.q_lora_rank == 0) throw fields.error("q_lora_rank", "is what the indexer's queries come from");
  const std::vector<bool> own = own_indexers(fields, a);
  for (std::size_t i = 0; i < own.size(); ++i) {
    selection.own = own[i];
    a.layers[i].attention.selection = selection;
  }
  selection.own = true;
  a.mtp_layer.attention.selection = selection;
}

void block_indexed_layers(const ModelFields& fields, Architecture& a) {
  if (fields.integer_or("intermediate_size", 1, kWidest, a.moe_intermediate_size) != a.moe_intermediate_size) {
    throw fields.error("intermediate_size", "is not moe_intermediate_size, and means the same");
  }
  const std::optional<Spec> sparse = fields.map_or_none("sparse_attention_config");
  if (!sparse) return fields.require({"sparse_attention_config"});
  sparse->expect({"sparse_attention_freq", "sparse_block_size", "sparse_disable_index_value", "sparse_index_dim",
                  "sparse_init_block", "sparse_local_block", "sparse_num_index_heads", "sparse_score_type",
                  "sparse_topk_blocks", "use_sparse_attention"});
  if (sparse->has("use_sparse_attention") && !sparse->flag("use_sparse_attention")) return;
  const KeySelection selection = {.heads = sparse->integer("sparse_num_index_heads", 1, kMostHeads),
                                  .dim = sparse->integer("sparse_index_dim", 1, kWidest),
                                  .top_k = sparse->integer("sparse_topk_blocks", 1, kWidest),
                                  .block = sparse->integer("sparse_block_size", 1, kWidest)};
  const auto per_layer = [&](const char* key) {
    std::vector<int> list = sparse->integers(key, 0, 1);
    if (list.size() == a.layers.size()) return list;
    throw sparse->error(key, fmt::format("must have a value for each of the {} layers", a.layers.size()));
  };
  const std::vector<int> has = per_layer("sparse_attention_freq"), no_values = per_layer("sparse_disable_index_value");
  for (std::size_t i = 0; i < has.size(); ++i) {
    if (has[i] == 0) continue;
    if (no_values[i] == 0) {
      throw sparse->error_at("sparse_disable_index_value",
                             not_modelled("values of an indexer", "sparse_disable_index_value"));
    }
    a.layers[i].attention.selection = selection;
  }
  a.mtp_layer = a.layers.back();
}

void compressed_layers(const ModelFields& fields, Architecture& a) {
  fields.require({"q_lora_rank", "o_lora_rank", "o_groups", "head_dim", "qk_rope_head_dim", "sliding_window",
                  "compress_ratios", "index_n_heads", "index_head_dim", "index_topk", "hc_mult"});
  a.q_lora_rank = fields.integer("q_lora_rank", 1, kWidest);
  a.qk_rope_head_dim = fields.integer("qk_rope_head_dim", 1, kWidest);
  a.o_lora_rank = fields.integer("o_lora_rank", 1, kWidest);
  a.o_groups = fields.integer("o_groups", 1, kMostHeads);
  a.hc_mult = fields.integer("hc_mult", 1, 64);
  if (fields.integer_or("hc_sinkhorn_iters", 1, 1000, 20) != 20) {
    refuse(fields, "hc_sinkhorn_iters", "hyper-connections by other than 20 iterations");
  }
  const int hashed = fields.integer_or("num_hash_layers", 0, a.num_hidden_layers, 0);
  for (int i = 0; i < hashed; ++i) a.layers[static_cast<std::size_t>(i)].hashed = true;
  LayerAttention attention = a.layers.front().attention;
  attention.kind = AttentionKind::compressed;
  attention.sinks = true;
  attention.window = fields.integer("sliding_window", 1, kWidest);
  const KeySelection selection = read_indexer(fields);
  const std::vector<int> ratios = fields.integers_or_none("compress_ratios", 0, kWidest);
  const std::size_t layers = a.layers.size(), drafted = static_cast<std::size_t>(a.num_nextn_predict_layers);
  if (ratios.size() != layers && ratios.size() != layers + drafted) {
    throw fields.error("compress_ratios", fmt::format("must have a value for each of the {} layers, and for those of "
                                                      "MTP modules",
                                                      layers));
  }
  constexpr int kIndexed = 4;  // the only ratio whose tokens are chosen among
  const auto of_ratio = [&](int ratio) {
    LayerAttention each = attention;
    each.compress_ratio = ratio;
    if (ratio == kIndexed) each.selection = selection;
    return each;
  };
  for (std::size_t i = 0; i < layers; ++i) a.layers[i].attention = of_ratio(ratios[i]);
  a.mtp_layer.attention = of_ratio(ratios.size() > layers ? ratios[layers] : 0);
}

}  // namespace moeline
