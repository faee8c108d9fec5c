#include "moe/training.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace moeline {
namespace {

struct NamedPhase {
  const char* name;
  std::vector<Operator> (*kernels)(const LayerWork&);
};

constexpr std::array<NamedPhase, 10> kPhases = {{
    {"attn(F)", attention_forward},
    {"dispatch(F)", dispatch_forward},
    {"mlp(F)", experts_forward},
    {"combine(F)", combine_forward},
    {"combine(B)", combine_backward},
    {"mlp(B)", experts_backward_input},
    {"mlp(W)", experts_backward_weight},
    {"dispatch(B)", dispatch_backward},
    {"attn(B)", attention_backward_input},
    {"attn(W)", attention_backward_weight},
}};

}  // namespace

std::vector<Operator> training_phase(const std::string& phase, const LayerWork& work) {
  for (const NamedPhase& candidate : kPhases) {
    if (phase == candidate.name) return candidate.kernels(work);
  }
  throw SpecError(unknown_name("phase", phase, training_phase_names()));
}

const std::vector<std::string>& training_phase_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const NamedPhase& phase : kPhases) names.emplace_back(phase.name);
    return names;
  }();
  return kNames;
}

const std::vector<PhaseDependency>& training_dependencies() {
  static const std::vector<PhaseDependency> kDependencies = {
      {"attn(F)", "dispatch(F)"}, {"dispatch(F)", "mlp(F)"},
      {"mlp(F)", "combine(F)"},   {"combine(F)", "attn(F)", true},
      {"combine(B)", "mlp(B)"},   {"mlp(B)", "dispatch(B)"},
      {"mlp(B)", "mlp(W)"},       {"dispatch(B)", "attn(B)"},
      {"attn(B)", "attn(W)"},     {"attn(B)", "combine(B)", true},
  };
  return kDependencies;
}

}  // namespace moeline
