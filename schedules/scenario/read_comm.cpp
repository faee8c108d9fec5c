#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

// The kernel takes each rank's own tokens to whole experts.
std::string refused_fused(const Setup& setup) {
  const Parallelism& p = setup.scenario.parallelism;
  if (p.tp > 1 || p.moe_tp > 1 || p.cp > 1)
    return "takes each GPU's own tokens to whole experts: tp, moe_tp and cp are 1";
  if (!setup.in_one_domain()) {
    return fmt::format("stays in an NVLink domain: {} ranks are more than its {:.0f} GPUs", p.ep,
                       setup.machine.facts.gpus_per_node);
  }
  if (has_mega_moe(setup)) return "";
  return fmt::format("no kernels of {} have {} experts by it", setup.machine.name, name_of(setup.model.expert_weights));
}

// Libraries end somewhere.
std::string out_of_reach(CommMode mode, const Setup& setup) {
  const Dispatcher& by = dispatcher_of(mode);
  const int ranks = setup.scenario.parallelism.ep;
  const double per_node = setup.machine.facts.gpus_per_node, nodes = ranks / per_node;
  if (by.from_hopper_on && setup.machine.facts.fp8_tflops == 0) return "needs Hopper or later";
  if (by.in_domain && !setup.in_one_domain()) {
    return fmt::format("stays in an NVLink domain: {} ranks are more than its {:.0f} GPUs", ranks, per_node);
  }
  const std::string instead = ranks <= dispatcher_of(CommMode::deepep_v2).most_ranks ? "; there is: deepep_v2" : "";
  if (by.most_ranks > 0 && ranks > by.most_ranks) {
    return fmt::format("ends at {} ranks, and there are {}{}", by.most_ranks, ranks, instead);
  }
  if (by.most_nodes > 0 && nodes > by.most_nodes) {
    return fmt::format("ends at {} nodes, and there are {:.0f}{}", by.most_nodes, nodes, instead);
  }
  return "";
}

// What speaks against a mode ("" if nothing does).
std::string refused(CommMode mode, const Setup& setup) {
  const Parallelism& p = setup.scenario.parallelism;
  const int experts = p.ep * p.moe_tp;
  const bool alone = experts == 1 && (p.tp == 1 || setup.model.n_routed_experts > 0);
  const bool alike = std::max(p.tp, experts) == p.tp;  // ranks that share a layer have the same tokens
  if (mode == CommMode::none) return alone ? "" : fmt::format("needs one rank, and {} share the layers", p.group());
  if (alone) return "has nobody to send to where ep x moe_tp is 1; there is: none";
  if (mode == CommMode::all_reduce) {
    return alike ? ""
                 : fmt::format("needs tp = ep x moe_tp, so that all ranks have the same tokens: {} is not {}", p.tp,
                               experts);
  }
  if (setup.model.n_routed_experts == 0) return "sends tokens to experts, and the model has none; there is: all_reduce";
  if (mode == CommMode::fused) return refused_fused(setup);
  if (mode == CommMode::all_gather) return alike ? "needs ranks with tokens of their own; there is: all_reduce" : "";
  if (p.moe_tp > 1) return fmt::format("sends each token to whole experts: moe_tp is {}, not 1", p.moe_tp);
  return out_of_reach(mode, setup);
}

// Megatron's token dispatchers; DeepSeek's operators have their own.
CommMode read_training_mode(const Spec& spec, const Setup& setup) {
  const bool megatron = setup.scenario.training.by_megatron();
  const CommMode usual = habits::training_mode(setup);
  if (!spec.has("mode")) return usual;
  const std::vector<std::string> words = megatron ? words_of(modes_that([](const Dispatcher& by) { return by.trains; }))
                                                  : words_of(std::vector{CommMode::normal, CommMode::deepep_v2});
  const auto mode = choice_of<CommMode>(modelled(spec, "mode", words, words_of<CommMode>()));
  const int ep = setup.scenario.parallelism.ep, moe_tp = setup.scenario.parallelism.moe_tp;
  if (moe_tp > 1 && dispatcher_of(mode).by_rank) {
    throw spec.error("mode", fmt::format("{}, sends each token to whole experts: moe_tp is {}; there is: all_to_all",
                                         word_of(mode), moe_tp));
  }
  if ((mode == CommMode::none) == (ep == 1)) {
    const std::string beyond = out_of_reach(mode, setup);
    if (beyond.empty()) return mode;
    throw spec.error("mode", word_of(mode) + ", " + beyond);
  }
  throw spec.error("mode", ep == 1 ? "has nobody to send to where ep is 1; there is: none"
                                   : fmt::format("none, needs ep 1: {} ranks share the experts", ep));
}

}  // namespace

CommMode usual_mode(const Setup& setup) {
  const Scenario& s = setup.scenario;
  if (s.phase() == WorkloadPhase::train) return habits::training_mode(setup);
  const std::vector<CommMode>& modes = s.kind().modes;
  for (const CommMode mode : habits::inference_modes(setup)) {
    const bool may = std::find(modes.begin(), modes.end(), mode) != modes.end();
    if (may && refused(mode, setup).empty()) return mode;
  }
  return modes.front();
}

namespace {

CommMode read_mode(const Spec& spec, const Setup& setup) {
  const Scenario& s = setup.scenario;
  if (s.phase() == WorkloadPhase::train) return read_training_mode(spec, setup);
  const std::vector<std::string> words = words_of(s.kind().modes);
  const CommMode mode =
      spec.has("mode") ? choice_of<CommMode>(modelled(spec, "mode", words, words_of<CommMode>())) : usual_mode(setup);
  const std::string reason = refused(mode, setup);
  if (reason.empty()) return mode;
  const std::string of_schedule = spec.has("mode") ? "" : fmt::format("of {}, ", s.schedule);
  throw spec.error("mode", fmt::format("{}{}, {}", of_schedule, word_of(mode), reason));
}

void read_types(const Spec& spec, const Setup& setup, Comm& c) {
  const bool training = setup.scenario.phase() == WorkloadPhase::train;
  const bool megatron = setup.scenario.training.by_megatron();
  c.dispatch = habits::dispatch_format(c.mode, setup);
  if (training) {
    const std::string only = name_of(c.dispatch), other = megatron ? "fp8" : "bf16";
    (void)modelled(spec, "dispatch_dtype", {only}, {other});
  }
  if (spec.has("dispatch_dtype")) {
    if (!sends_tokens(c.mode)) throw spec.error("dispatch_dtype", fmt::format("does not apply to {}", word_of(c.mode)));
    std::vector<std::string> words = {"fp8", "bf16"};
    if (habits::may_send_fp4(c.mode, setup)) words.emplace_back("nvfp4");
    c.dispatch = precision_named(spec.choice("dispatch_dtype", words));
  }
  c.combine = precision_named(modelled(spec, "combine_dtype", {"bf16"}, {"fp8"}));
}

bool may_release(CommMode mode, const Setup& setup) {
  return mode == CommMode::low_latency && !setup.scenario.kind().plan.empty();
}

// Nothing, where the library or the stack decides.
std::optional<int> asked_sms(const Spec& spec) {
  constexpr const char* kKey = "num_sms";
  const keys::Row& key = keys::comm().at(kKey);
  if (!spec.has(kKey)) return std::nullopt;
  if (as_number<double>(spec.text(kKey))) return key.integer(spec);
  static_cast<void>(key.word(spec));
  return std::nullopt;
}

void read_sms(const Spec& spec, Setup& setup) {
  Comm& c = setup.scenario.comm;
  const bool releases = may_release(c.mode, setup);
  const std::optional<int> asked = asked_sms(spec);
  if (!dispatcher_of(c.mode).has_sms && !releases) {
    c.num_sms = asked.value_or(0);
    if (c.num_sms == 0) return;
    const char* why = c.mode == CommMode::low_latency ? "it issues and receives on all SMs"
                                                      : "how many SMs it holds is not known, and none are charged";
    throw spec.error("num_sms", fmt::format("does not apply to {}: {}", word_of(c.mode), why));
  }
  const int most = static_cast<int>(setup.machine.facts.sms) - 1;  // at least one is left to compute
  if (most < 1) throw spec.error("num_sms", "cannot be met: the machine has one SM");
  const int least = c.mode == CommMode::all_to_all || releases ? 0 : 1;
  const int usual = releases ? habits::released_sms(setup) : habits::transfer_sms(c.mode, setup);
  c.num_sms = asked ? spec.integer("num_sms", least, most) : std::min(usual, most);
}

// Of DeepEP's second version.
void read_layouts(const Spec& spec, Setup& setup) {
  Comm& c = setup.scenario.comm;
  c.layout = habits::row_layout(setup);
  if (setup.in_one_domain()) c.topology = Topology::direct;  // the only way that there is
  for (const char* key : {"topology", "layout", "cpu_sync"}) {
    if (!dispatcher_of(c.mode).has_layouts && spec.has(key)) {
      throw spec.error(key, fmt::format("belongs to deepep_v2, and comm.mode is {}", word_of(c.mode)));
    }
    keys::comm().read(spec, key, setup.scenario);
  }
  const bool trains = setup.scenario.phase() == WorkloadPhase::train;
  if (trains && c.layout == RowLayout::expanded) {
    throw spec.error("layout", "expanded, is not modelled in training, whose stacks permute rows themselves");
  }
}

void read_context(const Spec& spec, Setup& setup) {
  const std::vector<Layer>& layers = setup.model.layers;
  if (spec.has("context") && setup.scenario.parallelism.cp == 1) {
    throw spec.error("context", "belongs to context parallelism, and parallelism.cp is 1");
  }
  const bool training = setup.scenario.phase() == WorkloadPhase::train;
  const bool windows =
      std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.attention.window > 0; });
  ContextMode& context = setup.scenario.comm.context;
  context = habits::context_mode(setup.scenario.phase(), windows);
  keys::comm().read(spec, "context", setup.scenario);
  if (training && windows && context == ContextMode::ring) {
    throw spec.error("context", "ring, is not what Transformer Engine has for sliding windows; there is: all_gather");
  }
}

void read_all_reduce(const Spec& spec, Setup& setup) {
  constexpr const char* kKey = "all_reduce";
  const bool shares = setup.scenario.parallelism.tp > 1 && setup.scenario.phase() != WorkloadPhase::train;
  if (!shares) {
    if (spec.has(kKey)) throw spec.error(kKey, "belongs to ranks that share attention in prefill and decode");
    return;
  }
  AllReduce& taken = setup.scenario.comm.all_reduce;
  const bool has_own = habits::has_own_all_reduce(setup);
  taken = has_own ? AllReduce::stack : AllReduce::nccl;
  keys::comm().read(spec, kKey, setup.scenario);
  if (taken == AllReduce::stack && !has_own) {
    throw spec.error(kKey, fmt::format("stack: the kernels of {} have none of their own", setup.machine.name));
  }
}

bool has_indexer(const Architecture& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const Layer& layer) { return layer.attention.selection.heads > 0; });
}

void read_indexer(const Spec& spec, Setup& setup) {
  constexpr const char* kKey = "indexer";
  const bool shares = setup.scenario.parallelism.tp > 1 && prefill_of(setup.scenario.workload) != nullptr;
  if (!shares || !has_indexer(setup.model)) {
    if (spec.has(kKey)) throw spec.error(kKey, "belongs to an indexer's prompts, where ranks share attention");
    return;
  }
  IndexerQueries& taken = setup.scenario.comm.indexer;
  taken = habits::indexer_queries(setup);
  keys::comm().read(spec, kKey, setup.scenario);
  if (taken == IndexerQueries::none)
    throw spec.error(kKey, "is none where no queries are shared; there is: whole, split");
}

// What DeepEP's second version moves beside tokens.
void read_without_sms(const Spec& spec, Setup& setup) {
  const Scenario& s = setup.scenario;
  const Parallelism& p = s.parallelism;
  keys::comm().read(spec, "stage_sends", setup.scenario);
  const bool has = dispatcher_of(s.comm.mode).has_layouts;
  if (s.comm.stage_sends == StageSends::rdma) {
    if (!has) throw spec.error("stage_sends", "rdma, belongs to deepep_v2, and comm.mode is " + word_of(s.comm.mode));
    if (p.pp == 1) throw spec.error("stage_sends", "belongs to stages, and parallelism.pp is 1");
  }
  if (s.comm.context != ContextMode::copy_engines) return;
  if (!has) throw spec.error("context", "copy_engines, belongs to deepep_v2, and comm.mode is " + word_of(s.comm.mode));
  if (p.attention_ranks() > setup.machine.facts.gpus_per_node) {
    throw spec.error("context", fmt::format("copy_engines, stays in an NVLink domain: {} ranks share a sequence",
                                            p.attention_ranks()));
  }
}

}  // namespace

void read_comm(const Spec& spec, Setup& setup) {
  spec.expect(keys::comm().names());
  Comm& c = setup.scenario.comm;
  c.mode = read_mode(spec, setup);
  read_types(spec, setup, c);
  read_context(spec, setup);
  keys::comm().read(spec, "neighbours", setup.scenario);
  keys::comm().read(spec, "collectives", setup.scenario);
  read_all_reduce(spec, setup);
  read_indexer(spec, setup);
  read_layouts(spec, setup);
  read_without_sms(spec, setup);
  read_sms(spec, setup);
}

void read_cpu_sync(const Spec& spec, Setup& setup) {
  Scenario& s = setup.scenario;
  const bool graph = s.launch == Launch::graph;
  if (!dispatcher_of(s.comm.mode).has_layouts) return;
  if (!spec.has("cpu_sync")) {
    s.comm.cpu_sync = s.phase() != WorkloadPhase::decode && !graph;
  } else if (s.comm.cpu_sync && graph) {
    throw spec.error("cpu_sync", "true, needs a host that waits for counts, and launch is graph");
  }
}

}  // namespace moeline
