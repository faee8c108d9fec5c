#include "experiments/plan_training/megatron_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/plan_training/megatron_layout.hpp"
#include "schedules/scenario/flag_list.hpp"

namespace moeline {
namespace {

// A layout of stages says how many there are.
void add_stages(const Parallelism& p, const std::vector<StageBlocks>& stages, MegatronFlags& out) {
  if (stages.size() < 2) return;
  for (const StageBlocks& each : stages) out.stages.push_back(describe(each));
  const std::string layout = megatron_layout(stages);
  if (!layout.empty()) {
    out.flags.push_back(fmt::format("--pipeline-model-parallel-layout '{}'", layout));
  } else if (p.virtual_pp > 1) {
    out.flags.push_back(fmt::format("--num-virtual-stages-per-pipeline-rank {}", p.virtual_pp));
  }
}

void add_parallelism(const Parallelism& p, std::vector<std::string>& flags) {
  flags.push_back(fmt::format("--tensor-model-parallel-size {}", p.tp));
  if (p.tp > 1) flags.emplace_back("--sequence-parallel");
  flags.push_back(fmt::format("--pipeline-model-parallel-size {}", p.pp));
  if (p.cp > 1) flags.push_back(fmt::format("--context-parallel-size {}", p.cp));
  if (p.ep > 1) flags.push_back(fmt::format("--expert-model-parallel-size {}", p.ep));
  if (p.ep > 1 || p.tp > 1) flags.push_back(fmt::format("--expert-tensor-parallel-size {}", p.moe_tp));
}

void add_batches(const Scenario& s, std::vector<std::string>& flags) {
  const TrainWorkload& w = as_train(s.workload);
  flags.push_back(fmt::format("--micro-batch-size {}", w.micro_batch_size));
  flags.push_back(fmt::format("--global-batch-size {}", w.global_batch_size));
  flags.push_back(fmt::format("--seq-length {}", w.seq_len));
}

// Passes are combined as Megatron-LM can: in a pipeline, of virtual stages alone.
bool combines_passes(const Scenario& s) {
  return s.overlap == kCombined && (s.parallelism.pp == 1 || s.parallelism.virtual_pp > 1);
}

void add_recomputation(const Scenario& s, MegatronFlags& out) {
  const TrainingChoices& c = s.training;
  std::vector<std::string>& flags = out.flags;
  if (c.recompute == Recompute::full && combines_passes(s)) {
    flags.emplace_back("--recompute-granularity full");
    out.notes.emplace_back("with combined passes it recomputes a whole chunk at a time, in versions after core_v0.16");
  } else if (c.recompute == Recompute::full) {
    flags.emplace_back("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
  }
  if (c.recompute == Recompute::selective && c.by_megatron()) {
    const std::vector<std::string> modules = names_of(c.modules);
    flags.push_back(fmt::format("--recompute-granularity selective --recompute-modules {}", fmt::join(modules, " ")));
  }
}

void add_offload(const TrainingChoices& c, std::vector<std::string>& flags) {
  if (c.offload.any()) {
    flags.push_back(
        fmt::format("--fine-grained-activation-offloading --offload-modules {}", fmt::join(names_of(c.offload), " ")));
  }
  if (c.offload_optimizer) flags.emplace_back("--offload-optimizer-states");
}

bool has_experts(const std::vector<StageBlocks>& stages) {
  return std::any_of(stages.begin(), stages.end(), [](const StageBlocks& stage) {
    return std::any_of(stage.begin(), stage.end(), [](const Block& each) { return each.kind == BlockKind::moe_layer; });
  });
}

void add_experts(const Scenario& s, const std::vector<StageBlocks>& stages, MegatronFlags& out) {
  if (has_experts(stages)) out.flags.emplace_back("--moe-grouped-gemm --moe-permute-fusion");
  if (s.parallelism.ep == 1) return;
  out.flags.push_back(dispatcher_of(s.comm.mode).megatron);
  if (s.comm.mode == CommMode::deepep_v2) {
    out.notes.emplace_back(
        "its flex dispatcher has DeepEP's second version by pull request 5153, not yet in a release");
  }
  if (s.comm.mode == CommMode::nvlink) {
    out.notes.emplace_back("priced with TensorRT-LLM's all-to-all in the place of HybridEP");
  }
}

void add_overlap(const Scenario& s, MegatronFlags& out) {
  const TrainingChoices& c = s.training;
  if (c.zero >= 1) out.flags.emplace_back("--use-distributed-optimizer");
  if (c.overlap_gradients) out.flags.emplace_back("--overlap-grad-reduce");
  if (c.overlap_parameters) out.flags.emplace_back("--overlap-param-gather");
  if (s.overlap == kCombined && !combines_passes(s)) {
    out.notes.emplace_back("combined passes need virtual stages there; without them they are ours");
  }
  if (!combines_passes(s)) return;
  out.flags.emplace_back("--overlap-moe-expert-parallel-comm");
  if (c.delay_weights) out.flags.emplace_back("--delay-wgrad-compute");
}

void add_launch(const Scenario& s, MegatronFlags& out) {
  if (s.graphs.any()) {
    out.flags.push_back(
        fmt::format("--cuda-graph-impl transformer_engine --cuda-graph-scope {}", fmt::join(names_of(s.graphs), " ")));
  }
  if ((s.parallelism.tp > 1 || s.parallelism.cp > 1) && !combines_passes(s)) {
    out.notes.emplace_back("on GPUs before Blackwell it starts with CUDA_DEVICE_MAX_CONNECTIONS=1 alone");
  }
  if (s.launch == Launch::graph) out.notes.emplace_back("a step without a host: everything is in CUDA graphs");
}

}  // namespace

MegatronFlags megatron_flags(const Layout& layout, const Scenario& scenario, const std::vector<StageBlocks>& stages) {
  MegatronFlags out;
  add_parallelism(scenario.parallelism, out.flags);
  add_stages(scenario.parallelism, stages, out);
  add_batches(scenario, out.flags);
  add_recomputation(scenario, out);
  add_offload(scenario.training, out.flags);
  add_experts(scenario, stages, out);
  add_overlap(scenario, out);
  add_launch(scenario, out);
  const bool known = scenario.schedule == "1f1b" || scenario.schedule == "interleaved-1f1b";
  if (!known)
    out.notes.push_back(
        fmt::format("has no {}: its pipelines are 1F1B, with or without virtual stages", layout.schedule));
  if (!scenario.training.by_megatron())
    out.notes.emplace_back("trained by DeepSeek's own kernels here, which it does not have");
  return out;
}

}  // namespace moeline
