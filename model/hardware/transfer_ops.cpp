// OPs of communication.
#include "hardware/op_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/op_keys.hpp"
#include "moe/all_to_all.hpp"
#include "routing/gating.hpp"

namespace moeline {
namespace {

// The model's gating, or that of DeepEP's benchmark, with which its published figures were measured.
Architecture gating_of(const OpKeys& keys, int ep, int gpus_per_node) {
  Architecture model = load_architecture("deepseek-v3");
  model.num_experts_per_tok = keys.spec().integer_or("top_k", 1, model.n_routed_experts, model.num_experts_per_tok);
  if (keys.choice("gating", {"model", "benchmark"}) == "benchmark") {
    const int nodes = std::max(1, ep / gpus_per_node);
    if (model.n_routed_experts % nodes != 0) {
      throw keys.spec().error("gating", fmt::format("has a group of experts per node: {} nodes do not divide the {}",
                                                    nodes, model.n_routed_experts));
    }
    model = benchmark_gating(model, nodes);
  }
  const int reachable = model.topk_group * model.n_routed_experts / model.n_group;
  if (model.num_experts_per_tok > reachable) {
    throw keys.spec().error("top_k", fmt::format("of {} is more than the {} experts of the groups chosen",
                                                 model.num_experts_per_tok, reachable));
  }
  return model;
}

// The fewest with which every rank has equally many, as DeepSeek's EP144 and EP320 have; a copy of each at most.
int redundant_for(int ep, const Architecture& model) {
  const int needed = (ep - model.n_routed_experts % ep) % ep;
  return needed <= model.n_routed_experts ? needed : 0;
}

AllToAllWork transfer_of(const OpKeys& keys, const MachineFacts& machine) {
  const auto gpus_per_node = static_cast<int>(machine.gpus_per_node);
  AllToAllWork work;
  const int ep = keys.spec().integer_or("ep", 2, 1 << 20, 64);
  const Architecture model = gating_of(keys, ep, gpus_per_node);
  const int redundant = keys.spec().integer_or("redundant_experts", 0, 1 << 16, redundant_for(ep, model));
  if ((model.n_routed_experts + redundant) % ep != 0) {
    throw keys.spec().error("ep", fmt::format("must divide the {} routed and {} redundant experts: {} does not",
                                              model.n_routed_experts, redundant, ep));
  }
  if (ep > gpus_per_node && ep % gpus_per_node != 0) {
    throw keys.spec().error("ep", fmt::format("must fill whole nodes of {} GPUs, or fit into one", gpus_per_node));
  }
  work.hidden = keys.size("hidden", model.hidden_size);
  work.top_k = model.num_experts_per_tok;
  work.tokens = keys.size("tokens", keys.choice("mode", {"normal", "low_latency"}) == "normal" ? 4096 : 128);
  work.experts = model.n_routed_experts + redundant;
  work.ep = ep;
  work.gpus_per_node = gpus_per_node;
  work.spread = expected_spread(model, ep, gpus_per_node, 1, redundant);
  return work;
}

RequestedOp transfer(const std::string& text, const MachineFacts& machine, bool dispatch) {
  constexpr int kSms = 24;  // DeepEP's default
  const OpKeys keys(text, {"mode", "ep", "tokens", "hidden", "top_k", "gating", "redundant_experts"});
  const AllToAllWork work = transfer_of(keys, machine);
  if (keys.choice("mode", {"normal", "low_latency"}) == "low_latency") {
    const Operator op = dispatch ? low_latency_dispatch(work, Stage::whole) : low_latency_combine(work, Stage::whole);
    return {text, {op}, keys.all_sms(machine)};
  }
  return {text, {(dispatch ? normal_dispatch(work) : normal_combine(work)).back()}, keys.sms(machine, kSms)};
}

}  // namespace

RequestedOp dispatch_op(const std::string& text, const MachineFacts& machine) { return transfer(text, machine, true); }

RequestedOp combine_op(const std::string& text, const MachineFacts& machine) { return transfer(text, machine, false); }

}  // namespace moeline
