#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include "moe/fused_experts.hpp"
#include "schedules/scenario/flag_list.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
bool runs_fused(const Setup& setup) {
  return setup.model.n_routed_experts > 0 && setup.scenario.phase() != WorkloadPhase::train &&
         dispatcher_of(setup.scenario.comm.mode).arrival == Arrival::gathered &&
         setup.scenario.comm.mode != CommMode::fused;
}

bool serves_shared_experts(const Setup& setup) {
  return setup.scenario.phase() != WorkloadPhase::train && setup.model.n_shared_experts > 0;
}

bool has_mega_moe(const Setup& setup) {
  return setup.kernels().fits.contains(measured_experts(setup, ExpertLayout::mega));
}

SharedExperts read_shared_experts(const Spec& spec, const Setup& setup) {
  const bool possible =
      runs_fused(setup) && setup.model.n_shared_experts > 0 && setup.scenario.kind().micro_batches == 1;
  if (spec.has("shared_experts")) {
    const SharedExperts asked = read_choice(spec, "shared_experts", SharedExperts::in_turn);
    if (!serves_shared_experts(setup)) {
      throw spec.error("shared_experts", "does not apply: there are none, or it is training");
    }
    if (asked == SharedExperts::beside && !possible) {
      throw spec.error("shared_experts", "beside: needs routed experts that run as one fused layer, and one batch");
    }
    return asked;
  }
  return possible && habits::runs_shared_beside(setup) ? SharedExperts::beside : SharedExperts::in_turn;
}

namespace {

// A part that no layer of the model has, or that cannot be captured; null: all that are listed can.
const char* impossible_part(const GraphParts& parts, const Setup& setup) {
  const Architecture& model = setup.model;
  const bool has_dense = model.dense_layers() > 0 && (setup.scenario.whole_model || model.n_routed_experts == 0);
  if (parts.mlp && !has_dense) return "mlp: no layer has a dense network";
  if (parts.moe_router && model.n_routed_experts == 0) return "moe_router: there are no routed experts";
  if (parts.moe_preprocess && !parts.moe_router) return "moe_preprocess, goes with moe_router, which precedes it";
  return nullptr;
}

}  // namespace

void read_launch(const Spec& spec, Setup& setup) {
  Scenario& s = setup.scenario;
  if (!spec.has("launch") || !spec.is_list("launch")) {
    s.launch = read_choice(spec, "launch", habits::launch(s.phase()));
    return;
  }
  if (s.phase() != WorkloadPhase::train || !s.training.by_megatron()) {
    throw spec.error("launch", "lists parts of layers of training by the operators megatron alone");
  }
  s.launch = Launch::stream;
  s.graphs = read_flags<GraphParts>(spec, "launch", "layer part");
  if (const char* part = impossible_part(s.graphs, setup)) throw spec.error("launch", part);
}

}  // namespace moeline
