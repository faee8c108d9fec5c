// The tree of a model's modules: it has a place for every kernel, and the parameters that the model has.
#include "moe/module_tree.hpp"

#include <doctest/doctest.h>

#include <map>

#include "architecture/parameters.hpp"
#include "base/error.hpp"
#include "moe/inference.hpp"
#include "moe/training.hpp"

TEST_SUITE("moe/module_tree") {

using namespace moeline;

namespace {

const std::vector<std::string> kZoo = {"deepseek-v2",  "deepseek-v3",    "glm-4.5",      "gpt-oss-120b",   "kimi-k2",
                                       "mixtral-8x7b", "llama-3.1-405b", "qwen-2.5-72b", "qwen3-235b-a22b"};

std::map<std::string, double> parameters_of(const std::vector<ModuleNode>& nodes) {
  std::map<std::string, double> parameters;
  for (const ModuleNode& node : nodes) parameters[node.name] = node.parameters;
  return parameters;
}

std::set<std::string> modules_of(const std::vector<Operator>& ops) {
  std::set<std::string> modules;
  for (const Operator& op : ops) modules.insert(op.module);
  return modules;
}

LayerWork training_work(BlockKind kind) {
  LayerWork work;
  work.model = load_architecture("deepseek-v3");
  work.kind = kind;
  work.spread = expected_spread(work.model, work.ep, work.gpus_per_node);
  work.load = balanced_load(work.model, work.tokens(), work.ep, work.spread);
  return work;
}

std::set<std::string> trained_modules() {
  std::set<std::string> modules;
  for (const BlockKind kind :
       {BlockKind::embedding, BlockKind::dense_layer, BlockKind::moe_layer, BlockKind::head, BlockKind::mtp}) {
    for (const auto* names : {&forward_phases(kind), &backward_phases(kind), &weight_phases(kind)}) {
      for (const std::string& name : *names) modules.merge(modules_of(training_phase(name, training_work(kind))));
    }
  }
  return modules;
}

std::set<std::string> served_modules(const std::string& model, bool decode) {
  InferenceWork work;
  work.model = load_architecture(model);
  (decode ? work.decode : work.prefill) = {.requests = 8, .query_len = decode ? 1.0 : 1024.0, .kv_len = 1024};
  work.ep = 8;
  work.mode = decode ? CommMode::low_latency : CommMode::normal;
  work.spread = expected_spread(work.model, work.ep, work.gpus_per_node);
  work.load = balanced_load(work.model, work.tokens(), work.ep, work.spread);
  std::vector<std::string> phases = inference_phases(work.model, decode, work.mode);
  phases.insert(phases.end(), {"embedding", "lm_head", "mtp", "draft_head"});
  std::set<std::string> modules;
  for (const int layer : {0, work.model.num_hidden_layers - 1}) {
    for (const std::string& phase : phases) {
      modules.merge(modules_of(inference_phase(phase, work, layer_of(work.model, layer))));
    }
  }
  return modules;
}

}  // namespace

TEST_CASE("the tree has the parameters that the model has, module by module") {
  for (const std::string& name : kZoo) {
    CAPTURE(name);
    const Architecture model = load_architecture(name);
    std::map<std::string, double> tree = parameters_of(module_tree(model, {}));
    CHECK(tree.at("model") == parameters(model));
    for (const Module& module : modules(model)) {
      CAPTURE(module.name);
      CHECK(tree.at(module.name) == module.parameters());
    }
  }
}

TEST_CASE("MTP modules stand apart, with the parameters that they have, where they are in use") {
  const Architecture model = load_architecture("deepseek-v3");
  double sum = 0;
  for (const Module& module : mtp_modules(model)) sum += module.parameters();
  CHECK(parameters_of(module_tree(model, {"MTP/router/gate"})).at("MTP") == sum);
  CHECK_FALSE(parameters_of(module_tree(model, {"router/gate"})).contains("MTP"));
}

TEST_CASE("every kernel of every model has a place, and none has parts of its own") {
  std::set<std::string> modules = trained_modules();
  for (const std::string& name : kZoo) {
    if (load_architecture(name).n_routed_experts == 0) continue;
    for (const bool decode : {false, true}) modules.merge(served_modules(name, decode));
  }
  const Architecture model = load_architecture("deepseek-v3");
  const std::vector<ModuleNode> tree = module_tree(model, modules);
  for (const std::string& module : modules) {
    CAPTURE(module);
    CHECK_FALSE(parent_of(module).empty());
    for (const ModuleNode& node : tree) CHECK(node.parent != module);
  }
}

TEST_CASE("a node holds what the nodes below it hold") {
  const std::vector<ModuleNode> tree = module_tree(load_architecture("gpt-oss-120b"), {});
  for (const ModuleNode& node : tree) {
    double below = 0;
    for (const ModuleNode& part : tree) below += part.parent == node.name ? part.parameters : 0;
    CAPTURE(node.name);
    if (below > 0) CHECK(below == node.parameters);
  }
}

TEST_CASE("a GEMM of several matrices stands in their place, with the parameters of all") {
  const Architecture model = load_architecture("deepseek-v3");
  std::map<std::string, double> apart = parameters_of(module_tree(model, {}));
  std::map<std::string, double> joined = parameters_of(module_tree(model, {"attention/q_a_proj + kv_a_proj_with_mqa"}));
  CHECK(joined.at("attention/q_a_proj + kv_a_proj_with_mqa") ==
        apart.at("attention/q_a_proj") + apart.at("attention/kv_a_proj_with_mqa"));
  CHECK_FALSE(joined.contains("attention/q_a_proj"));
  CHECK(joined.at("attention") == apart.at("attention"));
}

TEST_CASE("without a model there are the modules in use, and what they are part of") {
  const std::vector<ModuleNode> tree = module_tree({"attention/core", "unknown"});
  std::vector<std::string> names;
  for (const ModuleNode& node : tree) names.push_back(node.name);
  CHECK(names == std::vector<std::string>{"model", "layers", "attention", "attention/core", "unknown"});
}

TEST_CASE("what is no module is refused, with the nearest name") {
  CHECK_THROWS_WITH_AS((void)parent_of("attention/q_b_prj"), doctest::Contains("attention/q_b_proj"), SpecError);
}

}  // TEST_SUITE("moe/module_tree")
