#include "moe/training.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "moe/megatron.hpp"
#include "moe/rank_work.hpp"

namespace moeline {
namespace {

using KernelsOf = std::vector<Operator> (*)(const LayerWork&);

struct NamedPhase {
  BlockKind kind;
  const char* name;
  KernelsOf deepseek, megatron;
};

constexpr std::array<NamedPhase, 24> kPhases = {{
    {BlockKind::moe_layer, "attn(F)", attention_forward, megatron::attention_forward},
    {BlockKind::moe_layer, "dispatch(F)", dispatch_forward, megatron::dispatch_forward},
    {BlockKind::moe_layer, "mlp(F)", experts_forward, megatron::experts_forward},
    {BlockKind::moe_layer, "combine(F)", combine_forward, megatron::combine_forward},
    {BlockKind::moe_layer, "combine(B)", combine_backward, megatron::combine_backward},
    {BlockKind::moe_layer, "mlp(B)", experts_backward_input, megatron::experts_backward_input},
    {BlockKind::moe_layer, "mlp(W)", experts_backward_weight, megatron::experts_backward_weight},
    {BlockKind::moe_layer, "dispatch(B)", dispatch_backward, megatron::dispatch_backward},
    {BlockKind::moe_layer, "attn(B)", attention_backward_input, megatron::attention_backward_input},
    {BlockKind::moe_layer, "attn(W)", attention_backward_weight, megatron::attention_backward_weight},
    {BlockKind::dense_layer, "attn(F)", attention_forward, megatron::attention_forward},
    {BlockKind::dense_layer, "mlp(F)", dense_forward, megatron::dense_forward},
    {BlockKind::dense_layer, "mlp(B)", dense_backward_input, megatron::dense_backward_input},
    {BlockKind::dense_layer, "mlp(W)", dense_backward_weight, megatron::dense_backward_weight},
    {BlockKind::dense_layer, "attn(B)", attention_backward_input, megatron::attention_backward_input},
    {BlockKind::dense_layer, "attn(W)", attention_backward_weight, megatron::attention_backward_weight},
    {BlockKind::embedding, "embedding(F)", embedding_forward, megatron::embedding_forward},
    {BlockKind::embedding, "embedding(W)", embedding_weight, megatron::embedding_weight},
    {BlockKind::head, "head(F)", head_forward, megatron::head_forward},
    {BlockKind::head, "head(B)", head_backward_input, megatron::head_backward_input},
    {BlockKind::head, "head(W)", head_weight, megatron::head_weight},
    {BlockKind::mtp, "mtp(F)", mtp_forward, megatron::mtp_forward},
    {BlockKind::mtp, "mtp(B)", mtp_backward_input, megatron::mtp_backward_input},
    {BlockKind::mtp, "mtp(W)", mtp_weight, megatron::mtp_weight},
}};

std::vector<std::string> names_of(BlockKind kind) {
  std::vector<std::string> names;
  for (const NamedPhase& phase : kPhases) {
    if (phase.kind == kind) names.emplace_back(phase.name);
  }
  return names;
}

// Phases are listed in the order of the data.
const std::vector<std::string>& ending(BlockKind kind, const char* pass, bool sends) {
  static const auto kNames = [] {
    std::map<std::tuple<BlockKind, std::string, bool>, std::vector<std::string>> names;
    for (const NamedPhase& phase : kPhases) {
      const std::string name = phase.name, ending = name.substr(name.size() - 3);
      names[{phase.kind, ending, true}].push_back(name);
      if (!is_transfer(name)) names[{phase.kind, ending, false}].push_back(name);
    }
    return names;
  }();
  static const std::vector<std::string> kNone;
  const auto found = kNames.find({kind, pass, sends});
  return found == kNames.end() ? kNone : found->second;
}

// With full recomputation nothing is kept for longer than a layer, so nothing is made narrow or repeated within it.
// Megatron's lists have in them what is recomputed.
bool leaves_out(const TrainingChoices& choices, Purpose purpose) {
  if (choices.by_megatron()) return false;
  if (purpose == Purpose::recompute) return choices.recompute != Recompute::selective;
  return purpose == Purpose::storage && (!choices.narrow_activations || choices.recompute == Recompute::full);
}

}  // namespace

AllToAllWork LayerWork::all_to_all(Precision sent) const {
  return {.hidden = static_cast<double>(model.hidden_size),
          .top_k = static_cast<double>(model.num_experts_per_tok),
          .tokens = own_tokens(),
          .experts = model.n_routed_experts,
          .ep = ep,
          .gpus_per_node = gpus_per_node,
          .spread = spread,
          .dispatch = sent,
          .rows = load.valid,
          .elastic = elastic};
}

std::vector<Operator> training_phase(const std::string& phase, const LayerWork& work) {
  for (const NamedPhase& candidate : kPhases) {
    if (candidate.kind != work.kind || phase != candidate.name) continue;
    std::vector<Operator> ops = work.choices.by_megatron() ? candidate.megatron(work) : candidate.deepseek(work);
    std::erase_if(ops, [&](const Operator& op) { return leaves_out(work.choices, op.purpose); });
    return ops;
  }
  throw SpecError(unknown_name("phase", phase, names_of(work.kind)));
}

const std::vector<std::string>& training_phase_names() {
  static const std::vector<std::string> kNames = names_of(BlockKind::moe_layer);
  return kNames;
}

const std::vector<std::string>& forward_phases(BlockKind kind, bool sends) { return ending(kind, "(F)", sends); }
const std::vector<std::string>& backward_phases(BlockKind kind, bool sends) { return ending(kind, "(B)", sends); }
const std::vector<std::string>& weight_phases(BlockKind kind) { return ending(kind, "(W)", true); }

}  // namespace moeline
