#include "schedules/scenario/flag_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/names.hpp"

namespace moeline {

template <>
const FlagsByName<RecomputedModules>& flags_by_name() {
  using M = RecomputedModules;
  static const FlagsByName<M> kModules = {{"core_attn", &M::core_attn},
                                          {"layernorm", &M::layernorm},
                                          {"mla_up_proj", &M::mla_up_proj},
                                          {"mlp", &M::mlp},
                                          {"moe_act", &M::moe_act}};
  return kModules;
}

template <>
const FlagsByName<OffloadedModules>& flags_by_name() {
  using M = OffloadedModules;
  static const FlagsByName<M> kModules = {{"attn_norm", &M::attn_norm}, {"qkv_linear", &M::qkv_linear},
                                          {"core_attn", &M::core_attn}, {"attn_proj", &M::attn_proj},
                                          {"mlp_norm", &M::mlp_norm},   {"expert_fc1", &M::expert_fc1},
                                          {"moe_act", &M::moe_act}};
  return kModules;
}

template <>
const FlagsByName<GraphParts>& flags_by_name() {
  using G = GraphParts;
  static const FlagsByName<G> kParts = {
      {"attn", &G::attn}, {"mlp", &G::mlp}, {"moe_router", &G::moe_router}, {"moe_preprocess", &G::moe_preprocess}};
  return kParts;
}

std::vector<std::string> read_names(const Spec& spec, const std::string& key, const char* what,
                                    const std::vector<std::string>& known) {
  const std::vector<std::string> listed = spec.texts(key);
  if (listed.empty()) throw spec.error(key, fmt::format("lists no {}s", what));
  std::vector<std::string> names;
  for (const std::string& each : listed) {
    const std::string name = at_key(spec, key, [&] { return expect_name(what, each, known); });
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw spec.error(key, fmt::format("lists {} twice", name));
    }
    names.push_back(name);
  }
  return names;
}

}  // namespace moeline
