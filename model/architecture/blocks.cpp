#include "architecture/blocks.hpp"

namespace moeline {

const char* name_of(BlockKind kind) {
  switch (kind) {
    case BlockKind::embedding:
      return "embedding";
    case BlockKind::dense_layer:
      return "dense";
    case BlockKind::moe_layer:
      return "moe";
    case BlockKind::head:
      return "head";
    case BlockKind::mtp:
      return "mtp";
  }
  return "";
}

Block layer_of(const Architecture& model, int layer) {
  const Layer& content = layer < model.num_hidden_layers ? model.layer(layer) : model.mtp_layer;
  return {content.routed ? BlockKind::moe_layer : BlockKind::dense_layer, layer, content};
}

std::vector<Block> blocks_of(const Architecture& model, int mtp_modules) {
  const int layers = model.num_hidden_layers;
  std::vector<Block> blocks = {{BlockKind::embedding, 0}};
  for (int layer = 0; layer < layers; ++layer) blocks.push_back(layer_of(model, layer));
  blocks.push_back({BlockKind::head, layers - 1});
  for (int first = layers; first < layers + mtp_modules * model.layers_per_draft; first += model.layers_per_draft) {
    blocks.push_back({BlockKind::mtp, first});
    for (int i = 0; i < model.layers_per_draft; ++i) blocks.push_back(layer_of(model, first + i));
    blocks.push_back({BlockKind::head, blocks.back().layer});
  }
  return blocks;
}

std::vector<Block> main_layers_alone(const Architecture& model, int count) {
  std::vector<Block> blocks;
  for (int layer = 0; layer < count; ++layer) {
    blocks.push_back(layer_of(model, model.first_main_layer() + layer % model.main_layers()));
    blocks.back().layer = layer;
  }
  return blocks;
}

}  // namespace moeline
