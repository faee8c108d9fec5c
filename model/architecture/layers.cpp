#include "architecture/layers.hpp"

#include <fmt/format.h>

namespace moeline {
namespace {

std::string kind_of(const LayerAttention& attention) {
  switch (attention.kind) {
    case AttentionKind::none:
      return "none";
    case AttentionKind::gqa:
      return attention.kv_heads == attention.heads ? "MHA" : "GQA";
    case AttentionKind::mla:
      return "MLA";
    case AttentionKind::compressed:
      return "compressed attention";
    case AttentionKind::delta_net:
      return "gated delta net";
    case AttentionKind::kda:
      return "Kimi delta attention";
    case AttentionKind::lightning:
      return "lightning attention";
    case AttentionKind::mamba:
      return "Mamba-2";
  }
  return "";
}

}  // namespace

std::string describe(const LayerAttention& attention) {
  std::string text = kind_of(attention);
  const KeySelection& selection = attention.selection;
  if (attention.gated && !has_state(attention.kind)) text += ", gated";
  if (attention.window > 0) text += fmt::format(", window {}", attention.window);
  if (attention.chunk > 0 && !has_state(attention.kind)) text += fmt::format(", chunks of {}", attention.chunk);
  if (attention.compress_ratio > 0) text += fmt::format(", 1 of {} tokens", attention.compress_ratio);
  if (selection.heads > 0) {
    text += fmt::format(", {} selected keys{}", selection.top_k * selection.block,
                        selection.own ? "" : " (of an earlier layer)");
  }
  return text;
}

}  // namespace moeline
