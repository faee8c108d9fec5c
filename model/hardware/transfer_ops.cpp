// OPs of the all-to-all and of collectives.
#include <fmt/format.h>

#include <algorithm>

#include "curves/deep_ep_v2.hpp"
#include "curves/form.hpp"
#include "curves/hybrid_ep.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/collectives.hpp"
#include "moe/dispatcher.hpp"
#include "routing/gating.hpp"

namespace moeline {

// OPs of the all-to-all.

namespace {

const std::vector<std::string> kGatings = {"model", "benchmark", "distinct"};

const Dispatcher& mode_of(const OpKeys& keys) {
  std::vector<std::string> names;
  for (const Dispatcher& each : dispatchers()) {
    if (each.asked_dispatch != nullptr) names.push_back(each.word);
  }
  const std::string name = keys.choice("mode", names);
  return *std::find_if(dispatchers().begin(), dispatchers().end(), [&](const auto& each) { return each.word == name; });
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

// What belongs to DeepEP's second version alone.
void check_layout_keys(const OpKeys& keys, const Dispatcher& by) {
  for (const char* key : {"topology", "layout", "gpus_per_node"}) {
    if (!by.has_layouts && keys.spec().has(key)) {
      throw keys.spec().error(key, fmt::format("belongs to mode=deepep_v2, not {}", by.word));
    }
  }
}

AllToAllWork transfer_of(const OpKeys& keys, const MachineFacts& machine) {
  const auto of_machine = static_cast<int>(machine.gpus_per_node);
  const int gpus_per_node = keys.spec().integer_or("gpus_per_node", 1, of_machine, of_machine);
  if (gpus_per_node != of_machine && machine.leaf_nodes > 0) {
    throw keys.spec().error("gpus_per_node", fmt::format("is {} on a machine whose leaf switches are described; set "
                                                         "hardware.gpus_per_node, which they go by",
                                                         of_machine));
  }
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
  work.tokens = keys.size("tokens", mode_of(keys).usual_tokens);
  work.experts = model.n_routed_experts + redundant;
  work.ep = ep;
  work.gpus_per_node = gpus_per_node;
  const bool distinct = keys.choice("gating", kGatings) == "distinct";
  work.spread = distinct ? distinct_ranks(work) : expected_spread(model, ep, gpus_per_node, 1, redundant);
  return work;
}

// Of the kernels that make up a transfer, those that are asked for.
std::vector<Operator> part_of(std::vector<Operator> kernels, const OpKeys& keys, const Dispatcher& by, bool dispatch) {
  const bool prepares = by.mode == CommMode::nvlink && dispatch;
  std::vector<std::string> parts = {"transfer"};
  if (prepares) parts = {"transfer", "prepare"};
  if (by.has_layouts) parts = {"all", "transfer", "epilogue"};
  const std::string part = keys.choice("part", parts);
  if (part == "all") return kernels;
  if (part == "epilogue") return {kernels.back()};
  if (part == "prepare" || by.has_layouts) return {kernels.front()};
  return {kernels.back()};
}

// SMs that a library's transfer holds where nobody says; 0: all, or none.
int usual_sms(const AllToAllWork& work, const Dispatcher& by, const MachineFacts& machine) {
  constexpr int kNormal = 24;  // DeepEP's default
  switch (by.mode) {
    case CommMode::normal:
      return kNormal;
    case CommMode::hybrid_ep:
      return hybrid_ep_usual_sms(work.ep <= work.gpus_per_node);
    case CommMode::deepep_v2:
      return deep_ep_v2_sms({.ranks = work.ep,
                             .gpus_per_node = work.gpus_per_node,
                             .experts = work.experts,
                             .top_k = static_cast<int>(work.top_k),
                             .hybrid = work.elastic.topology == Topology::hybrid,
                             .overlaps = true},
                            machine);
    default:
      return 0;
  }
}

RequestedOp transfer(const std::string& text, const MachineFacts& machine, bool dispatch) {
  const OpKeys keys(text, {"mode", "ep", "tokens", "hidden", "top_k", "experts", "gating", "redundant_experts", "dtype",
                           "part", "l2", "topology", "layout", "gpus_per_node"});
  const Dispatcher& by = mode_of(keys);
  check_layout_keys(keys, by);
  AllToAllWork work = transfer_of(keys, machine);
  if (by.from_hopper_on && machine.fp8_tflops == 0) throw keys.spec().error("mode", by.word + " needs Hopper or later");
  if (by.in_domain && work.ep > work.gpus_per_node) {
    throw keys.spec().error("mode",
                            fmt::format("{} is within a node: of {} ranks at most", by.word, work.gpus_per_node));
  }
  if (by.most_ranks > 0 && work.ep > by.most_ranks) {
    throw keys.spec().error("mode", fmt::format("{} ends at {} ranks", by.word, by.most_ranks));
  }
  const std::string dtype = keys.choice("dtype", dispatch ? by.sends_in : by.returns_in);
  (dispatch ? work.dispatch : work.combine) = precision_named(dtype);
  if (keys.choice("topology", {"hybrid", "direct"}) == "direct") work.elastic.topology = Topology::direct;
  if (keys.choice("layout", {"contiguous", "expanded"}) == "expanded") work.elastic.layout = RowLayout::expanded;
  work.rows = work.tokens * work.top_k;
  std::vector<Operator> ops = part_of((dispatch ? by.asked_dispatch : by.asked_combine)(work), keys, by, dispatch);
  const bool hot = keys.choice("l2", {"cold", "hot"}) == "hot";
  for (Operator& op : ops) op.hot = hot;
  const int sms = is_communication(ops.front().family) ? usual_sms(work, by, machine) : 0;
  PriceConditions conditions = sms > 0 ? keys.conditions(machine, sms) : keys.conditions(machine);
  if (by.mode == CommMode::hybrid_ep) conditions.held = conditions.sms;
  return {text, std::move(ops), conditions};
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
