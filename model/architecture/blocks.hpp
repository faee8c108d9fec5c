// What a model is made of, in the order of its forward pass: one list for training, prefill and decode.
#pragma once

#include <span>
#include <vector>

#include "architecture/architecture.hpp"
#include "architecture/parameters.hpp"

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

// The modules of a part of a model, by its blocks.

/// Modules of the model, as many of each as these blocks have, in the order in which they come; of an mtp block its
/// projection. Tables are counted once however many blocks need them, and a tied LM head is the embedding's. With
/// `of_mtp` layers are stored as those of MTP modules are.
[[nodiscard]] std::vector<Module> modules_of(const Architecture& model, std::span<const Block> blocks,
                                             bool of_mtp = false);

/// The name of a layer's attention among the modules: "attention", of one with other weights than the layers have that
/// attend to all keys "windowed attention", and of those with a state "linear attention".
[[nodiscard]] std::string attention_module(const Architecture& model, const LayerAttention& attention);

/// "dense FFN"; of one that is not as wide as the widest "dense FFN of 5376".
[[nodiscard]] std::string dense_module(const Architecture& model, int width);

}  // namespace moeline
