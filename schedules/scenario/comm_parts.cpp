#include "schedules/scenario/comm_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/scenario/expert_parts.hpp"
#include "schedules/scenario/scenario_parts.hpp"

namespace moeline {
namespace {

bool in_one_domain(const Setup& setup) {
  return setup.scenario.parallelism.group() <= setup.machine.facts.gpus_per_node;
}

// The kernel takes each rank's own tokens to whole experts.
std::string refused_fused(const Setup& setup) {
  const Parallelism& p = setup.scenario.parallelism;
  if (p.tp > 1 || p.moe_tp > 1 || p.cp > 1)
    return "takes each GPU's own tokens to whole experts: tp, moe_tp and cp are 1";
  if (!in_one_domain(setup)) {
    return fmt::format("stays in an NVLink domain: {} ranks are more than its {:.0f} GPUs", p.ep,
                       setup.machine.facts.gpus_per_node);
  }
  if (has_mega_moe(setup)) return "";
  return fmt::format("no kernels of {} have {} experts by it", setup.machine.name, name_of(setup.model.expert_weights));
}

// What speaks against a mode ("" if nothing does).
std::string refused(CommMode mode, const Setup& setup) {
  const Parallelism& p = setup.scenario.parallelism;
  const int experts = p.ep * p.moe_tp;
  const bool alone = experts == 1 && (p.tp == 1 || setup.model.n_routed_experts > 0);
  const bool alike = std::max(p.tp, experts) == p.tp;  // ranks that share a layer have the same tokens
  if (mode == CommMode::none) return alone ? "" : fmt::format("needs one rank, and {} share the layers", p.group());
  if (alone) return "has nobody to send to where ep x moe_tp is 1; there is: none";
  if (mode == CommMode::all_reduce) {
    return alike ? ""
                 : fmt::format("needs tp = ep x moe_tp, so that all ranks have the same tokens: {} is not {}", p.tp,
                               experts);
  }
  if (setup.model.n_routed_experts == 0) return "sends tokens to experts, and the model has none; there is: all_reduce";
  if (mode == CommMode::fused) return refused_fused(setup);
  if (mode == CommMode::all_gather) return alike ? "needs ranks with tokens of their own; there is: all_reduce" : "";
  if (p.moe_tp > 1) return fmt::format("sends each token to whole experts: moe_tp is {}, not 1", p.moe_tp);
  if (mode == CommMode::nvlink && !in_one_domain(setup)) {
    return fmt::format("stays in an NVLink domain: {} ranks are more than its {:.0f} GPUs", p.ep,
                       setup.machine.facts.gpus_per_node);
  }
  return "";
}

// Without an all-to-all for this machine, TensorRT-LLM gathers tokens (its fused_moe's alltoall methods; DeepEP is an
// option there). SGLang has DeepEP's modes for wide expert parallelism, and so has whoever has no habit.
bool gathers_by_habit(const Setup& setup) {
  return setup.scenario.parallelism.moe_tp > 1 || setup.kernels().stack == Stack::trtllm;
}

// What the stack does by default whose kernels are used.
CommMode usual_mode(const Setup& setup) {
  const std::vector<CommMode>& modes = setup.scenario.kind().modes;
  const auto may = [&](CommMode mode) {
    return std::find(modes.begin(), modes.end(), mode) != modes.end() && refused(mode, setup).empty();
  };
  if (may(CommMode::none)) return CommMode::none;
  if (may(CommMode::all_reduce)) return CommMode::all_reduce;
  if (may(CommMode::nvlink) && setup.kernels().fits.contains("nvlink_dispatch")) return CommMode::nvlink;
  if (gathers_by_habit(setup) && may(CommMode::all_gather)) return CommMode::all_gather;
  const bool decode = setup.scenario.phase() == WorkloadPhase::decode;
  return decode && may(CommMode::low_latency) ? CommMode::low_latency : modes.front();
}

// DeepEP between nodes of eight GPUs, as NVIDIA's recipes for Hopper have it; in a larger NVLink domain its own
// all-to-all.
CommMode usual_training_mode(const Setup& setup) {
  constexpr int kUsualNode = 8;
  if (setup.scenario.parallelism.ep == 1) return CommMode::none;
  if (setup.scenario.parallelism.moe_tp > 1) return CommMode::all_to_all;
  const bool in_domain = setup.machine.facts.gpus_per_node > kUsualNode && in_one_domain(setup);
  return setup.scenario.training.by_megatron() && in_domain ? CommMode::nvlink : CommMode::normal;
}

// Megatron's token dispatchers; DeepSeek's operators have their own.
CommMode read_training_mode(const Spec& spec, const Setup& setup) {
  const bool megatron = setup.scenario.training.by_megatron();
  const CommMode usual = usual_training_mode(setup);
  if (!spec.has("mode")) return usual;
  const std::vector<std::string> words = megatron ? std::vector<std::string>{"normal", "all_to_all", "nvlink", "none"}
                                                  : std::vector<std::string>{"normal"};
  const auto mode = choice_of<CommMode>(modelled(spec, "mode", words, words_of<CommMode>()));
  const int ep = setup.scenario.parallelism.ep, moe_tp = setup.scenario.parallelism.moe_tp;
  if (moe_tp > 1 && (mode == CommMode::normal || mode == CommMode::nvlink)) {
    throw spec.error("mode", fmt::format("{}, sends each token to whole experts: moe_tp is {}; there is: all_to_all",
                                         word_of(mode), moe_tp));
  }
  if ((mode == CommMode::none) == (ep == 1)) {
    if (mode != CommMode::nvlink || in_one_domain(setup)) return mode;
    throw spec.error("mode", "nvlink, " + refused(mode, setup));
  }
  throw spec.error("mode", ep == 1 ? "has nobody to send to where ep is 1; there is: none"
                                   : fmt::format("none, needs ep 1: {} ranks share the experts", ep));
}

CommMode read_mode(const Spec& spec, const Setup& setup) {
  const Scenario& s = setup.scenario;
  if (s.phase() == WorkloadPhase::train) return read_training_mode(spec, setup);
  const std::vector<std::string> words = words_of(s.kind().modes);
  const CommMode mode =
      spec.has("mode") ? choice_of<CommMode>(modelled(spec, "mode", words, words_of<CommMode>())) : usual_mode(setup);
  const std::string reason = refused(mode, setup);
  if (reason.empty()) return mode;
  const std::string of_schedule = spec.has("mode") ? "" : fmt::format("of {}, ", s.schedule);
  throw spec.error("mode", fmt::format("{}{}, {}", of_schedule, word_of(mode), reason));
}

// DeepEP sends no FP4.
bool may_send_fp4(CommMode mode, const Setup& setup) {
  return (mode == CommMode::all_gather || mode == CommMode::nvlink) && setup.machine.facts.fp4_tflops > 0;
}

// TensorRT-LLM quantises tokens for NVFP4 experts before it sends them; FP8's are gathered in BF16 and quantised
// behind.
Precision usual_dispatch(CommMode mode, const Setup& setup) {
  const Precision experts = setup.model.expert_weights;
  if (experts == Precision::nvfp4 && may_send_fp4(mode, setup)) return experts;
  const bool may_cast = is_deep_ep(mode) || mode == CommMode::nvlink;
  return may_cast ? multiplied_in(experts) : Precision::bf16;
}

void read_types(const Spec& spec, const Setup& setup, Comm& c) {
  const bool training = setup.scenario.phase() == WorkloadPhase::train;
  const bool megatron = setup.scenario.training.by_megatron();
  c.dispatch = !training ? usual_dispatch(c.mode, setup) : megatron ? Precision::bf16 : Precision::fp8;
  if (training) {
    const std::string only = name_of(c.dispatch), other = megatron ? "fp8" : "bf16";
    (void)modelled(spec, "dispatch_dtype", {only}, {other});
  }
  if (spec.has("dispatch_dtype")) {
    if (!sends_tokens(c.mode)) throw spec.error("dispatch_dtype", fmt::format("does not apply to {}", word_of(c.mode)));
    std::vector<std::string> words = {"fp8", "bf16"};
    if (may_send_fp4(c.mode, setup)) words.emplace_back("nvfp4");
    c.dispatch = precision_named(spec.choice("dispatch_dtype", words));
  }
  c.combine = precision_named(modelled(spec, "combine_dtype", {"bf16"}, {"fp8"}));
}

// DeepSeek-V3's training; DeepEP's default. How many NCCL holds depends on its channels, and is for whoever knows.
int usual_sms(CommMode mode, WorkloadPhase phase) {
  if (mode == CommMode::all_to_all) return 0;
  return phase == WorkloadPhase::train ? 20 : 24;
}

// Where a plan has the halves of a combine apart, it may start while the GEMM before it runs: SGLang's defaults.
int usual_sms_of_release(const Setup& setup) {
  if (!setup.scenario.kind().releases) return 0;
  return setup.machine.facts.fp4_tflops > 0 ? 32 : 3;
}

bool may_release(CommMode mode, const Setup& setup) {
  return mode == CommMode::low_latency && !setup.scenario.kind().plan.empty();
}

void read_sms(const Spec& spec, const Setup& setup, Comm& c) {
  const bool releases = may_release(c.mode, setup);
  if (c.mode != CommMode::normal && c.mode != CommMode::all_to_all && !releases) {
    c.num_sms = spec.integer_or("num_sms", 0, 4096, 0);
    if (c.num_sms == 0) return;
    const char* why = c.mode == CommMode::low_latency ? "it issues and receives on all SMs"
                                                      : "how many SMs it holds is not known, and none are charged";
    throw spec.error("num_sms", fmt::format("does not apply to {}: {}", word_of(c.mode), why));
  }
  const int most = static_cast<int>(setup.machine.facts.sms) - 1;  // at least one is left to compute
  if (most < 1) throw spec.error("num_sms", "cannot be met: the machine has one SM");
  const int usual = releases ? usual_sms_of_release(setup) : usual_sms(c.mode, setup.scenario.phase());
  const int least = c.mode == CommMode::normal ? 1 : 0;
  c.num_sms = spec.integer_or("num_sms", least, most, std::min(usual, most));
}

// Serving stacks gather keys; so does Transformer Engine where there are windows, and else it has a ring.
ContextMode read_context(const Spec& spec, const Setup& setup) {
  const std::vector<Layer>& layers = setup.model.layers;
  if (spec.has("context") && setup.scenario.parallelism.cp == 1) {
    throw spec.error("context", "belongs to context parallelism, and parallelism.cp is 1");
  }
  const bool training = setup.scenario.phase() == WorkloadPhase::train;
  const bool windows =
      std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.attention.window > 0; });
  const ContextMode context =
      read_choice(spec, "context", training && !windows ? ContextMode::ring : ContextMode::all_gather);
  if (training && windows && context == ContextMode::ring) {
    throw spec.error("context", "ring, is not what Transformer Engine has for sliding windows; there is: all_gather");
  }
  return context;
}

}  // namespace

void check_comm_keys(const Spec& spec) {
  spec.expect({"mode", "num_sms", "dispatch_dtype", "combine_dtype", "neighbours", "context"});
}

Comm read_comm(const Spec& spec, const Setup& setup) {
  check_comm_keys(spec);
  Comm c;
  c.mode = read_mode(spec, setup);
  read_types(spec, setup, c);
  c.context = read_context(spec, setup);
  c.neighbours = read_choice(spec, "neighbours", c.neighbours);
  read_sms(spec, setup, c);
  return c;
}

}  // namespace moeline
