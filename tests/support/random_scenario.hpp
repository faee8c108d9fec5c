// Scenarios drawn at random, legal and illegal, of every phase, machine and model; and the smallest of them that still
// has a fault.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "tests/support/dice.hpp"

namespace moeline::testing {

/// A scenario: the YAML of each value by its dotted key.
using ScenarioKeys = std::map<std::string, std::string>;

/// Mappings are one level deep.
inline std::string yaml_of(const ScenarioKeys& keys) {
  std::map<std::string, std::vector<std::string>> entries;
  for (const auto& [key, value] : keys) {
    const std::size_t dot = key.find('.');
    const std::string inner = dot == std::string::npos ? value : fmt::format("{}: {}", key.substr(dot + 1), value);
    entries[key.substr(0, dot)].push_back(inner);
  }
  std::string text = "schema: 1\n";
  for (const auto& [key, values] : entries) {
    const bool is_mapping = !keys.contains(key);
    text += is_mapping ? fmt::format("{}: {{{}}}\n", key, fmt::join(values, ", ")) : key + ": " + values.front() + "\n";
  }
  return text;
}

/// Draws scenarios of which about half are legal, and most are quick: few layers, few micro-batches.
class ScenarioDraw {
 public:
  explicit ScenarioDraw(std::uint64_t seed) : dice_(seed) {}

  ScenarioKeys draw() {
    keys_.clear();
    set("model", any(names_in("model/zoo")));
    set("hardware", any(names_in("hwprofiles")));
    maybe(15, "kernels", {"sglang", "trtllm", "vllm", "deepseek", "open"});
    maybe(60, "layers", {"1", "2", "3", "5", "8"});
    maybe(10, "hardware_overrides", {"[nic_GBps=25]", "[hbm_GBps=2000, sms=100]", "[nvlink_GBps=300]", "[]"});
    maybe(10, "jitter", {"none", "measured"});
    maybe(15, "clock", {"burst", "sustained"});
    maybe(10, "speed_spread", {"0", "0.0123456789", "0.05"});
    maybe(20, "seed", {"0", "2", "77"});
    maybe(10, "precision.linear", {"bf16", "fp8", "fp8_tensor", "fp8_static", "nvfp4", "checkpoint"});
    maybe(10, "precision.experts", {"bf16", "fp8", "nvfp4", "mxfp4", "int4"});
    maybe(10, "precision.kv_cache", {"bf16", "fp8"});
    maybe(10, "comm.neighbours", {"measured", "none"});
    maybe(15, "comm.num_sms", {"0", "8", "16", "20", "28"});
    maybe(10, "comm.dispatch_dtype", {"fp8", "bf16", "nvfp4"});
    maybe(8, "launch", {"graph", "stream", "none"});
    any({draw_train, draw_prefill, draw_decode, draw_decode, draw_mixed})(*this);
    return keys_;
  }

 private:
  using Part = void (*)(ScenarioDraw&);

  void set(const std::string& key, const std::string& value) { keys_.insert_or_assign(key, value); }
  void maybe(std::uint64_t percent, const std::string& key, const std::vector<std::string>& values) {
    if (dice_.percent(percent)) set(key, any(values));
  }
  void always(const std::string& key, const std::vector<std::string>& values) { set(key, any(values)); }
  template <class T>
  const T& any(const std::vector<T>& values) {
    return values[dice_.below(values.size())];
  }
  Part any(std::initializer_list<Part> parts) { return *(parts.begin() + dice_.below(parts.size())); }
  std::string number(int least, int most) {
    return std::to_string(least + static_cast<int>(dice_.below(static_cast<std::uint64_t>(most - least + 1))));
  }

  // Of prefill and decode, whose ranks share experts as any of the modes has it.
  void draw_ranks() {
    always("parallelism.ep", {"1", "1", "2", "4", "8", "8", "16", "32", "64"});
    maybe(60, "parallelism.tp", {"1", "2", "4", "8"});
    maybe(25, "parallelism.dp", {"1", "2", "4", "8", "16", "32"});
    maybe(10, "parallelism.moe_tp", {"1", "2", "4"});
    maybe(12, "parallelism.pp", {"1", "2", "4"});
    maybe(35, "comm.mode",
          {"normal", "low_latency", "nvlink", "all_gather", "all_reduce", "none", "fused", "deepep_v2", "pplx"});
    maybe(25, "routing.distribution", {"balanced", "exact", "power_law", "skewed"});
    if (keys_["routing.distribution"] == "skewed") maybe(50, "routing.experts_hit", {"12", "40.5", "[30, 60]"});
    if (keys_["routing.distribution"] == "power_law") maybe(70, "routing.alpha", {"0", "0.3", "1.2345678901", "2"});
    if (keys_["routing.distribution"].empty()) keys_.erase("routing.distribution");
    maybe(10, "routing.placement", {"static", "eplb"});
    maybe(8, "routing.rows_spread", {"0", "0.1", "0.0333333333"});
    maybe(8, "routing.redundant_experts", {"0", "8", "32"});
    maybe(15, "ranks", {"auto", "folded", "all"});
    maybe(8, "samples", {"1", "3"});
    maybe(10, "moe_backend", {"usual", "trtllm_gen", "cutlass", "triton"});
    maybe(10, "attention_backend", {"usual", "trtllm_gen", "fa3", "flashmla", "xqa"});
    maybe(10, "shared_experts", {"in_turn", "beside"});
  }
  void draw_prompts() {
    set("workload.tokens", any({number(1, 300), "4096", "8192", number(1000, 9000)}));
    set("workload.prompt_len", any({number(1, 300), "4096", number(1000, 20000)}));
    if (dice_.percent(25)) set("workload.cached_len", any({"0", number(1, 4000)}));
  }
  void draw_requests() {
    set("workload.batch_size", any({"1", "2", number(1, 64), "64", "128", number(64, 300)}));
    set("workload.kv_len", any({number(1, 500), "4096", number(1000, 30000)}));
    maybe(15, "workload.kv_len_spread", {"0", "100.123456789", "1000"});
    maybe(10, "workload.batch_size_spread", {"0", "1.5", "8"});
    maybe(30, "workload.query_len", {"1", "2", "3", "4"});
    maybe(15, "workload.mtp_acceptance", {"0.8", "0.7777777777", "[0.9, 0.71]", "1"});
    maybe(5, "workload.draft_layers", {"1", "2"});
  }
  std::string any(std::initializer_list<std::string> values) { return *(values.begin() + dice_.below(values.size())); }

  static void draw_prefill(ScenarioDraw& d) {
    d.set("workload.phase", "prefill");
    d.always("schedule", {"sequential", "sequential", "prefill-two-batch", "auto", "per-expert"});
    d.draw_ranks();
    d.draw_prompts();
    d.maybe(12, "parallelism.cp", {"1", "2", "4"});
    d.maybe(10, "comm.context", {"all_gather", "ring"});
    d.maybe(8, "workload.kv_transfer_MB", {"0", "12.3456789", "500"});
  }
  static void draw_decode(ScenarioDraw& d) {
    d.set("workload.phase", "decode");
    d.always("schedule", {"sequential", "sequential", "decode-two-batch", "single-batch", "per-expert", "auto"});
    d.draw_ranks();
    d.draw_requests();
    d.maybe(8, "workload.kv_transfer_MB", {"0", "12.3456789", "500"});
    d.maybe(20, "workload.graph_batch", {"auto", "exact", "16", "64", "320"});
  }
  static void draw_mixed(ScenarioDraw& d) {
    d.set("workload.phase", "mixed");
    d.set("schedule", "sequential");
    d.draw_ranks();
    d.draw_requests();
    d.draw_prompts();
  }
  static void draw_train(ScenarioDraw& d) { d.any({draw_chunk, draw_step, draw_step, draw_slots})(d); }

  void draw_sequences() {
    set("workload.phase", "train");
    always("workload.seq_len", {"512", "1024", "4096", "4096", number(100, 5000)});
    maybe(30, "workload.micro_batch_size", {"1", "2", "4"});
  }
  static void draw_chunk(ScenarioDraw& d) {
    d.draw_sequences();
    d.always("schedule", {"dualpipe-chunk", "sequential"});
    d.always("parallelism.ep", {"8", "16", "32", "64"});
    d.maybe(40, "parallelism.dp", {"8", "16", "64"});
    d.maybe(20, "training.recompute", {"selective", "none"});
    d.maybe(20, "training.activations", {"fp8", "bf16"});
    d.maybe(15, "ranks", {"auto", "folded", "all"});
    d.maybe(10, "samples", {"1", "2"});
    d.maybe(15, "routing.rows_spread", {"0.1", "0.0333333333"});
    d.maybe(15, "routing.distribution", {"balanced", "exact", "power_law"});
  }
  static void draw_step(ScenarioDraw& d) {
    d.draw_sequences();
    d.draw_pipeline();
    d.always("parallelism.ep", {"1", "2", "4", "8", "8", "16"});
    d.maybe(35, "parallelism.tp", {"1", "2", "4"});
    d.maybe(10, "parallelism.cp", {"1", "2"});
    d.maybe(70, "training.operators", {"megatron", "megatron", "deepseek"});
    d.maybe(25, "training.recompute", {"selective", "none", "full", "[moe_act]", "[mla_up_proj, mlp]", "[layernorm]"});
    d.maybe(20, "training.zero", {"0", "1", "2", "3"});
    for (const char* flag : {"overlap_gradients", "overlap_parameters", "overlap_sends", "mtp", "offload_optimizer"}) {
      d.maybe(10, std::string("training.") + flag, {"true", "false"});
    }
    d.maybe(10, "training.gradients", {"fp32", "bf16"});
    d.maybe(10, "training.moments", {"fp32", "bf16"});
    d.maybe(5, "training.offload", {"[qkv_linear]", "[expert_fc1, moe_act]", "none"});
    d.maybe(15, "training.delay_weight_gradients", {"true", "false"});
    d.maybe(25, "comm.mode", {"normal", "all_to_all", "nvlink", "none", "deepep_v2"});
    d.maybe(10, "launch", {"[attn]", "[attn, moe_router]", "[moe_router, moe_preprocess]"});
    d.maybe(30, "level", {"operator", "phase"});
  }
  void draw_pipeline() {
    always("schedule", {"gpipe", "1f1b", "1f1b", "interleaved-1f1b", "zb1p", "zb-h2", "zbv", "v-half", "v-min",
                        "dualpipe", "dualpipev"});
    always("parallelism.pp", {"1", "2", "2", "4", "4", "8"});
    if (keys_["schedule"] == "interleaved-1f1b") always("parallelism.virtual_pp", {"2", "2", "3"});
    always("parallelism.dp", {"1", "2", "4", "8", "16"});
    always("workload.global_batch_size", {"8", "16", "32", "64", "128"});
    maybe(25, "overlap", {"default", "none", "combined"});
  }
  static void draw_slots(ScenarioDraw& d) {
    d.keys_.clear();
    d.draw_sequences();
    d.draw_pipeline();
    d.set("slot_costs_ms.F", d.any({"1", "1.2345678901"}));
    d.set("slot_costs_ms.B", d.any({"2", "2.1", "3"}));
    d.maybe(80, "slot_costs_ms.W", {"1", "0.9876543211"});
    d.maybe(60, "slot_costs_ms.F&B", {"3", "2.5"});
  }

  Dice dice_;
  ScenarioKeys keys_;
};

/// The smallest scenario that still `fails`: no key can be left out, and no number be smaller.
inline ScenarioKeys smallest(ScenarioKeys keys, const std::function<bool(const ScenarioKeys&)>& fails) {
  const std::vector<std::string> simpler = {"1", "2", "4", "8", "sequential", "deepseek-v3", "h800"};
  const auto step = [&] {
    for (const auto& [key, value] : ScenarioKeys(keys)) {
      ScenarioKeys without = keys;
      without.erase(key);
      if (fails(without)) return keys = without, true;
      for (const std::string& other : simpler) {
        if (other == value) break;
        ScenarioKeys changed = keys;
        changed[key] = other;
        if (fails(changed)) return keys = changed, true;
      }
    }
    return false;
  };
  while (step()) {
  }
  return keys;
}

}  // namespace moeline::testing
