#include "schedules/step.hpp"

namespace moeline {

std::vector<std::string> dense_phases(const Setup& setup) {
  if (setup.scenario.workload.phase == "decode") return {"attn-0", "attn-1", "mlp"};
  return {"attn", "mlp"};
}

void append_step(const Setup& setup, InferenceRank& rank, const AppendLayers& dense_layers,
                 const AppendLayers& moe_layers) {
  const Scenario& scenario = setup.scenario;
  if (!scenario.whole_model) return moe_layers(0, setup.simulated_layers());
  const int dense = setup.model.first_k_dense_replace;
  const int depth = dense + setup.simulated_layers();
  rank.append_whole("embedding", 0);
  dense_layers(0, dense);
  moe_layers(dense, setup.simulated_layers());
  rank.append_whole("lm_head", depth - 1);
  for (int draft = 0; draft < setup.drafted_tokens(); ++draft) {
    rank.append_whole("mtp", depth + draft);
    moe_layers(depth + draft, 1);
    rank.append_whole("draft_head", depth + draft);
  }
}

}  // namespace moeline
