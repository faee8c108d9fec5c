#include "hardware/parse_op.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/spec.hpp"
#include "moe/all_to_all.hpp"
#include "moe/attention_core.hpp"
#include "moe/kernels.hpp"
#include "routing/gating.hpp"

namespace moeline {
namespace {

constexpr int kMost = 1 << 24;
constexpr std::size_t kShown = 80;  // characters of an op in a message

bool ends_in_word(const std::string& text) { return std::isalnum(static_cast<unsigned char>(text.back())) != 0; }

// "a=1,b=2" as a mapping; the op is its file.
Spec keys_of(const std::string& text) {
  const std::string place = text.substr(0, kShown);
  const std::size_t colon = text.find(':');
  std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  std::string keys;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string pair = rest.substr(0, comma);
    const std::size_t equals = pair.find('=');
    const bool plain = pair.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-=") ==
                       std::string::npos;
    if (equals == std::string::npos || equals == 0 || !plain || !ends_in_word(pair)) {
      throw SpecError(place, 0, fmt::format("'{}' is not key=value", pair.substr(0, kShown)));
    }
    if (comma + 1 == rest.size()) throw SpecError(place, 0, "ends with a comma");
    keys += pair.substr(0, equals) + ": " + pair.substr(equals + 1) + "\n";
    rest = comma < rest.size() ? rest.substr(comma + 1) : "";
  }
  return Spec::parse(place, keys.empty() ? "{}" : keys);
}

class Keys {
 public:
  Keys(const std::string& text, std::vector<std::string> known) : spec_(keys_of(text)) {
    known.emplace_back("sms");
    spec_.expect(known);
  }
  [[nodiscard]] double size(const char* key, int fallback) const { return spec_.integer_or(key, 1, kMost, fallback); }
  [[nodiscard]] double size_or_none(const char* key) const { return spec_.integer_or(key, 0, kMost, 0); }
  [[nodiscard]] std::string choice(const char* key, const std::vector<std::string>& choices) const {
    return spec_.has(key) ? spec_.choice(key, choices) : choices.front();
  }
  [[nodiscard]] int sms(const MachineFacts& machine, int fallback) const {
    return spec_.integer_or("sms", 1, static_cast<int>(machine.sms), std::min(fallback, static_cast<int>(machine.sms)));
  }
  [[nodiscard]] const Spec& spec() const { return spec_; }

 private:
  Spec spec_;
};

int all(const MachineFacts& machine) { return static_cast<int>(machine.sms); }

RequestedOp gemm(const std::string& text, const MachineFacts& machine) {
  const Keys keys(text, {"dtype", "m", "n", "k"});
  const Precision precision = precision_named(keys.choice("dtype", {"fp8", "bf16"}));
  return {text,
          kernels::gemm(gemm_family(GemmLayout::dense, precision), text, keys.size("m", 4096), keys.size("n", 7168),
                        keys.size("k", 16384)),
          keys.sms(machine, all(machine))};
}

RequestedOp grouped_gemm(const std::string& text, const MachineFacts& machine) {
  const Keys keys(text, {"layout", "dtype", "groups", "m", "n", "k"});
  const bool masked = keys.choice("layout", {"contiguous", "masked"}) == "masked";
  const Precision precision = precision_named(keys.choice("dtype", {"fp8", "bf16"}));
  const double groups = keys.size("groups", 4);
  double rows = keys.size("m", masked ? 256 : 8192);
  if (!masked) rows = std::ceil(rows / kRowPadding) * kRowPadding;
  const Family family = gemm_family(masked ? GemmLayout::masked : GemmLayout::contiguous, precision);
  return {text, kernels::gemm(family, text, groups * rows, keys.size("n", 4096), keys.size("k", 7168), groups),
          keys.sms(machine, all(machine))};
}

// Keys count the new tokens, and heads share them in equal groups.
AttentionShape checked(const AttentionShape& shape, const Spec& spec) {
  if (shape.kv_len < shape.query_len) {
    throw spec.error("kv_len",
                     fmt::format("counts the new tokens: {} is below query_len, {}", shape.kv_len, shape.query_len));
  }
  if (std::fmod(shape.heads, shape.kv_heads) != 0) {
    throw spec.error("kv_heads", fmt::format("must divide heads: {} does not divide {}", shape.kv_heads, shape.heads));
  }
  return shape;
}

RequestedOp mla_decode(const std::string& text, const MachineFacts& machine) {
  const Keys keys(text, {"batch", "kv_len", "query_len", "heads", "qk_dim", "v_dim"});
  const AttentionShape shape{keys.size("batch", 64),    keys.size("heads", 128),   1,
                             keys.size("query_len", 1), keys.size("kv_len", 4096), keys.size("qk_dim", 576),
                             keys.size("v_dim", 512)};
  return {text, mla_decode_core(checked(shape, keys.spec())), keys.sms(machine, all(machine))};
}

RequestedOp gqa_decode(const std::string& text, const MachineFacts& machine) {
  const Keys keys(text, {"batch", "kv_len", "query_len", "heads", "kv_heads", "head_dim"});
  const double head_dim = keys.size("head_dim", 128);
  const AttentionShape shape{keys.size("batch", 64),
                             keys.size("heads", 64),
                             keys.size("kv_heads", 4),
                             keys.size("query_len", 1),
                             keys.size("kv_len", 4096),
                             head_dim,
                             head_dim};
  return {text, gqa_decode_core(checked(shape, keys.spec())), keys.sms(machine, all(machine))};
}

RequestedOp attention_forward(const std::string& text, const MachineFacts& machine) {
  const Keys keys(text, {"seq", "batch", "cached_len", "heads", "kv_heads", "qk_dim", "v_dim", "window"});
  const double seq = keys.size("seq", 4096);
  const double heads = keys.size("heads", 128);
  const AttentionShape shape{keys.size("batch", 1),
                             heads,
                             keys.size("kv_heads", static_cast<int>(heads)),
                             seq,
                             seq + keys.size_or_none("cached_len"),
                             keys.size("qk_dim", 192),
                             keys.size("v_dim", 128)};
  return {text, prefill_core(checked(shape, keys.spec()), keys.size_or_none("window")),
          keys.sms(machine, all(machine))};
}

RequestedOp memory(const std::string& text, const MachineFacts& machine) {
  const Keys keys(text, {"kind", "bytes"});
  const std::vector<std::pair<std::string, Family>> kinds = {
      {"streaming", Family::streaming},           {"rowwise", Family::rowwise},       {"swiglu", Family::swiglu},
      {"cast_transpose", Family::cast_transpose}, {"requantize", Family::requantize}, {"strided", Family::strided}};
  std::vector<std::string> names;
  for (const auto& [name, family] : kinds) names.push_back(name);
  const std::string kind = keys.choice("kind", names);
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
  const double bytes = keys.spec().has("bytes") ? keys.spec().number("bytes", 1, 1e15) : 4096.0 * 7168 * 4;
  return {text, kernels::memory(found->second, text, bytes), keys.sms(machine, all(machine))};
}

// The model's gating, or that of DeepEP's benchmark, with which its published figures were measured.
Architecture gating_of(const Keys& keys, int ep, int gpus_per_node) {
  Architecture model = load_architecture("deepseek-v3");
  model.num_experts_per_tok = keys.spec().integer_or("top_k", 1, model.n_routed_experts, model.num_experts_per_tok);
  if (keys.choice("gating", {"model", "benchmark"}) == "benchmark") {
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

// The fewest with which every rank has equally many, as DeepSeek's EP144 and EP320 have; a copy of each at most.
int redundant_for(int ep, const Architecture& model) {
  const int needed = (ep - model.n_routed_experts % ep) % ep;
  return needed <= model.n_routed_experts ? needed : 0;
}

AllToAllWork transfer_of(const Keys& keys, const MachineFacts& machine) {
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
  work.tokens = keys.size("tokens", keys.choice("mode", {"normal", "low_latency"}) == "normal" ? 4096 : 128);
  work.experts = model.n_routed_experts + redundant;
  work.ep = ep;
  work.gpus_per_node = gpus_per_node;
  work.spread = expected_spread(model, ep, gpus_per_node, 1, redundant);
  return work;
}

RequestedOp transfer(const std::string& text, const MachineFacts& machine, bool dispatch) {
  constexpr int kSms = 24;  // DeepEP's default
  const Keys keys(text, {"mode", "ep", "tokens", "hidden", "top_k", "gating", "redundant_experts"});
  const AllToAllWork work = transfer_of(keys, machine);
  if (keys.choice("mode", {"normal", "low_latency"}) == "low_latency") {
    const Operator op = dispatch ? low_latency_dispatch(work, Stage::whole) : low_latency_combine(work, Stage::whole);
    return {text, op, keys.sms(machine, all(machine))};
  }
  return {text, (dispatch ? normal_dispatch(work) : normal_combine(work)).back(), keys.sms(machine, kSms)};
}

struct Kind {
  const char* name;
  const char* keys;
  RequestedOp (*parse)(const std::string& text, const MachineFacts& machine);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"gemm", "dtype=fp8|bf16,m=4096,n=7168,k=16384", gemm},
      {"grouped_gemm",
       "layout=contiguous|masked,dtype=fp8|bf16,groups=4,m=8192 (masked: 256) rows of each group,n=4096,k=7168",
       grouped_gemm},
      {"mla_decode", "batch=64,kv_len=4096,query_len=1,heads=128,qk_dim=576,v_dim=512", mla_decode},
      {"gqa_decode", "batch=64,kv_len=4096,query_len=1,heads=64,kv_heads=4,head_dim=128", gqa_decode},
      {"attention_forward", "seq=4096,batch=1,cached_len=0,heads=128,kv_heads=HEADS,qk_dim=192,v_dim=128,window=0",
       attention_forward},
      {"memory", "kind=streaming|rowwise|swiglu|cast_transpose|requantize|strided,bytes=117440512", memory},
      {"dispatch",
       "mode=normal|low_latency,ep=64,tokens=4096 (low_latency: "
       "128),hidden=7168,top_k=8,gating=model|benchmark,redundant_experts=the fewest with which ep divides them all",
       [](const std::string& text, const MachineFacts& machine) { return transfer(text, machine, true); }},
      {"combine", "the same",
       [](const std::string& text, const MachineFacts& machine) { return transfer(text, machine, false); }},
  };
  return kKinds;
}

}  // namespace

RequestedOp parse_op(const std::string& text, const MachineFacts& machine) {
  const std::string name = text.substr(0, text.find(':'));
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    if (same_but_for_case(name, kind.name)) return kind.parse(kind.name + text.substr(name.size()), machine);
    names.emplace_back(kind.name);
  }
  throw SpecError(unknown_name("op", name, names));
}

std::string op_help() {
  std::string text =
      "OP is KIND or KIND:key=value,...; what is left out is as shown (DeepSeek-V3's). Every OP takes sms=N.\n";
  for (const Kind& kind : kinds()) text += fmt::format("  {}:{}\n", kind.name, kind.keys);
  return text +
         "The nodes and ranks that a token reaches are those of DeepSeek-V3's gating, or with gating=benchmark those "
         "of\n"
         "DeepEP's: one group of experts per node, of which at most four are chosen.";
}

}  // namespace moeline
