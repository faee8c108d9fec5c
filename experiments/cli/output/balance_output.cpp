#include "experiments/cli/output/balance_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.hpp"
#include "experiments/cli/output/json.hpp"

namespace moeline {
namespace {

constexpr int kDecimals = 6;

std::string assumption_of(const Balancing& balancing) {
  if (balancing.counted) return "counted from the router map; a token takes any copy of an expert with equal chance";
  const Gating& gating = balancing.gating;
  const std::string choice =
      gating.groups > 1 ? fmt::format("{} of {} groups", gating.kept_groups, gating.groups) : "all experts";
  return fmt::format(
      "{} random tokens per layer choose top-{} from {}, each expert about in proportion to its load and otherwise "
      "independently; homes are uniform over GPUs, a token takes any copy of an expert with equal chance",
      balancing.tokens, gating.top_k, choice);
}

// "" where the loads are possible.
std::string warning_of(const Balancing& balancing) {
  if (balancing.overfull == 0) return "";
  return fmt::format(
      "in {} of {} layers an expert has more load than top-{} routing can give it (one in {} of all); every drawn "
      "token "
      "chooses it, and others more often than their load says",
      balancing.overfull, balancing.layers.size(), balancing.gating.top_k, balancing.gating.top_k);
}

const char* policy_of(const PlacementShape& shape) { return shape.hierarchical() ? "hierarchical" : "global"; }

void add_traffic(Json& json, const CrossNode& traffic, bool counted) {
  json.add("cross_node_before", traffic.before, kDecimals).add("cross_node_after", traffic.after, kDecimals);
  if (counted) return;
  json.add("standard_error_before", traffic.error_before, kDecimals);
  json.add("standard_error_after", traffic.error_after, kDecimals);
}

void add_layers(Json& json, const Balancing& balancing) {
  json.open_list("layers");
  for (const BalancedLayer& layer : balancing.layers) {
    json.open().add("layer", layer.layer);
    json.add("imbalance_before", layer.gpus_before, kDecimals).add("imbalance_after", layer.gpus_after, kDecimals);
    json.add("node_imbalance_before", layer.nodes_before, kDecimals);
    json.add("node_imbalance_after", layer.nodes_after, kDecimals);
    add_traffic(json, layer.traffic, balancing.counted);
    json.close();
  }
  json.close_list();
}

void add_imbalance(Json& json, const char* name, const Imbalance& imbalance) {
  json.open(name).add("worst", imbalance.worst, kDecimals).add("mean", imbalance.mean, kDecimals).close();
}

void add_steps(Json& json, const Balancing& balancing, const RebalancePolicy& policy) {
  if (balancing.followed.empty()) return;
  json.open("rebalancing").add("every_steps", policy.every_steps);
  json.add("newest_weight", policy.newest_weight, kDecimals).open_list("steps");
  for (std::size_t i = 0; i < balancing.followed.size(); ++i) {
    const BalancedStep& step = balancing.followed[i];
    json.open().add("step", balancing.steps[i + 1]);
    add_imbalance(json, "before", step.before);
    add_imbalance(json, "static", step.fixed);
    add_imbalance(json, "rebalanced", step.rebalanced);
    json.add("moved_copies", step.moved_copies).close();
  }
  json.close_list().close();
}

std::string shape_line(const Balancing& balancing) {
  const PlacementShape& s = balancing.shape;
  const std::string policy = s.hierarchical() && s.nodes > 1 ? fmt::format("hierarchical, {} of {} groups on each node",
                                                                           s.groups / s.nodes, s.groups)
                                                             : policy_of(s);
  return fmt::format("{} layers of {} experts in {} slots, on {} GPUs of {} nodes: {}\n\n", balancing.layers.size(),
                     s.experts, s.replicas, s.gpus, s.nodes, policy);
}

// "5 6 | 5 7 || 10 9 | 10 2": GPUs and nodes apart.
std::string slots_line(const Placement& placement) {
  std::string line;
  for (int slot = 0; slot < placement.slots(); ++slot) {
    const bool same_gpu = slot > 0 && placement.gpu_of(slot) == placement.gpu_of(slot - 1);
    const bool same_node = slot > 0 && placement.node_of(slot) == placement.node_of(slot - 1);
    line += slot == 0 ? "" : same_gpu ? " " : same_node ? " | " : " || ";
    line += std::to_string(placement.expert_of_slot[static_cast<std::size_t>(slot)]);
  }
  return line;
}

std::string placement_table(const Balancing& balancing) {
  TextTable table("rl");
  table.row({"layer", "expert of each slot; | next GPU, || next node"});
  for (const BalancedLayer& layer : balancing.layers) {
    table.row({std::to_string(layer.layer), slots_line(layer.placement)});
  }
  return table.text() + "\n";
}

std::string ratio_text(double value) { return fmt::format("{:.3f}", value); }

std::string nodes_cell(double nodes, double error) {
  return error > 0 ? fmt::format("{:.3f} +- {:.3f}", nodes, error) : ratio_text(nodes);
}

// One clause a line.
std::string lines_of(std::string clauses) {
  for (std::size_t at = 0; (at = clauses.find("; ", at)) != std::string::npos; ++at) clauses[at + 1] = '\n';
  return clauses;
}

std::string layers_table(const Balancing& balancing) {
  TextTable table("lrrrrrr");
  table.row({"layer", "GPUs before", "after", "nodes before", "after", "other nodes before", "after"});
  for (const BalancedLayer& layer : balancing.layers) {
    const CrossNode& t = layer.traffic;
    table.row({std::to_string(layer.layer), ratio_text(layer.gpus_before), ratio_text(layer.gpus_after),
               ratio_text(layer.nodes_before), ratio_text(layer.nodes_after), nodes_cell(t.before, t.error_before),
               nodes_cell(t.after, t.error_after)});
  }
  const CrossNode mean = balancing.traffic();
  table.row({"worst, mean", ratio_text(balancing.worst(&BalancedLayer::gpus_before)),
             ratio_text(balancing.worst(&BalancedLayer::gpus_after)),
             ratio_text(balancing.worst(&BalancedLayer::nodes_before)),
             ratio_text(balancing.worst(&BalancedLayer::nodes_after)), nodes_cell(mean.before, mean.error_before),
             nodes_cell(mean.after, mean.error_after)});
  return table.text() +
         "GPUs, nodes: max / mean of their loads, last row the worst layer. Before: experts in order, no copies.\n"
         "Other nodes: distinct nodes that a token reaches besides its own, last row the mean;\n" +
         lines_of(assumption_of(balancing)) + ".\n";
}

std::string steps_table(const Balancing& balancing, const RebalancePolicy& policy) {
  if (balancing.followed.empty()) return "";
  TextTable table("lrrrrrrr");
  table.row({"step", "before", "mean", "static", "mean", "rebalanced", "mean", "moved copies"});
  for (std::size_t i = 0; i < balancing.followed.size(); ++i) {
    const BalancedStep& s = balancing.followed[i];
    table.row({std::to_string(balancing.steps[i + 1]), ratio_text(s.before.worst), ratio_text(s.before.mean),
               ratio_text(s.fixed.worst), ratio_text(s.fixed.mean), ratio_text(s.rebalanced.worst),
               ratio_text(s.rebalanced.mean), std::to_string(s.moved_copies)});
  }
  return "\n" + table.text() +
         fmt::format(
             "GPUs' max / mean in each step, worst layer and mean over layers. Static: placed from the first "
             "step. Rebalanced: placed\nfrom the moving average of earlier steps (the newest weighs {}), "
             "every {}. Above: one placement for the sum of all steps.\n",
             policy.newest_weight, policy.every_steps == 1 ? "step" : fmt::format("{} steps", policy.every_steps));
}

}  // namespace

std::string balance_json(const Balancing& balancing, const RebalancePolicy& policy) {
  const PlacementShape& shape = balancing.shape;
  Json json;
  json.open().add("schema_version", 1).add("policy", policy_of(shape));
  json.add("experts", shape.experts).add("replicas", shape.replicas).add("groups", shape.groups);
  json.add("nodes", shape.nodes).add("gpus", shape.gpus);
  json.add("imbalance_before", balancing.worst(&BalancedLayer::gpus_before), kDecimals);
  json.add("imbalance_after", balancing.worst(&BalancedLayer::gpus_after), kDecimals);
  json.add("node_imbalance_before", balancing.worst(&BalancedLayer::nodes_before), kDecimals);
  json.add("node_imbalance_after", balancing.worst(&BalancedLayer::nodes_after), kDecimals);
  json.open("traffic").add("method", balancing.counted ? "counted" : "sampled");
  add_traffic(json, balancing.traffic(), balancing.counted);
  json.add("assumption", assumption_of(balancing)).close();
  add_layers(json, balancing);
  add_steps(json, balancing, policy);
  json.open_list("placement");
  for (const BalancedLayer& layer : balancing.layers) json.item(layer.placement.expert_of_slot);
  json.close_list();
  const std::string warning = warning_of(balancing);
  json.add("warnings", warning.empty() ? std::vector<std::string>{} : std::vector<std::string>{warning});
  return json.close().text();
}

std::string balance_table(const Balancing& balancing, const RebalancePolicy& policy) {
  const std::string warning = warning_of(balancing);
  return shape_line(balancing) + placement_table(balancing) + layers_table(balancing) +
         (warning.empty() ? "" : "Warning: " + lines_of(warning) + ".\n") + steps_table(balancing, policy);
}

}  // namespace moeline
