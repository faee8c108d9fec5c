// moeline balance: where experts go so that GPUs have equal work, and what that does to the network.
#include <fmt/format.h>

#include <memory>

#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/balance_output.hpp"

namespace moeline {
namespace {

constexpr int kMostGpus = 16384;

struct BalanceOptions {
  BalanceRequest request;
  std::string format = "table";
};

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

void add_source(CLI::App& command, BalanceRequest& r) {
  auto* file = command.add_option("LOADS", r.file, "CSV of loads, or a router map");
  auto* law = command.add_option("--power-law", r.alpha, "instead of LOADS: loads proportional to rank^-ALPHA");
  law->type_name("ALPHA")->check(CLI::Range(0.0, 10.0))->excludes(file);
  command.add_option("--layers", r.layers, "of --power-law (1)")->needs(law)->check(CLI::Range(1, 1000));
  command.add_option("--experts", r.experts, "of --power-law or a router map; loads must have as many")
      ->check(CLI::Range(1, 4096));
  command.add_option("--seed", r.seed, "of the power law and of sampled tokens (1)");
}

void add_cluster(CLI::App& command, BalanceRequest& r) {
  command.add_option("--gpus", r.gpus, "of all nodes")->required()->check(CLI::Range(1, kMostGpus));
  command.add_option("--nodes", r.nodes, "(1)")->check(CLI::Range(1, kMostGpus));
  command.add_option("--groups", r.groups, "of the gating (1)")->check(CLI::Range(1, 4096));
  command.add_option("--replicas", r.replicas, "slots of all GPUs (the experts, up to a multiple of GPUs)")
      ->check(CLI::Range(1, kMostGpus));
}

void add_traffic(CLI::App& command, BalanceRequest& r) {
  command.add_option("--top-k", r.top_k, "experts per token, of sampled tokens (8)")->check(CLI::Range(1, 4096));
  command.add_option("--topk-group", r.kept_groups, "groups per token, of sampled tokens (4)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--tokens", r.tokens, "sampled per layer (2048)")->check(CLI::Range(2, 1 << 24));
}

void add_rebalancing(CLI::App& command, BalanceRequest& r) {
  command.add_option("--rebalance-every", r.policy.every_steps, "steps (1)")->check(CLI::Range(1, 1'000'000));
  command.add_option("--newest-weight", r.policy.newest_weight, "of the moving average (0.5)")
      ->check(CLI::Range(1e-6, 1.0));
}

void run(const BalanceOptions& options, const Console& console) {
  const BalanceRequest& request = options.request;
  if (request.file.empty() && !request.alpha) throw CLI::RequiredError("LOADS or --power-law");
  if (request.alpha && !request.experts) throw CLI::RequiredError("--power-law: --experts");
  const Balancing balancing = balance(request);
  const bool json = options.format == "json";
  console.print(json ? balance_json(balancing, request.policy) : balance_table(balancing, request.policy));
}

}  // namespace

void add_balance(CLI::App& app, Console& console) {
  auto options = std::make_shared<BalanceOptions>();
  CLI::App* command =
      app.add_subcommand("balance", "places and replicates experts so that GPUs get equal loads (EPLB)");
  add_source(*command, options->request);
  add_cluster(*command, options->request);
  add_traffic(*command, options->request);
  add_rebalancing(*command, options->request);
  command->add_option("--format", options->format)->transform(one_of({"table", "json"}));
  command->footer(kBalanceDefinitions);
  command->callback([options, &console] { run(*options, console); });
}

}  // namespace moeline
