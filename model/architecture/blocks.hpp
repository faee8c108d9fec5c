// What a model is made of, in the order of its forward pass: one list for training, prefill and decode.
#pragma once

#include <vector>

#include "architecture/architecture.hpp"

namespace moeline {

/// A model is embedding, dense layers, MoE layers, head, and for each MTP module an mtp block, its layers and a head
/// again.
enum class BlockKind {
  embedding,
  dense_layer,
  moe_layer,
  head,  ///< last norm, LM head and loss or sampling
  mtp,   ///< what an MTP module has before its layer
};

[[nodiscard]] const char* name_of(BlockKind kind);
[[nodiscard]] constexpr bool is_layer(BlockKind kind) {
  return kind == BlockKind::dense_layer || kind == BlockKind::moe_layer;
}

/// `layer` counts from the model's first, or in order of execution where MoE layers run alone.
struct Block {
  BlockKind kind = BlockKind::moe_layer;
  int layer = 0;
  Layer content{};  ///< of layers
};

/// Two blocks that run the same kernels on the same shapes, wherever they stand.
[[nodiscard]] inline bool are_alike(const Block& a, const Block& b) {
  return a.kind == b.kind && a.content == b.content;
}

/// A layer of the model. Those behind the last are of MTP modules.
[[nodiscard]] Block layer_of(const Architecture& model, int layer);

/// The whole model with so many runs of an MTP module behind it, the layers of which count on.
[[nodiscard]] std::vector<Block> blocks_of(const Architecture& model, int mtp_modules);

/// `count` main layers alone (Architecture::main_layers), from the first of them and around again.
[[nodiscard]] std::vector<Block> main_layers_alone(const Architecture& model, int count);

}  // namespace moeline
