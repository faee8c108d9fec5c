#include "architecture/block_modules.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace moeline {
namespace {

constexpr const char* kEmbedding = "embedding";
constexpr const char* kHead = "LM head";
constexpr const char* kMtpProjection = "MTP projection";

// Modules of one block, each with how often it has it.
std::map<std::string, double> contents(const Architecture& model, BlockKind kind) {
  switch (kind) {
    case BlockKind::embedding:
      return {{kEmbedding, 1}};
    case BlockKind::dense_layer:
      return {{kAttention, 1}, {"norms", 2}, {kDenseFfn, 1}};
    case BlockKind::moe_layer:
      return {{kAttention, 1},
              {"norms", 2},
              {"router", 1},
              {kRoutedExperts, model.n_routed_experts},
              {kSharedExperts, model.n_shared_experts}};
    case BlockKind::head:
      return {{kHead, 1}, {"norms", 1}};
    case BlockKind::mtp:
      return {{kEmbedding, 1}, {kMtpProjection, 1}};
  }
  return {};
}

bool is_table(const std::string& module) { return module == kEmbedding || module == kHead; }

// Of a model that has no LM head of its own, the head is the embedding.
std::vector<Module> known_modules(const Architecture& model, std::map<std::string, double>& counts) {
  std::vector<Module> known = modules(model);
  const auto is_head = [](const Module& module) { return module.name == kHead; };
  if (counts.contains(kHead) && std::none_of(known.begin(), known.end(), is_head)) counts[kEmbedding] = 1;
  for (const Module& module : mtp_modules(model)) {
    if (module.name == kMtpProjection) known.push_back(module);
  }
  return known;
}

}  // namespace

std::vector<Module> modules_of(const Architecture& model, std::span<const BlockKind> blocks) {
  std::map<std::string, double> counts;
  for (const BlockKind kind : blocks) {
    for (const auto& [name, count] : contents(model, kind)) {
      double& sum = counts[name];
      sum = is_table(name) ? 1 : sum + count;
    }
  }
  std::vector<Module> list;
  for (Module& module : known_modules(model, counts)) {
    const auto found = counts.find(module.name);
    if (found == counts.end() || found->second == 0) continue;
    module.count = found->second;
    list.push_back(std::move(module));
  }
  return list;
}

}  // namespace moeline
