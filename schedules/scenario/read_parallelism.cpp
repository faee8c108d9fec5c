#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "architecture/parameters.hpp"
#include "moe/tensor_parallel.hpp"
#include "schedules/scenario/keys.hpp"

namespace moeline {
namespace {

// "possible near it: 2, 4"
std::string nearest_possible(int asked, int most, const std::function<bool(int)>& is_possible) {
  std::vector<int> near;
  for (int below = std::min(asked, most); below >= 1 && near.empty(); --below) {
    if (is_possible(below)) near.push_back(below);
  }
  const std::size_t enough = near.size() + 1;
  for (int above = asked + 1; above <= most && near.size() < enough; ++above) {
    if (is_possible(above)) near.push_back(above);
  }
  return near.empty() ? "nothing near it is possible" : fmt::format("possible near it: {}", fmt::join(near, ", "));
}

// "attention", or what keys and values of a layer with a state are called.
struct HeadNames {
  const char *heads, *kv_heads;
};
HeadNames names_of_heads(AttentionKind kind) {
  if (kind == AttentionKind::mamba) return {"heads of Mamba-2", "groups of Mamba-2"};
  if (has_state(kind)) return {"heads of linear attention", "key heads of linear attention"};
  return {"attention heads", "key and value heads"};
}

void check_heads(const Spec& spec, int tp, const LayerAttention& attention, int gpus_per_node) {
  if (attention.kind == AttentionKind::none) return;
  const int heads = attention.heads, kv_heads = attention.kv_heads;
  const auto possible = [&](int ranks) {
    const bool fills_nodes = ranks <= gpus_per_node ? gpus_per_node % ranks == 0 : ranks % gpus_per_node == 0;
    return heads % ranks == 0 && (kv_heads % ranks == 0 || ranks % kv_heads == 0) && (ranks == 1 || fills_nodes);
  };
  if (possible(tp)) return;
  const HeadNames names = names_of_heads(attention.kind);
  const std::string why = heads % tp != 0 ? fmt::format("must divide the {} {}", heads, names.heads)
                          : kv_heads % tp != 0 && tp % kv_heads != 0
                              ? fmt::format("must divide the {} {}, or be a multiple of them", kv_heads, names.kv_heads)
                              : fmt::format("must divide a node of {} GPUs, or fill several", gpus_per_node);
  throw spec.error("tp", fmt::format("{}: {} does not; {}", why, tp, nearest_possible(tp, heads, possible)));
}

void check_heads(const Spec& spec, int tp, const Architecture& model, int gpus_per_node) {
  for (const Layer& layer : model.layers) check_heads(spec, tp, layer.attention, gpus_per_node);
}

// Ranks that share a prompt exchange keys and values; what other kinds of attention would exchange is not modelled.
void check_context(const Spec& spec, int cp, const Architecture& model) {
  if (cp == 1) return;
  for (const Layer& layer : model.layers) {
    const LayerAttention& a = layer.attention;
    const char* what = has_state(a.kind)                     ? "linear attention"
                       : a.kind == AttentionKind::compressed ? "compressed attention"
                       : a.selection.heads > 0               ? "attention to selected keys"
                       : a.chunk > 0                         ? "attention within chunks"
                                                             : nullptr;
    if (what != nullptr) throw spec.error("cp", fmt::format("above 1 is not modelled for {}", what));
  }
}

// Where experts are not loaded alike every rank is simulated, and may have its own number of experts.
void check_experts_divide(const Spec& spec, int ep, const Scenario& scenario, const Architecture& model) {
  const int redundant = scenario.routing.redundant_experts;
  const int slots = model.n_routed_experts + redundant;
  const std::string also = redundant > 0 ? fmt::format(" and {} redundant", redundant) : "";
  const bool may_differ = scenario.routing.has_loads() && scenario.phase() != WorkloadPhase::train;
  if (may_differ && ep <= slots) return;
  if (slots % ep != 0) {
    throw spec.error("ep",
                     fmt::format("must divide the {} routed{} experts: {} does not", model.n_routed_experts, also, ep));
  }
}

void check_whole_nodes(const Spec& spec, const Parallelism& p, int gpus_per_node) {
  const int group = p.ep * p.moe_tp;
  if (group <= gpus_per_node || group % gpus_per_node == 0) return;
  throw spec.error("ep", fmt::format("{}must fill whole nodes of {} GPUs, or fit into one",
                                     p.moe_tp > 1 ? "x moe_tp " : "", gpus_per_node));
}

void check_world(const Parallelism& p, const char* largest, const Spec& spec) {
  if (p.world() > kMostRanks) {
    throw spec.error(largest, fmt::format("x dp is more than {} ranks", kMostRanks));
  }
  const int ranks = p.attention_ranks() * p.dp;
  const int group = p.ep * p.moe_tp;
  if (ranks % group == 0) return;
  throw spec.error("ep", fmt::format("{}must divide tp x {}dp: {} does not divide {}", p.moe_tp > 1 ? "x moe_tp " : "",
                                     p.cp > 1 ? "cp x " : "", group, ranks));
}

void refuse_experts(const Spec& spec, const Architecture& model) {
  for (const char* key : {"ep", "moe_tp"}) {
    if (spec.integer_or(key, 1, kMostRanks, 1) > 1) {
      throw spec.error(key, fmt::format("does not apply: '{}' has no routed experts", model.name));
    }
  }
}

// Each of cp x tp ranks has two pieces of every sequence where cp shares them, and one where tp alone does.
void check_pieces(const Spec& spec, const Parallelism& p, int seq_len) {
  const bool shared = p.cp > 1;
  const int pieces = shared ? 2 * p.cp * p.tp : p.tp;
  if (seq_len % pieces == 0) return;
  throw spec.error(shared ? "cp" : "tp", fmt::format("{}must divide the {} tokens of a sequence: {} does not",
                                                     shared ? "x 2 x tp " : "", seq_len, pieces));
}

// Attention groups share layers of experts, or the other way round.
void check_groups(const Spec& spec, const Parallelism& p) {
  const int attention = p.attention_ranks(), experts = p.ep * p.moe_tp;
  if (std::max(attention, experts) % std::min(attention, experts) == 0) return;
  throw spec.error("ep", fmt::format("{}must divide tp{}, or be a multiple of it: {} and {} are not",
                                     p.moe_tp > 1 ? "x moe_tp " : "", p.cp > 1 ? " x cp" : "", experts, attention));
}

Parallelism read_training_parallelism(const Spec& spec, const Scenario& scenario, const Architecture& model,
                                      int gpus_per_node) {
  const bool pipeline = scenario.kind().pipeline.has_value();
  spec.expect(keys::parallelism().names(pipeline));
  const bool megatron = scenario.training.by_megatron();
  for (const char* key : {"tp", "cp", "moe_tp"}) {
    if (megatron || spec.integer_or(key, 1, kMostRanks, 1) == 1) continue;
    throw spec.error(key, "above 1 is not what the operators deepseek do; training.operators=megatron do");
  }
  // DeepSeek's list of kernels has the all-to-all in it.
  Parallelism p =
      read_world(spec, megatron ? spec.integer_or("ep", 1, kMostRanks, 1) : spec.integer("ep", 2, kMostRanks));
  if (pipeline) read_pipeline_keys(spec, scenario.kind(), p);
  check_heads(spec, p.tp, model, gpus_per_node);
  check_context(spec, p.cp, model);
  check_groups(spec, p);
  const TrainWorkload& w = as_train(scenario.workload);
  check_pieces(spec, p, w.seq_len);
  for (const int seq_len : w.seq_lens) check_pieces(spec, p, seq_len);
  if (model.n_routed_experts > 0) {
    check_experts_divide(spec, p.ep, scenario, model);
  } else {
    refuse_experts(spec, model);
  }
  check_whole_nodes(spec, p, gpus_per_node);
  return p;
}

// Experts are shared by whole attention groups, all of whose ranks have the tokens.
void read_expert_ranks(const Spec& spec, const Scenario& scenario, const Architecture& model, Parallelism& p) {
  const int ranks = p.attention_ranks();
  ranks > 1 ? keys::parallelism().read(spec, "ep", p) : keys::parallelism().need(spec, "ep", p);
  p.moe_tp = ranks / std::gcd(ranks, p.ep);
  keys::parallelism().read(spec, "moe_tp", p);
  const auto holds_groups = [&](int moe_tp) { return std::int64_t{p.ep} * moe_tp % ranks == 0; };
  if (!holds_groups(p.moe_tp)) {
    throw spec.error(
        "moe_tp",
        fmt::format("x ep must be a multiple of tp{}, so that whole attention groups share experts: {} x {} "
                    "is none of {}; {}",
                    p.cp > 1 ? " x cp" : "", p.moe_tp, p.ep, ranks, nearest_possible(p.moe_tp, ranks, holds_groups)));
  }
  check_experts_divide(spec, p.ep, scenario, model);
}

// Micro-batches are what a pipeline overlaps.
void check_stages(const Spec& spec, const Scenario& scenario) {
  if (scenario.phase() == WorkloadPhase::mixed) {
    throw spec.error("pp", "above 1 is not modelled in mixed steps; it is in prefill and decode");
  }
  if (!scenario.kind().plan.empty()) {
    throw spec.error("pp", fmt::format("above 1 goes with the schedule sequential, not with {}", scenario.schedule));
  }
}

// Columns that are split over ranks. Where they are padded, blocks of a scale need only go round.
void check_width(const Spec& spec, const char* key, int ranks, const std::string& what, int width, Precision format,
                 bool padded = false) {
  const int block = scale_block(format);
  const auto possible = [&](int parts) {
    return padded ? parts <= width / block : width % parts == 0 && width / parts % block == 0;
  };
  if (ranks == 1 || possible(ranks)) return;
  if (padded) {
    throw spec.error(key, fmt::format("leaves a rank without a block of {} of the {} of {}; at most {}", block, width,
                                      what, width / block));
  }
  const std::string blocks = block > 1 ? fmt::format(", in blocks of {} for {}", block, name_of(format)) : "";
  throw spec.error(key, fmt::format("must divide the {} of {}{}: {} does not; {}", width, what, blocks, ranks,
                                    nearest_possible(ranks, width, possible)));
}

}  // namespace

Parallelism read_world(const Spec& spec, int ep) {
  Parallelism p;
  for (const char* key : {"tp", "pp", "cp", "moe_tp"}) keys::parallelism().read(spec, key, p);
  p.ep = ep;
  p.dp = p.attention_groups();
  keys::parallelism().read(spec, "dp", p);
  check_world(p, "pp", spec);
  return p;
}

Parallelism read_parallelism(const Spec& spec, const Scenario& scenario, const Architecture& model, int gpus_per_node) {
  if (scenario.phase() == WorkloadPhase::train) {
    return read_training_parallelism(spec, scenario, model, gpus_per_node);
  }
  spec.expect(keys::parallelism().names(false));
  Parallelism p;
  keys::parallelism().read(spec, "cp", p);
  if (p.cp > 1 && scenario.phase() != WorkloadPhase::prefill) {
    throw spec.error("cp", "above 1 is modelled in prefill alone: decode context parallelism is not");
  }
  keys::parallelism().read(spec, "pp", p);
  if (p.pp > 1) check_stages(spec, scenario);
  keys::parallelism().read(spec, "tp", p);
  check_heads(spec, p.tp, model, gpus_per_node);
  check_context(spec, p.cp, model);
  if (model.n_routed_experts > 0) {
    read_expert_ranks(spec, scenario, model, p);
  } else {
    refuse_experts(spec, model);
  }
  p.dp = p.attention_groups();
  keys::parallelism().read(spec, "dp", p);
  check_world(p, "tp", spec);
  check_whole_nodes(spec, p, gpus_per_node);
  return p;
}

void check_widths(const Spec& parallelism, const Setup& setup) {
  const Architecture& model = setup.model;
  const Parallelism& p = setup.scenario.parallelism;
  if (model.dense_layers() > 0) {
    for (const Layer& layer : model.layers) {
      check_width(parallelism, "tp", p.tp, "a dense layer's FFN", layer.dense_width, layer.formats.dense);
    }
  }
  if (model.n_routed_experts == 0) return;
  const bool padded = model.expert_weights == Precision::mxfp4 && runs_fused(setup);
  check_width(parallelism, "moe_tp", p.moe_tp, "an expert's FFN", model.moe_intermediate_size, model.expert_weights,
              padded);
  const bool splits_shared =
      setup.scenario.comm.mode == CommMode::all_reduce || setup.scenario.phase() == WorkloadPhase::train;
  if (model.n_shared_experts > 0 && splits_shared) {
    check_width(parallelism, "tp", p.tp, "the shared experts' FFN",
                model.n_shared_experts * model.shared_intermediate_size,
                model.layer(model.first_main_layer()).formats.shared);
  }
}

}  // namespace moeline
