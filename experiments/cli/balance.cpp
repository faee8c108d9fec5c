// moeline balance: where experts go so that GPUs have equal work, and what that does to the network.
#include <fmt/format.h>

#include <functional>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/report/fields.hpp"
#include "routing/balancing.hpp"

namespace moeline {
namespace {

constexpr int kMostGpus = 16384;

struct BalanceOptions {
  BalanceRequest request;
  std::string format = "table";
};

struct FollowedStep {
  int number = 0;
  BalancedStep step;
};

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

std::vector<std::string> warnings_of(const Balancing& balancing) {
  if (balancing.overfull == 0) return {};
  return {
      fmt::format("in {} of {} layers an expert has more load than top-{} routing can give it (one in {} of all); "
                  "every drawn token chooses it, and others more often than their load says",
                  balancing.overfull, balancing.layers.size(), balancing.gating.top_k, balancing.gating.top_k)};
}

const char* policy_of(const PlacementShape& shape) { return shape.hierarchical() ? "hierarchical" : "global"; }

// Of all layers the worst, and their mean traffic.
BalancedLayer summary_of(const Balancing& balancing) {
  BalancedLayer all;
  all.traffic = balancing.traffic();
  for (double BalancedLayer::*of : {&BalancedLayer::gpus_before, &BalancedLayer::gpus_after,
                                    &BalancedLayer::nodes_before, &BalancedLayer::nodes_after}) {
    all.*of = balancing.worst(of);
  }
  return all;
}

std::vector<FollowedStep> followed_steps(const Balancing& balancing) {
  std::vector<FollowedStep> steps;
  for (std::size_t i = 0; i < balancing.followed.size(); ++i) {
    steps.push_back({balancing.steps[i + 1], balancing.followed[i]});
  }
  return steps;
}

As ratio_as(const std::string& heading = "") { return {.decimals = 6, .heading = heading, .format = "{:.3f}"}; }

Fields<BalancedLayer> imbalance_fields() {
  return Fields<BalancedLayer>()
      .add("imbalance_before", "max / mean of the GPUs' loads, experts in order, no copies",
           &BalancedLayer::gpus_before, ratio_as("GPUs before"))
      .add("imbalance_after", "by the placement", &BalancedLayer::gpus_after, ratio_as("after"))
      .add("node_imbalance_before", "of nodes", &BalancedLayer::nodes_before, ratio_as("nodes before"))
      .add("node_imbalance_after", "of nodes, by the placement", &BalancedLayer::nodes_after, ratio_as("after"));
}

std::string nodes_cell(double nodes, double error) {
  return error > 0 ? fmt::format("{:.3f} +- {:.3f}", nodes, error) : fmt::format("{:.3f}", nodes);
}

Fields<CrossNode> traffic_fields(bool counted) {
  return Fields<CrossNode>()
      .add("cross_node_before", "distinct nodes that a token reaches besides its own", &CrossNode::before, ratio_as())
      .add("cross_node_after", "by the placement", &CrossNode::after, ratio_as())
      .add(
          "standard_error_before", "of sampled tokens", [=](auto& t) { return only_if(!counted, t.error_before); },
          ratio_as())
      .add(
          "standard_error_after", "of sampled tokens", [=](auto& t) { return only_if(!counted, t.error_after); },
          ratio_as())
      .column("other nodes before", [](auto& t) { return nodes_cell(t.before, t.error_before); }, {.align = 'r'})
      .column("after", [](auto& t) { return nodes_cell(t.after, t.error_after); }, {.align = 'r'});
}

Fields<BalancedLayer> layer_fields(bool counted) {
  return Fields<BalancedLayer>()
      .add("layer", "number", &BalancedLayer::layer, {.heading = "layer", .align = 'l'})
      .all(std::identity(), imbalance_fields())
      .all(&BalancedLayer::traffic, traffic_fields(counted));
}

Fields<Imbalance> worst_and_mean() {
  return Fields<Imbalance>()
      .add("worst", "of all layers", &Imbalance::worst, ratio_as())
      .add("mean", "over layers", &Imbalance::mean, ratio_as());
}

Fields<FollowedStep> step_fields() {
  return Fields<FollowedStep>()
      .add("step", "number", &FollowedStep::number, {.least = kAny})
      .object(
          "before", "experts in order, no copies", [](auto& s) { return s.step.before; }, worst_and_mean())
      .object(
          "static", "placed from the first step", [](auto& s) { return s.step.fixed; }, worst_and_mean())
      .object(
          "rebalanced", "placed from the moving average", [](auto& s) { return s.step.rebalanced; }, worst_and_mean())
      .add("moved_copies", "experts that some GPU must newly receive", [](auto& s) { return s.step.moved_copies; });
}

Fields<FollowedStep> step_columns() {
  const As ratio = ratio_as();
  return Fields<FollowedStep>()
      .column("step", &FollowedStep::number, {.align = 'l'})
      .column(
          "before", [](auto& s) { return s.step.before.worst; }, ratio)
      .column(
          "mean", [](auto& s) { return s.step.before.mean; }, ratio)
      .column(
          "static", [](auto& s) { return s.step.fixed.worst; }, ratio)
      .column(
          "mean", [](auto& s) { return s.step.fixed.mean; }, ratio)
      .column(
          "rebalanced", [](auto& s) { return s.step.rebalanced.worst; }, ratio)
      .column(
          "mean", [](auto& s) { return s.step.rebalanced.mean; }, ratio)
      .column("moved copies", [](auto& s) { return s.step.moved_copies; });
}

Fields<Balancing> traffic_of_all(bool counted) {
  return Fields<Balancing>()
      .add("method", "of a router map counted, of loads sampled",
           [](auto& b) { return b.counted ? "counted" : "sampled"; }, {.words = {"counted", "sampled"}})
      .all(&Balancing::traffic, traffic_fields(counted))
      .add("assumption", "how tokens choose", assumption_of);
}

Fields<Balancing> rebalancing_fields(const RebalancePolicy& policy) {
  return Fields<Balancing>()
      .add("every_steps", "steps between placements", [=](auto&) { return policy.every_steps; })
      .add("newest_weight", "of the moving average", [=](auto&) { return policy.newest_weight; },
           {.decimals = 6, .most = 1})
      .list("steps", "by step", followed_steps, step_fields());
}

Fields<Balancing> balance_fields(bool counted, const RebalancePolicy& policy) {
  return output_fields<Balancing>()
      .add("policy", "groups are packed on nodes first, or not", [](auto& b) { return policy_of(b.shape); },
           {.words = {"hierarchical", "global"}})
      .add("experts", "experts", [](auto& b) { return b.shape.experts; })
      .add("replicas", "slots of all GPUs", [](auto& b) { return b.shape.replicas; })
      .add("groups", "groups of the gating", [](auto& b) { return b.shape.groups; })
      .add("nodes", "nodes", [](auto& b) { return b.shape.nodes; })
      .add("gpus", "GPUs", [](auto& b) { return b.shape.gpus; })
      .all(summary_of, imbalance_fields())
      .object("traffic", "between nodes, mean over layers", std::identity(), traffic_of_all(counted))
      .list("layers", "by layer", &Balancing::layers, layer_fields(counted))
      .object(
          "rebalancing", "of several time steps", [](auto& b) { return b.followed.empty() ? nullptr : &b; },
          rebalancing_fields(policy))
      .add("placement", "by layer, the expert of each slot",
           [](auto& b) {
             std::vector<std::vector<int>> slots;
             for (const BalancedLayer& layer : b.layers) slots.push_back(layer.placement.expert_of_slot);
             return slots;
           })
      .add("warnings", "what the reader should know", warnings_of);
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
  return Fields<BalancedLayer>()
             .column("layer", &BalancedLayer::layer)
             .column("expert of each slot; | next GPU, || next node", [](auto& l) { return slots_line(l.placement); })
             .table(balancing.layers)
             .text() +
         "\n";
}

// One clause a line.
std::string lines_of(std::string clauses) {
  for (std::size_t at = 0; (at = clauses.find("; ", at)) != std::string::npos; ++at) clauses[at + 1] = '\n';
  return clauses;
}

std::string layers_table(const Balancing& balancing) {
  const Fields<BalancedLayer> fields = layer_fields(balancing.counted);
  TextTable table = fields.table(balancing.layers);
  std::vector<std::string> last = fields.cells(summary_of(balancing));
  last.front() = "worst, mean";
  table.row(last);
  return table.text() +
         "GPUs, nodes: max / mean of their loads, last row the worst layer. Before: experts in order, no copies.\n"
         "Other nodes: distinct nodes that a token reaches besides its own, last row the mean;\n" +
         lines_of(assumption_of(balancing)) + ".\n";
}

std::string steps_table(const Balancing& balancing, const RebalancePolicy& policy) {
  if (balancing.followed.empty()) return "";
  return "\n" + step_columns().table(followed_steps(balancing)).text() +
         fmt::format(
             "GPUs' max / mean in each step, worst layer and mean over layers. Static: placed from the first "
             "step. Rebalanced: placed\nfrom the moving average of earlier steps (the newest weighs {}), "
             "every {}. Above: one placement for the sum of all steps.\n",
             policy.newest_weight, policy.every_steps == 1 ? "step" : fmt::format("{} steps", policy.every_steps));
}

std::string balance_table(const Balancing& balancing, const RebalancePolicy& policy) {
  std::string text = shape_line(balancing) + placement_table(balancing) + layers_table(balancing);
  for (const std::string& warning : warnings_of(balancing)) text += "Warning: " + lines_of(warning) + ".\n";
  return text + steps_table(balancing, policy);
}

constexpr const char* kBalanceDefinitions = R"(LOADS, one of:
  layer,expert,load         one row per layer and expert; with a column `step`, per time step as well
  token,layer,expert0,...   a router map: one row per token and layer with the experts it chose; a column `rank` names
                            the token's home GPU, otherwise it is the token's number modulo --gpus
  90,132,40,...             no header, one line per layer, one number per expert
placement: DeepSeek's EPLB. Hierarchical where nodes divides groups: groups are packed on nodes, experts replicated
within their node, copies packed on its GPUs. Otherwise global. Ties go to the first.
imbalance: max / mean of the GPUs' (or nodes') loads, copies sharing their expert's load evenly; of all layers the
worst. before: experts in order, no copies; where they do not divide evenly, GPUs differ by one expert.
cross_node: distinct nodes that a token reaches besides its own, as DeepEP's normal mode sends once to each; mean over
layers. Of a router map it is counted. From loads it is sampled, with the standard error beside it: tokens choose
experts about in proportion to their loads, keeping the groups with the largest sum of their two best scores. With
groups of unequal load such tokens prefer the heavier groups, so that loads drawn differ by some percent from those
given (power law of alpha 0.6: 4 % of the choices are others').
steps: each step is served by a placement made before it, from the first step (static) or from an exponential moving
average (rebalanced); moved copies are experts that some GPU must newly receive.)";

std::vector<Option> options_of(BalanceRequest& r) {
  return {
      {"LOADS", &r.file, "CSV of loads, or a router map"},
      {.names = "--power-law",
       .target = &r.alpha,
       .help = "instead of LOADS: loads proportional to rank^-ALPHA",
       .check = Between{0.0, 10.0},
       .excludes = "LOADS",
       .type_name = "ALPHA"},
      needs("--power-law", {"--layers", &r.layers, "of --power-law (1)", Between{1, 1000}}),
      {"--experts", &r.experts, "of --power-law or a router map; loads must have as many", Between{1, 4096}},
      {"--seed", &r.seed, "of the power law and of sampled tokens (1)"},
      required({"--gpus", &r.gpus, "of all nodes", Between{1, kMostGpus}}),
      {"--nodes", &r.nodes, "(1)", Between{1, kMostGpus}},
      {"--groups", &r.groups, "of the gating (1)", Between{1, 4096}},
      {"--replicas", &r.replicas, "slots of all GPUs (the experts, up to a multiple of GPUs)", Between{1, kMostGpus}},
      {"--top-k", &r.top_k, "experts per token, of sampled tokens (8)", Between{1, 4096}},
      {"--topk-group", &r.kept_groups, "groups per token, of sampled tokens (4)", Between{1, 4096}},
      {"--tokens", &r.tokens, "sampled per layer (2048)", Between{2, 1 << 24}},
      {"--rebalance-every", &r.policy.every_steps, "steps (1)", Between{1, 1'000'000}},
      {"--newest-weight", &r.policy.newest_weight, "of the moving average (0.5)", Between{1e-6, 1.0}},
  };
}

void run(const BalanceOptions& options, const Console& console) {
  const BalanceRequest& request = options.request;
  if (request.file.empty() && !request.alpha) throw UsageError("LOADS or --power-law is required");
  if (request.alpha && !request.experts) throw UsageError("--power-law: --experts is required");
  const Balancing balancing = balance(request);
  console.print(options.format == "json" ? balance_fields(balancing.counted, request.policy).json(balancing)
                                         : balance_table(balancing, request.policy));
}

}  // namespace

std::string balance_schema() {
  return output_schema("balance", "`moeline balance LOADS --format json`: experts on GPUs by load",
                       balance_fields(false, {}).described());
}

Command make_balance(Console& console) {
  auto options = std::make_shared<BalanceOptions>();
  return {.name = "balance",
          .about = "places and replicates experts so that GPUs get equal loads (EPLB)",
          .options = joined({options_of(options->request), {format_option(options->format, {"table", "json"})}}),
          .footer = kBalanceDefinitions,
          .run = [options, &console] { run(*options, console); }};
}

}  // namespace moeline
