// OPs of collectives.
#include <fmt/format.h>

#include <algorithm>

#include "curves/custom_all_reduce.hpp"
#include "hardware/op_keys.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/collectives.hpp"

namespace moeline {
namespace {

// Ranks follow each other, so that they fill nodes.
Replicas ranks_of(const OpKeys& keys, const MachineFacts& machine) {
  const auto gpus_per_node = static_cast<int>(machine.gpus_per_node);
  const int ranks = keys.spec().integer_or("ranks", 2, 1 << 20, std::clamp(gpus_per_node, 2, 8));
  if (ranks > gpus_per_node && ranks % gpus_per_node != 0) {
    throw keys.spec().error("ranks", fmt::format("must fill whole nodes of {} GPUs, or fit into one", gpus_per_node));
  }
  return {ranks, std::min(ranks, gpus_per_node), {ranks, ranks > gpus_per_node ? 1.0 : 0.0}};
}

double message_bytes(const OpKeys& keys) { return keys.number_or("bytes", 1, 1e15, 4096.0 * 7168 * 2); }

using Collective = Operator (*)(double bytes, const Replicas& replicas);

RequestedOp collective_op(const std::string& text, const MachineFacts& machine, Collective collective) {
  const OpKeys keys(text, {"ranks", "bytes", "impl"});
  static_cast<void>(keys.choice("impl", {"nccl"}));
  return {text, {collective(message_bytes(keys), ranks_of(keys, machine))}, keys.conditions(machine)};
}

}  // namespace

RequestedOp all_reduce_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"ranks", "bytes", "impl"});
  const Replicas ranks = ranks_of(keys, machine);
  const bool custom = keys.choice("impl", {"nccl", "custom"}) == "custom";
  if (custom && ranks.ranks > ranks.per_node) {
    throw keys.spec().error("impl", fmt::format("custom is within a node: of {} ranks at most", ranks.per_node));
  }
  const double bytes = message_bytes(keys);
  const Operator op = custom ? custom_all_reduce(bytes, ranks, most_custom_bytes(machine)) : all_reduce(bytes, ranks);
  return {text, {op}, keys.conditions(machine)};
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

}  // namespace moeline
