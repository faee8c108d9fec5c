#include "moe/module_tree.hpp"

#include <algorithm>
#include <map>

#include "architecture/matrices.hpp"
#include "architecture/parameters.hpp"
#include "base/error.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace module_names;

struct Place {
  std::string name, parent;
};

const std::string kMtp = "MTP";
const std::string kJoint = " + ";

// Names of the parts follow from those of their modules; only these stand below something that is not in their name.
std::vector<Place> places_of_model() {
  std::vector<Place> places = {{"model", ""}, {kEmbedding, "model"}, {"layers", "model"}, {kNorms, "layers"}};
  const auto add = [&](const std::string& module, const std::string& parent, const std::vector<const char*>& parts) {
    places.push_back({module, parent});
    for (const char* part : parts) places.push_back({part, module});
  };
  add(kAttention, "layers",
      {kDownProjections, kQAndDownKv, kQkv, kDownQ, "attention/q_proj", kDownKv, "attention/k_proj", "attention/v_proj",
       kAttentionNorms, kUpQ, kUpKv, kRotary, kKeyTransfer, kCore, kOutputDown, kOutput, kOutputGate, kCompressor,
       kAttentionSum});
  add(kIndexer, "layers", {kIndexerQueries, kIndexerKeys, kIndexerScores, kIndexerChoice});
  add(kLinearAttention, "layers", {kStateInput, kStateGates, kStateConvolution, kStateCore, kStateNorm, kStateOutput});
  add(kDenseFfn, "layers",
      {kDenseGateUp, "dense FFN/gate_proj", "dense FFN/up_proj", kDenseActivation, kDenseDown, kDenseSum});
  places.push_back({kAttentionPhase, "layers"});
  add("router", "layers", {kRouterGate, kRouterChoice});
  add(kLatentProjections, "layers", {kLatentDown, kLatentUp});
  add("dispatch", "layers", {kDispatchInput, kDispatchBarrier, kDispatchTransfer});
  add(kRoutedExperts, "layers",
      {kPermutation, kExpertGateUp, "routed experts/gate_proj", "routed experts/up_proj", kExpertActivation,
       kExpertDown, kExpertLayer, kExpertBiases, kExpertSum});
  add("combine", "layers", {kCombineInput, kCombineBarrier, kCombineTransfer});
  add(kSharedExperts, "layers",
      {kSharedGateUp, "shared experts/gate_proj", "shared experts/up_proj", kSharedActivation, kSharedDown});
  places.push_back({kMlpPhase, "layers"});
  places.push_back({kResidualMixing, "layers"});
  add("LM head", "model", {kHead, kHeadGather, kLoss, kSampling});
  return places;
}

std::vector<Place> all_places() {
  std::vector<Place> places = places_of_model();
  std::vector<Place> mtp = {{kMtp, ""}, {in_mtp(kEmbedding), kMtp}, {kMtpProjection, kMtp}};
  for (const Place& place : places) {
    if (place.parent == "layers" || place.name == "LM head") mtp.push_back({in_mtp(place.name), kMtp});
    if (place.name.find('/') != std::string::npos) mtp.push_back({in_mtp(place.name), in_mtp(place.parent)});
  }
  places.insert(places.end(), mtp.begin(), mtp.end());
  const std::vector<Place> beside = {{kMoveCaches, ""},
                                     {"pipeline", ""},
                                     {kSendActivations, "pipeline"},
                                     {kSendTokens, "pipeline"},
                                     {kSendGradients, "pipeline"},
                                     {"optimizer", ""},
                                     {kReduceGradients, "optimizer"},
                                     {kSumRepeated, "optimizer"},
                                     {kGradientNorm, "optimizer"},
                                     {kUpdate, "optimizer"},
                                     {kGatherWeights, "optimizer"},
                                     {kUnknownModule, ""}};
  places.insert(places.end(), beside.begin(), beside.end());
  return places;
}

const std::vector<Place>& places() {
  static const std::vector<Place> kPlaces = all_places();
  return kPlaces;
}

// "self_attn.q_a_proj" -> "q_a_proj"
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Parameters of the parts that hold any themselves.
using Held = std::map<std::string, double>;

// `vectors`: the part that has norms and biases.
void add_matrices(const std::string& place, const Module& module, const std::vector<Matrix>& matrices,
                  const std::string& vectors, Held& held) {
  for (const Matrix& matrix : matrices) {
    held[place + "/" + last_part(matrix.names.front())] += module.count * matrix.parameters;
  }
  if (module.vectors > 0) held[vectors] += module.count * module.vectors;
}

// A state's kernels multiply by its matrices before the core at once.
void add_state(const Architecture& model, const Module& module, Held& held) {
  for (const Matrix& matrix : attention_matrices(model, module.attention)) {
    const char* part = matrix.use == MatrixUse::in    ? kStateInput
                       : matrix.use == MatrixUse::out ? kStateOutput
                                                      : kStateGates;
    held[part] += module.count * matrix.parameters;
  }
  held[kStateNorm] += module.count * module.vectors;
}

void add_indexer(const Module& module, Held& held) {
  held[kIndexerQueries] += module.count * module.matrices;
  held[kIndexerScores] += module.count * module.vectors;
}

void add_dense(const Architecture& model, const Module& module, Held& held) {
  const double whole = parameters_of(dense_matrices(model, model.intermediate_size));
  for (const Matrix& matrix : dense_matrices(model, model.intermediate_size)) {
    held[std::string(kDenseFfn) + "/" + last_part(matrix.names.front())] +=
        module.count * matrix.parameters * module.matrices / whole;
  }
}

void add_held(const Architecture& model, const Module& module, Held& held) {
  const std::string& name = module.name;
  if (has_state(module.attention.kind)) return add_state(model, module, held);
  if (module.attention.kind != AttentionKind::none) {
    return add_matrices(kAttention, module, attention_matrices(model, module.attention), kAttentionNorms, held);
  }
  if (name.starts_with(kDenseFfn)) return add_dense(model, module, held);
  if (name == kRoutedExperts) return add_matrices(name, module, expert_matrices(model), kExpertBiases, held);
  if (name == kSharedExperts) return add_matrices(name, module, shared_matrices(model), "", held);
  if (name == kIndexer) return add_indexer(module, held);
  if (name == kLatentProjections) {
    held[kLatentDown] = held[kLatentUp] = module.parameters() / 2;
  } else if (name == kRouter) {
    held[kRouterGate] = module.count * module.matrices;
    held[kRouterChoice] = module.count * module.vectors;
  } else if (name == "LM head") {
    held[kHead] = module.parameters();
  } else {
    held[name == kMtpMatrix ? std::string(kMtpProjection) : name] = module.parameters();
  }
}

Held held_by(const Architecture& model, const std::vector<Module>& modules) {
  Held held;
  for (const Module& module : modules) add_held(model, module, held);
  return held;
}

Held held_by(const Architecture& model) {
  Held held = held_by(model, modules(model));
  for (const auto& [name, parameters] : held_by(model, mtp_modules(model))) held[in_mtp(name)] = parameters;
  return held;
}

// "attention/k_proj + v_proj" -> "attention/k_proj", "attention/v_proj"
std::vector<std::string> joined_in(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string::npos) return {name};
  const std::string module = name.substr(0, slash + 1);
  std::vector<std::string> parts;
  std::size_t at = slash + 1;
  for (std::size_t end = name.find(kJoint, at); end != std::string::npos; end = name.find(kJoint, at)) {
    parts.push_back(module + name.substr(at, end - at));
    at = end + kJoint.size();
  }
  parts.push_back(module + name.substr(at));
  return parts;
}

void join(const std::set<std::string>& in_use, Held& held) {
  for (const std::string& name : in_use) {
    const std::vector<std::string> parts = joined_in(name);
    if (parts.size() == 1) continue;
    double& sum = held[name];
    for (const std::string& part : parts) {
      sum += held[part];
      held.erase(part);
    }
  }
}

std::vector<ModuleNode> tree_of(const Held& held, const std::set<std::string>& in_use) {
  std::map<std::string, bool> shown;
  std::map<std::string, double> parameters;
  const bool has_mtp =
      std::any_of(in_use.begin(), in_use.end(), [](const auto& name) { return name.starts_with(kMtp); });
  for (auto place = places().rbegin(); place != places().rend(); ++place) {  // parts before what they are parts of
    if (!has_mtp && place->name.starts_with(kMtp)) continue;
    const auto own = held.find(place->name);
    if (own != held.end()) parameters[place->name] += own->second;
    if (parameters[place->name] == 0 && !in_use.contains(place->name) && !shown[place->name]) continue;
    shown[place->name] = shown[place->parent] = true;
    parameters[place->parent] += parameters[place->name];
  }
  std::vector<ModuleNode> nodes;
  std::map<std::string, int> depths = {{"", -1}};
  for (const Place& place : places()) {
    if (!shown[place.name]) continue;
    const int depth = depths[place.name] = depths.at(place.parent) + 1;
    nodes.push_back({place.name, place.parent, depth, parameters[place.name]});
  }
  return nodes;
}

}  // namespace

std::vector<ModuleNode> module_tree(const Architecture& model, const std::set<std::string>& in_use) {
  Held held = held_by(model);
  join(in_use, held);
  return tree_of(held, in_use);
}

std::vector<ModuleNode> module_tree(const std::set<std::string>& in_use) { return tree_of({}, in_use); }

std::string parent_of(const std::string& module) {
  std::vector<std::string> names;
  for (const Place& place : places()) {
    if (place.name == module) return place.parent;
    names.push_back(place.name);
  }
  throw SpecError(unknown_name("module", module, names));
}

std::string in_mtp(const std::string& module) { return module.starts_with(kMtp) ? module : kMtp + "/" + module; }

}  // namespace moeline
