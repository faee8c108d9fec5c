#include "architecture/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "architecture/matrices.hpp"

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

namespace {

constexpr const char* kEmbedding = "embedding";
constexpr const char* kHead = "LM head";

LayerAttention weights_of(LayerAttention attention) {
  attention.window = attention.chunk = 0;
  attention.selection = {};
  return attention;
}

// Attention to all keys, or what comes next to it.
const LayerAttention* usual_attention(const Architecture& model) {
  const LayerAttention* usual = nullptr;
  for (const Layer& layer : model.layers) {
    const LayerAttention& each = layer.attention;
    if (each.kind == AttentionKind::none || has_state(each.kind)) continue;
    if (each.window == 0 && each.chunk == 0) return &each;
    if (usual == nullptr) usual = &each;
  }
  return usual;
}

double norms_before_core(const Architecture& a, const LayerAttention& attention) {
  if (a.qk_norm == QkNorm::none) return 0;
  if (a.qk_norm == QkNorm::per_head) return 2.0 * attention.qk_dim;
  return 1.0 * (attention.heads + attention.kv_heads) * attention.qk_dim;
}

double gqa_vectors(const Architecture& a, const LayerAttention& attention) {
  const double query = 1.0 * attention.heads * attention.qk_dim;
  const double key = 1.0 * attention.kv_heads * attention.qk_dim;
  return norms_before_core(a, attention) + (a.attention_bias ? query + 2 * key : 0) +
         (attention.sinks ? attention.heads : 0) + (a.output_bias ? a.hidden_size : 0);
}

double mla_vectors(const Architecture& a) {
  const double latents = a.q_lora_rank + a.kv_lora_rank;
  return latents + (a.attention_bias ? latents + a.qk_rope_head_dim : 0) + (a.output_bias ? a.hidden_size : 0);
}

// Columns that the convolution before the state goes over.
double convolved(const LayerAttention& attention) {
  return 2.0 * attention.kv_heads * attention.qk_dim + 1.0 * attention.heads * attention.v_dim;
}

// Norms of latents, sinks; of the compressor a bias for every place in a block, and a norm.
double compressed_vectors(const Architecture& a, const LayerAttention& attention) {
  const double ratio = attention.compress_ratio;
  const double compressor = ratio > 0 ? ratio * overlap_of(attention) * attention.qk_dim + attention.qk_dim : 0;
  return a.q_lora_rank + attention.qk_dim + (attention.sinks ? attention.heads : 0) + compressor;
}

// Norms of an indexer's keys, DeepSeek's with a bias, MiniMax's of its queries as well.
double indexer_vectors(const LayerAttention& attention) {
  const KeySelection& selection = attention.selection;
  if (attention.kind != AttentionKind::compressed) return 2.0 * selection.dim;
  return attention.compress_ratio * overlap_of(attention) * selection.dim + selection.dim;
}

double attention_vectors(const Architecture& a, const LayerAttention& attention) {
  switch (attention.kind) {
    case AttentionKind::none:
      return 0;
    case AttentionKind::gqa:
      return gqa_vectors(a, attention);
    case AttentionKind::mla:
      return mla_vectors(a);
    case AttentionKind::compressed:
      return compressed_vectors(a, attention);
    case AttentionKind::kda:  // convolutions, a decay of each head and of each channel, the norm of an output head
      return convolved(attention) * attention.conv + attention.heads + 1.0 * attention.kv_heads * attention.qk_dim +
             attention.v_dim;
    case AttentionKind::lightning:
      return 1.0 * attention.heads * attention.v_dim;
    case AttentionKind::delta_net:  // decay and step of each head, the norm of an output head
      return convolved(attention) * attention.conv + 2.0 * attention.heads + attention.v_dim;
    case AttentionKind::mamba:  // with the convolution's bias, decay, step and skip of each head, the output's norm
      return convolved(attention) * (attention.conv + 1) + 3.0 * attention.heads +
             1.0 * attention.heads * attention.v_dim;
  }
  return 0;
}

// Modules of so many blocks, those of one name together.
class ModuleList {
 public:
  explicit ModuleList(const Architecture& model, bool of_mtp) : a_(model), mtp_(of_mtp) {}

  // The block and those like it behind it.
  void add(const Block& block, double times) {
    times_ = times;
    switch (block.kind) {
      case BlockKind::embedding:
        return add_table(kEmbedding);
      case BlockKind::head:
        add_table(a_.tie_word_embeddings ? kEmbedding : kHead);
        if (a_.hc_mult > 1) add_mixes(1, 1.0 * a_.hc_mult * a_.hc_mult * a_.hidden_size, a_.hc_mult + 1);
        if (a_.attn_res_block_size > 0) add({kResiduals, 1, 0, 2.0 * a_.hidden_size});
        return add({kNormVectors, 1, 0, 1.0 * a_.hidden_size});
      case BlockKind::mtp:
        add_table(kEmbedding);
        return add({kMtpMatrix, 1, 2.0 * a_.hidden_size * a_.hidden_size, 2.0 * a_.hidden_size});
      case BlockKind::dense_layer:
      case BlockKind::moe_layer:
        return add_layer(block.content);
    }
  }

  std::vector<Module> finish() {
    for (Module& module : list_) {
      for (const StoredWeights& part : a_.stored) {
        if (part.module == module.name && part.mtp == mtp_) module.stored.push_back(part);
      }
    }
    return std::move(list_);
  }

 private:
  void add(Module module) {
    if (module.count == 0) return;
    module.count *= times_;
    const auto same =
        std::find_if(list_.begin(), list_.end(), [&](const Module& each) { return each.name == module.name; });
    if (same == list_.end()) return list_.push_back(std::move(module));
    same->count += module.count;
  }

  void add_table(const char* name) {
    if (std::any_of(list_.begin(), list_.end(), [&](const Module& each) { return each.name == name; })) return;
    Module table{name, 1, 1.0 * a_.vocab_size * a_.hidden_size};
    const bool embeds = std::string_view(name) == kEmbedding;
    if (embeds) table.active = a_.tie_word_embeddings ? 1 : 0;  // tied, it is the LM head as well
    add(std::move(table));
  }

  void add_matrices(const std::string& name, double count, const std::vector<Matrix>& matrices, Precision type,
                    double vectors = 0, double active = 1) {
    Module module{name, count, parameters_of(matrices), vectors, active};
    module.type = type;
    add(std::move(module));
  }

  void add_attention(const LayerAttention& attention) {
    if (attention.kind == AttentionKind::none) return;
    Module module{attention_module(a_, attention), 1, parameters_of(attention_matrices(a_, attention)),
                  attention_vectors(a_, attention)};
    module.type = a_.weights;
    module.attention = attention;
    add(std::move(module));
    const KeySelection& selection = attention.selection;
    if (selection.heads > 0 && selection.own) {
      add_matrices(kIndexer, 1, indexer_matrices(a_, attention), a_.weights, indexer_vectors(attention));
    }
  }

  void add_latent() {
    const double latent = a_.moe_latent_size;
    add({kLatentProjections, 1, 2 * a_.hidden_size * latent, a_.latent_norm ? latent : 0});
  }

  void add_experts(const Layer& layer) {
    const double hidden = a_.hidden_size;
    const double experts = a_.n_routed_experts;
    const double scores = experts + a_.zero_expert_num;
    add({kRouter, 1, hidden * (scores + (a_.shared_gate ? 1 : 0)), a_.router_bias && !layer.hashed ? scores : 0});
    if (a_.moe_latent_size > 0) add_latent();
    const double biases = a_.expert_bias ? 2.0 * a_.moe_intermediate_size + hidden : 0;
    add_matrices(kRoutedExperts, experts, expert_matrices(a_), a_.expert_weights, biases,
                 a_.num_experts_per_tok / experts);
    add_matrices(kSharedExperts, a_.n_shared_experts, shared_matrices(a_), a_.weights);
  }

  // Before and behind each part of a layer the hidden states are mixed: by hc_mult x (2 + hc_mult) numbers that follow
  // from all of them, in FP32; or those kept from earlier layers are weighed by one number each.
  void add_streams(double parts) {
    const double hidden = a_.hidden_size;
    if (a_.attn_res_block_size > 0) add({kResiduals, parts, 0, 2 * hidden});
    if (a_.hc_mult == 1) return;
    const double mixes = a_.hc_mult * (2.0 + a_.hc_mult);
    add_mixes(parts, mixes * a_.hc_mult * hidden, mixes + 3);
  }

  void add_mixes(double count, double matrices, double vectors) {
    constexpr double kFp32 = 4;
    Module module{kResiduals, count, matrices, vectors};
    module.stored = {{kResiduals, mtp_, Precision::bf16, kFp32, 1}};
    add(std::move(module));
  }

  void add_layer(const Layer& layer) {
    add_attention(layer.attention);
    const double parts = (layer.attention.kind == AttentionKind::none ? 0 : 1) + (layer.has_ffn() ? 1 : 0);
    add({kNormVectors, parts * (a_.output_norms ? 2 : 1), 0, 1.0 * a_.hidden_size});
    add_streams(parts);
    if (layer.routed) return add_experts(layer);
    if (layer.dense_width == 0) return;
    add_matrices(dense_module(a_, layer.dense_width), 1, dense_matrices(a_, layer.dense_width), a_.weights);
  }

  const Architecture& a_;
  bool mtp_;
  double times_ = 1;
  std::vector<Module> list_;
};

// Layers alike from the first block on; their matrices are listed once.
std::size_t run_length(std::span<const Block> blocks) {
  if (!is_layer(blocks.front().kind)) return 1;
  const auto other =
      std::find_if(blocks.begin(), blocks.end(), [&](const Block& each) { return !are_alike(each, blocks.front()); });
  return static_cast<std::size_t>(other - blocks.begin());
}

}  // namespace

std::vector<Module> modules_of(const Architecture& model, std::span<const Block> blocks, bool of_mtp) {
  ModuleList list(model, of_mtp);
  for (std::size_t i = 0; i < blocks.size();) {
    const std::size_t count = run_length(blocks.subspan(i));
    list.add(blocks[i], static_cast<double>(count));
    i += count;
  }
  return list.finish();
}

std::string attention_module(const Architecture& model, const LayerAttention& attention) {
  if (has_state(attention.kind)) return kLinearAttention;
  if (attention.kind == AttentionKind::compressed) {
    return attention.compress_ratio > 0 ? fmt::format("attention, 1 of {}", attention.compress_ratio) : kAttention;
  }
  const LayerAttention* usual = usual_attention(model);
  const bool is_usual = usual == nullptr || weights_of(*usual) == weights_of(attention);
  return is_usual ? kAttention : "windowed attention";
}

std::string dense_module(const Architecture& model, int width) {
  return width == model.intermediate_size ? kDenseFfn : fmt::format("{} of {}", kDenseFfn, width);
}

}  // namespace moeline
