#include "architecture/draft.hpp"

#include <algorithm>

namespace moeline {
namespace {

// The last attention that is not limited to some of the keys; where all are, without the limit.
LayerAttention full_attention(const Architecture& model) {
  const auto is_full = [](const Layer& layer) {
    const AttentionKind kind = layer.attention.kind;
    return kind != AttentionKind::none && !has_state(kind) && layer.attention.window == 0 && layer.attention.chunk == 0;
  };
  const auto found = std::find_if(model.layers.rbegin(), model.layers.rend(), is_full);
  LayerAttention attention = found == model.layers.rend() ? model.layers.back().attention : found->attention;
  attention.window = attention.chunk = 0;
  attention.selection = {};
  return attention;
}

}  // namespace

Architecture with_draft(Architecture model, int layers) {
  const int experts_width = model.num_experts_per_tok * model.moe_intermediate_size;
  model.mtp_layer = {.attention = full_attention(model),
                     .dense_width = model.intermediate_size > 0 ? model.intermediate_size : experts_width};
  model.num_nextn_predict_layers = 1;
  model.layers_per_draft = layers;
  std::erase_if(model.stored, [](const StoredWeights& part) { return part.mtp; });
  return model;
}

}  // namespace moeline
