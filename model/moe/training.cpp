#include "moe/training.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.hpp"

namespace moeline {
namespace {

struct NamedPhase {
  BlockKind kind;
  const char* name;
  std::vector<Operator> (*kernels)(const LayerWork&);
};

constexpr std::array<NamedPhase, 24> kPhases = {{
    {BlockKind::moe_layer, "attn(F)", attention_forward},
    {BlockKind::moe_layer, "dispatch(F)", dispatch_forward},
    {BlockKind::moe_layer, "mlp(F)", experts_forward},
    {BlockKind::moe_layer, "combine(F)", combine_forward},
    {BlockKind::moe_layer, "combine(B)", combine_backward},
    {BlockKind::moe_layer, "mlp(B)", experts_backward_input},
    {BlockKind::moe_layer, "mlp(W)", experts_backward_weight},
    {BlockKind::moe_layer, "dispatch(B)", dispatch_backward},
    {BlockKind::moe_layer, "attn(B)", attention_backward_input},
    {BlockKind::moe_layer, "attn(W)", attention_backward_weight},
    {BlockKind::dense_layer, "attn(F)", attention_forward},
    {BlockKind::dense_layer, "mlp(F)", dense_forward},
    {BlockKind::dense_layer, "mlp(B)", dense_backward_input},
    {BlockKind::dense_layer, "mlp(W)", dense_backward_weight},
    {BlockKind::dense_layer, "attn(B)", attention_backward_input},
    {BlockKind::dense_layer, "attn(W)", attention_backward_weight},
    {BlockKind::embedding, "embedding(F)", embedding_forward},
    {BlockKind::embedding, "embedding(W)", embedding_weight},
    {BlockKind::head, "head(F)", head_forward},
    {BlockKind::head, "head(B)", head_backward_input},
    {BlockKind::head, "head(W)", head_weight},
    {BlockKind::mtp, "mtp(F)", mtp_forward},
    {BlockKind::mtp, "mtp(B)", mtp_backward_input},
    {BlockKind::mtp, "mtp(W)", mtp_weight},
}};

std::vector<std::string> names_of(BlockKind kind) {
  std::vector<std::string> names;
  for (const NamedPhase& phase : kPhases) {
    if (phase.kind == kind) names.emplace_back(phase.name);
  }
  return names;
}

// Phases are listed in the order of the data.
const std::vector<std::string>& ending(BlockKind kind, const char* pass) {
  static const auto kNames = [] {
    std::map<std::pair<BlockKind, std::string>, std::vector<std::string>> names;
    for (const NamedPhase& phase : kPhases) {
      const std::string name = phase.name;
      names[{phase.kind, name.substr(name.size() - 3)}].push_back(name);
    }
    return names;
  }();
  static const std::vector<std::string> kNone;
  const auto found = kNames.find({kind, pass});
  return found == kNames.end() ? kNone : found->second;
}

// With full recomputation nothing is kept for longer than a layer, so nothing is made narrow or repeated within it.
bool leaves_out(const TrainingChoices& choices, Purpose purpose) {
  if (purpose == Purpose::recompute) return choices.recompute != Recompute::selective;
  return purpose == Purpose::storage && (!choices.narrow_activations || choices.recompute == Recompute::full);
}

}  // namespace

std::vector<Operator> training_phase(const std::string& phase, const LayerWork& work) {
  for (const NamedPhase& candidate : kPhases) {
    if (candidate.kind != work.kind || phase != candidate.name) continue;
    std::vector<Operator> ops = candidate.kernels(work);
    std::erase_if(ops, [&](const Operator& op) { return leaves_out(work.choices, op.purpose); });
    return ops;
  }
  throw SpecError(unknown_name("phase", phase, names_of(work.kind)));
}

const std::vector<std::string>& training_phase_names() {
  static const std::vector<std::string> kNames = names_of(BlockKind::moe_layer);
  return kNames;
}

const std::vector<std::string>& forward_phases(BlockKind kind) { return ending(kind, "(F)"); }
const std::vector<std::string>& backward_phases(BlockKind kind) { return ending(kind, "(B)"); }
const std::vector<std::string>& weight_phases(BlockKind kind) { return ending(kind, "(W)"); }

}  // namespace moeline
