// The modules of a part of a model, by its blocks.
#pragma once

#include <span>
#include <vector>

#include "architecture/blocks.hpp"
#include "architecture/parameters.hpp"

namespace moeline {

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
