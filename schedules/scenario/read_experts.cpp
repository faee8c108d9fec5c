#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include "moe/fused_experts.hpp"
#include "schedules/scenario/flag_list.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

std::string measured_experts(const Setup& setup, MoeBackend backend, ExpertLayout layout = ExpertLayout::fused) {
  RankWork work;
  work.has_fp4 = setup.machine.facts.fp4_tflops > 0;
  ExpertShape shape;
  shape.weights = setup.model.expert_weights;
  shape.math = work.fused_format(shape.weights);
  shape.backend = backend;
  shape.layout = layout;
  return measured_expert_layer(shape);
}

bool has_trtllm_gen(const Setup& setup) {
  return setup.kernels().fits.contains(measured_experts(setup, MoeBackend::trtllm_gen));
}

// The stack's own usual kernels are those as well, here or on the machine that they are carried over from.
bool usual_is_trtllm_gen(const Setup& setup) {
  const auto usual = setup.kernels().fits.find(measured_experts(setup, MoeBackend::usual));
  if (usual == setup.kernels().fits.end() || usual->second.form == nullptr) return false;
  const std::string &of = usual->second.kernel_set, &chosen = setup.kernels().fitted_name();
  return (of == chosen || of.ends_with(": " + chosen)) && usual->second.form->name == "trtllm_gen_moe";
}

}  // namespace

bool runs_fused(const Setup& setup) {
  return setup.model.n_routed_experts > 0 && setup.scenario.phase() != WorkloadPhase::train &&
         dispatcher_of(setup.scenario.comm.mode).arrival == Arrival::gathered &&
         setup.scenario.comm.mode != CommMode::fused;
}

bool serves_shared_experts(const Setup& setup) {
  return setup.scenario.phase() != WorkloadPhase::train && setup.model.n_shared_experts > 0;
}

bool has_mega_moe(const Setup& setup) {
  return setup.kernels().fits.contains(measured_experts(setup, MoeBackend::usual, ExpertLayout::mega));
}

MoeBackend read_moe_backend(const Spec& spec, const Setup& setup) {
  const bool fused = runs_fused(setup);
  if (spec.has("moe_backend")) {
    const MoeBackend asked = read_choice(spec, "moe_backend", MoeBackend::usual);
    if (!fused) throw spec.error("moe_backend", "does not apply: no experts run as one fused layer");
    if (asked == MoeBackend::trtllm_gen && !has_trtllm_gen(setup)) {
      throw spec.error("moe_backend", fmt::format("trtllm_gen: no kernels of {} have {} experts by it",
                                                  setup.machine.name, name_of(setup.model.expert_weights)));
    }
    return asked;
  }
  if (!fused || !has_trtllm_gen(setup)) return MoeBackend::usual;
  const bool takes_it = habits::takes_trtllm_gen(setup) || usual_is_trtllm_gen(setup);
  return takes_it ? MoeBackend::trtllm_gen : MoeBackend::usual;
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
