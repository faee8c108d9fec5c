#include "schedules/lowering/inference_step.hpp"

namespace moeline {

std::vector<std::string> dense_phases(const Setup& setup, const Layer& layer) {
  std::vector<std::string> phases = {"attn"};
  if (setup.scenario.phase() == WorkloadPhase::decode) phases = {"attn-0", "attn-1"};
  if (layer.attention.kind == AttentionKind::none && phases.size() > 1) phases = {"attn-1"};
  if (layer.has_ffn()) phases.emplace_back("mlp");
  return phases;
}

namespace {

// Layers of one kind that follow each other, from `first` on.
int run_length(const std::vector<Block>& blocks, std::size_t first) {
  int count = 1;
  for (std::size_t i = first + 1; i < blocks.size() && blocks[i].kind == blocks[first].kind; ++i) ++count;
  return count;
}

}  // namespace

void append_step(InferenceRank& rank, const AppendLayers& dense_layers, const AppendLayers& moe_layers) {
  const std::vector<Block>& blocks = rank.blocks();
  bool drafts = false;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    if (is_layer(block.kind)) {
      const int count = run_length(blocks, i);
      (block.kind == BlockKind::dense_layer ? dense_layers : moe_layers)(block.layer, count);
      i += static_cast<std::size_t>(count) - 1;
    } else if (block.kind == BlockKind::head) {
      rank.append_whole(drafts ? "draft_head" : "lm_head", block.layer);
    } else {
      drafts = drafts || block.kind == BlockKind::mtp;
      rank.append_whole(name_of(block.kind), block.layer);
    }
  }
}

void append_in_turn(InferenceRank& rank, const Setup& setup, int micro_batch) {
  const bool shared_beside = setup.scenario.shared_experts == SharedExperts::beside;
  const std::vector<std::string> moe_phases = setup.layer_phases();
  const auto append_layers = [&](int first, int count) {
    for (int layer = first; layer < first + count; ++layer) {
      const Layer& content = rank.content(layer);
      for (const std::string& phase : content.routed ? moe_phases : dense_phases(setup, content)) {
        const bool beside = phase == "shared" && shared_beside;
        rank.append({micro_batch, layer, phase}, beside ? StreamName::side : stream_of(phase));
        beside ? rank.leave_running() : rank.chain();
      }
    }
  };
  append_step(rank, append_layers, append_layers);
}

}  // namespace moeline
