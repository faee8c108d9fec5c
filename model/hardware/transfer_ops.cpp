// OPs of the all-to-all and of collectives.
#include <fmt/format.h>

#include <algorithm>

#include "curves/form.hpp"
#include "curves/hybrid_ep.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/all_to_all.hpp"
#include "moe/collectives.hpp"
#include "routing/gating.hpp"

namespace moeline {

// OPs of the all-to-all.

namespace {

const std::vector<std::string> kGatings = {"model", "benchmark", "distinct"};

// The modes, and what each takes tokens and results in.
struct Mode {
  std::string name;
  int tokens;
  std::vector<std::string> dispatched, combined;
};

Mode mode_of(const OpKeys& keys) {
  static const std::vector<Mode> kModes = {{"normal", 4096, {"fp8"}, {"bf16"}},
                                           {"low_latency", 128, {"fp8"}, {"bf16"}},
                                           {"nvlink", 4096, {"fp8", "bf16", "nvfp4"}, {"bf16", "nvfp4"}},
                                           {"hybrid_ep", 4096, {"bf16", "fp8"}, {"bf16"}}};
  std::vector<std::string> names;
  for (const Mode& mode : kModes) names.push_back(mode.name);
  const std::string name = keys.choice("mode", names);
  return *std::find_if(kModes.begin(), kModes.end(), [&](const Mode& mode) { return mode.name == name; });
}

// A model with so many experts, of which a token chooses without regard to groups.
Architecture with_experts(Architecture model, int experts) {
  model.n_routed_experts = experts;
  model.n_group = model.topk_group = 1;
  return model;
}

// The model's gating, or that of DeepEP's benchmark, with which its published figures were measured.
Architecture gating_of(const OpKeys& keys, int ep, int gpus_per_node) {
  Architecture model = load_architecture("deepseek-v3");
  if (keys.spec().has("experts")) model = with_experts(model, keys.spec().integer("experts", 1, 1 << 16));
  model.num_experts_per_tok = keys.spec().integer_or("top_k", 1, model.n_routed_experts, model.num_experts_per_tok);
  if (keys.choice("gating", kGatings) == "benchmark") {
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

// As TensorRT-LLM's benchmark has it: no two experts of a token on one rank while there are others.
Spread distinct_ranks(const AllToAllWork& work) {
  const double nodes = std::max(1.0, static_cast<double>(work.ep) / work.gpus_per_node);
  return {std::min(work.top_k, nodes), std::min(work.top_k, static_cast<double>(work.ep))};
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
  work.tokens = keys.size("tokens", mode_of(keys).tokens);
  work.experts = model.n_routed_experts + redundant;
  work.ep = ep;
  work.gpus_per_node = gpus_per_node;
  const bool distinct = keys.choice("gating", kGatings) == "distinct";
  work.spread = distinct ? distinct_ranks(work) : expected_spread(model, ep, gpus_per_node, 1, redundant);
  return work;
}

// The one kernel that is asked for, of those that make up the transfer.
Operator nvlink_op(const AllToAllWork& work, bool dispatch, bool prepare) {
  const std::vector<Operator> kernels = dispatch ? nvlink_dispatch(work) : nvlink_combine(work);
  return prepare ? kernels.front() : kernels.back();
}

RequestedOp transfer(const std::string& text, const MachineFacts& machine, bool dispatch) {
  constexpr int kSms = 24;  // DeepEP's default
  const OpKeys keys(text, {"mode", "ep", "tokens", "hidden", "top_k", "experts", "gating", "redundant_experts", "dtype",
                           "part", "l2"});
  const Mode mode = mode_of(keys);
  const bool nvlink = mode.name == "nvlink", hybrid_ep = mode.name == "hybrid_ep";
  AllToAllWork work = transfer_of(keys, machine);
  if (nvlink && work.ep > work.gpus_per_node) {
    throw keys.spec().error("mode",
                            fmt::format("{} is within a node: of {} ranks at most", mode.name, work.gpus_per_node));
  }
  const std::string dtype = keys.choice("dtype", dispatch ? mode.dispatched : mode.combined);
  (dispatch ? work.dispatch : work.combine) = precision_named(dtype);
  const std::vector<std::string> whole = {"transfer"}, parts = {"transfer", "prepare"};
  const bool prepare = keys.choice("part", nvlink && dispatch ? parts : whole) == "prepare";
  Operator op;
  if (nvlink) {
    op = nvlink_op(work, dispatch, prepare);
  } else if (hybrid_ep) {
    op = dispatch ? hybrid_ep_dispatch(work) : hybrid_ep_combine(work);
  } else if (mode.name == "low_latency") {
    op = dispatch ? low_latency_dispatch(work, Stage::whole) : low_latency_combine(work, Stage::whole);
  } else {
    op = (dispatch ? normal_dispatch(work) : normal_combine(work)).back();
  }
  op.hot = keys.choice("l2", {"cold", "hot"}) == "hot";
  if (!hybrid_ep)
    return {text, {op}, mode.name == "normal" ? keys.conditions(machine, kSms) : keys.conditions(machine)};
  PriceConditions conditions = keys.conditions(machine, hybrid_ep_usual_sms(work.ep <= work.gpus_per_node));
  conditions.held = conditions.sms;
  return {text, {op}, conditions};
}

}  // namespace

RequestedOp dispatch_op(const std::string& text, const MachineFacts& machine) { return transfer(text, machine, true); }

RequestedOp combine_op(const std::string& text, const MachineFacts& machine) { return transfer(text, machine, false); }

// OPs of collectives.

namespace {

// Ranks follow each other, so that they fill nodes, or as many GPUs of each.
Replicas ranks_of(const OpKeys& keys, const MachineFacts& machine) {
  const auto of_node = static_cast<int>(machine.gpus_per_node);
  const int per_node = keys.spec().integer_or("gpus_per_node", 1, of_node, of_node);
  const int ranks = keys.spec().integer_or("ranks", 2, 1 << 20, std::clamp(per_node, 2, 8));
  if (ranks <= per_node) return {ranks, ranks, {ranks, 0}};
  if (ranks % per_node != 0) {
    throw keys.spec().error("ranks", fmt::format("must fill whole nodes of {} GPUs, or fit into one", per_node));
  }
  return {ranks, per_node, {ranks / per_node * of_node, 1}};
}

double message_bytes(const OpKeys& keys) { return keys.number_or("bytes", 1, 1e15, 4096.0 * 7168 * 2); }

using Collective = Operator (*)(double bytes, const Replicas& replicas);

RequestedOp of_nccl(const std::string& text, const Operator& op, const OpKeys& keys, const MachineFacts& machine) {
  PriceConditions conditions = keys.conditions(machine);
  conditions.channels = true;
  return {text, {op}, conditions};
}

RequestedOp collective_op(const std::string& text, const MachineFacts& machine, Collective collective) {
  const OpKeys keys(text, {"ranks", "gpus_per_node", "bytes", "impl"});
  static_cast<void>(keys.choice("impl", {"nccl"}));
  return of_nccl(text, collective(message_bytes(keys), ranks_of(keys, machine)), keys, machine);
}

}  // namespace

RequestedOp all_reduce_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"ranks", "gpus_per_node", "bytes", "impl"});
  const Replicas ranks = ranks_of(keys, machine);
  const bool custom = keys.choice("impl", {"nccl", "custom"}) == "custom";
  if (custom && ranks.ranks > ranks.per_node) {
    throw keys.spec().error("impl", fmt::format("custom is within a node: of {} ranks at most", ranks.per_node));
  }
  const double bytes = message_bytes(keys);
  const Operator op = custom ? custom_all_reduce(bytes, ranks, most_custom_bytes(machine)) : all_reduce(bytes, ranks);
  return of_nccl(text, op, keys, machine);
}

RequestedOp all_gather_op(const std::string& text, const MachineFacts& machine) {
  return collective_op(text, machine, all_gather);
}

RequestedOp reduce_scatter_op(const std::string& text, const MachineFacts& machine) {
  return collective_op(text, machine, reduce_scatter);
}

RequestedOp all_to_all_op(const std::string& text, const MachineFacts& machine) {
  return collective_op(text, machine, all_to_all);
}

RequestedOp send_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"bytes", "to"});
  const bool leaves_node = keys.choice("to", {"node", "gpu"}) == "node";
  const Reach reach{leaves_node ? static_cast<int>(machine.gpus_per_node) + 1 : 2, leaves_node ? 1.0 : 0.0};
  return of_nccl(text, send(message_bytes(keys), reach), keys, machine);
}

}  // namespace moeline
