// What Megatron-LM refuses, or changes, of the flags that `plan` prints for training. Learnt from its own checks; a
// rule that a note of ours tells of counts as kept.
#pragma once

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/plan/stack_rules_command.hpp"

namespace moeline::testing {

/// By default of DeepSeek-V3 on 64 GPUs.
struct TrainingFacts {
  int layers = 61, mtp = 1;
  int experts = 256, heads = 128, query_groups = 128;
  bool mla = true, dense_layers = true;
  int gpus = 64;
};

struct TrainingRule {
  Effect effect;
  const char* says;
  const char* source;  ///< file:function at commit, of NVIDIA/Megatron-LM where no other repository is named
  bool (*breaks)(const ReadCommand&, const TrainingFacts&);
  const char* broken_by;
};

/// What stands between | of a --pipeline-model-parallel-layout, repetitions written out: brackets first, then letters.
inline std::vector<std::string> stages_in(std::string layout) {
  std::erase(layout, ',');
  for (const char* pattern : {R"(\(([^)]+)\)\*(\d+))", R"((.)\*(\d+))"}) {
    const std::regex repeated(pattern);
    for (std::smatch found; std::regex_search(layout, found, repeated);) {
      std::string all;
      for (int i = 0; i < std::stoi(found[2]); ++i) all += found[1].str();
      layout = found.prefix().str() + all + found.suffix().str();
    }
  }
  std::vector<std::string> stages(1);
  for (const char c : layout) c == '|' ? (void)stages.emplace_back() : (void)(stages.back() += c);
  return stages;
}

/// Where it has none: no stages.
inline std::vector<std::string> layout_of(const ReadCommand& c) {
  const std::string layout = c.word("--pipeline-model-parallel-layout");
  return layout.empty() ? std::vector<std::string>{} : stages_in(layout);
}
inline std::string letters_of(const ReadCommand& c) {
  std::string all;
  for (const std::string& stage : layout_of(c)) all += stage;
  return all;
}
inline int pp_of(const ReadCommand& c) { return c.number("--pipeline-model-parallel-size", 1); }
inline int virtual_stages_of(const ReadCommand& c) {
  if (c.has("--pipeline-model-parallel-layout")) return static_cast<int>(layout_of(c).size()) / pp_of(c);
  return c.number("--num-virtual-stages-per-pipeline-rank", 1);
}
inline std::set<std::string> listed(const ReadCommand& c, const char* flag) { return words_of(c.word(flag)); }
inline bool are_among(const std::set<std::string>& words, const std::set<std::string>& known) {
  return std::includes(known.begin(), known.end(), words.begin(), words.end());
}
inline bool combines(const ReadCommand& c) { return c.has("--overlap-moe-expert-parallel-comm"); }
inline bool recomputes(const ReadCommand& c, const char* what) { return c.word("--recompute-granularity") == what; }
inline int replicas_of(const ReadCommand& c, const TrainingFacts& facts) {
  const int of_one = c.number("--tensor-model-parallel-size", 1) * c.number("--context-parallel-size", 1) * pp_of(c);
  return std::max(1, facts.gpus / of_one);
}
inline int expert_ranks_of(const ReadCommand& c) {
  const int tp = c.number("--tensor-model-parallel-size", 1);
  return c.number("--expert-model-parallel-size", 1) * c.number("--expert-tensor-parallel-size", tp);
}

/// MTP modules stand behind all decoder layers, together, on their rank's last stage.
inline bool has_mtp_last(const ReadCommand& c) {
  const std::vector<std::string> stages = layout_of(c);
  const std::string letters = letters_of(c);
  if (letters.find('m') == std::string::npos) return true;
  const auto holders = std::count_if(stages.begin(), stages.end(),
                                     [](const std::string& stage) { return stage.find('m') != std::string::npos; });
  const auto last_round = stages.end() - std::min<std::ptrdiff_t>(pp_of(c), std::ssize(stages));
  const bool early = std::any_of(stages.begin(), last_round,
                                 [](const std::string& stage) { return stage.find('m') != std::string::npos; });
  return letters.find('t', letters.find('m')) == std::string::npos && holders == 1 && !early;
}

inline const std::vector<TrainingRule>& megatron_rules() {
  static const std::set<std::string> kFlags = words_of(
      "--tensor-model-parallel-size --sequence-parallel --pipeline-model-parallel-size --context-parallel-size "
      "--expert-model-parallel-size --expert-tensor-parallel-size --pipeline-model-parallel-layout "
      "--num-virtual-stages-per-pipeline-rank --micro-batch-size --global-batch-size --seq-length "
      "--recompute-granularity --recompute-method --recompute-num-layers --recompute-modules "
      "--fine-grained-activation-offloading --offload-modules --offload-optimizer-states "
      "--moe-token-dispatcher-type --moe-enable-deepep --moe-flex-dispatcher-backend --moe-grouped-gemm "
      "--moe-permute-fusion --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
      "--overlap-moe-expert-parallel-comm --delay-wgrad-compute --cuda-graph-impl --cuda-graph-scope");
  static const std::vector<TrainingRule> kRules = {
      {Effect::refused, "A flag is one that it has.",
       "megatron/training/arguments.py:parse_args at 000c4ac; transformer_config.py:TransformerConfig at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) { return c.has_others_than(kFlags); }, "--offload-optimizer"},
      {Effect::refused, "Stages are told by their layout or by their number, not by both.",
       "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts&) {
         return c.has("--pipeline-model-parallel-layout") && c.has("--num-virtual-stages-per-pipeline-rank");
       },
       "--pipeline-model-parallel-layout 'Et*61|mL' --num-virtual-stages-per-pipeline-rank 2"},
      {Effect::refused, "A layout has as many stages for each rank of the pipeline.",
       "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts&) { return std::ssize(layout_of(c)) % pp_of(c) != 0; },
       "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*20|t*20|t*21mL'"},
      {Effect::refused, "A layout knows four letters, and begins with the embedding and ends with the loss, once each.",
       "pipeline_parallel_layer_layout.py:parse_str_to_list, validate_layer_layout at 00caa53",
       [](const ReadCommand& c, const TrainingFacts&) {
         const std::string all = letters_of(c);
         return !all.empty() && (all.find_first_not_of("EtmL") != std::string::npos || all.find_last_of('E') != 0 ||
                                 all.find('L') != all.size() - 1);
       },
       "--pipeline-model-parallel-layout 't*30|Et*31mL'"},
      {Effect::refused, "A layout has every decoder layer and every MTP module.",
       "pipeline_parallel_layer_layout.py:validate_layer_layout at 00caa53",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         const std::string all = letters_of(c);
         return !all.empty() && (std::count(all.begin(), all.end(), 't') != facts.layers ||
                                 std::count(all.begin(), all.end(), 'm') != facts.mtp);
       },
       "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*30|t*30mL'"},
      {Effect::refused, "A layout has all MTP modules behind the layers, on the last stage of a rank.",
       "pipeline_parallel_layer_layout.py:validate_layer_layout at 00caa53",
       [](const ReadCommand& c, const TrainingFacts&) { return !has_mtp_last(c); },
       "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*30|t*31m|L|'"},
      {Effect::refused, "Without a layout every stage has as many layers.",
       "megatron/training/arguments.py:validate_args at 000c4ac; transformer_block.py:get_num_layers_to_build at "
       "767a8a8",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         return layout_of(c).empty() && facts.layers % (pp_of(c) * virtual_stages_of(c)) != 0;
       },
       "--pipeline-model-parallel-size 4"},
      {Effect::refused, "Virtual stages are those of a pipeline.",
       "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts&) { return virtual_stages_of(c) > 1 && pp_of(c) == 1; },
       "--pipeline-model-parallel-size 1 --num-virtual-stages-per-pipeline-rank 61"},
      {Effect::refused, "Parameters are gathered behind computation where gradients are reduced so, in shards.",
       "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts&) {
         return c.has("--overlap-param-gather") &&
                !(c.has("--use-distributed-optimizer") && c.has("--overlap-grad-reduce"));
       },
       "--overlap-param-gather --use-distributed-optimizer"},
      {Effect::refused, "Selected modules are computed again without a method or a number of layers.",
       "megatron/training/arguments.py:validate_args at 000c4ac; transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         return recomputes(c, "selective") && (c.has("--recompute-method") || c.has("--recompute-num-layers"));
       },
       "--recompute-granularity selective --recompute-modules core_attn --recompute-num-layers 1"},
      {Effect::refused, "Whole layers are computed again by a method, but for combined passes.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         const bool told = c.has("--recompute-method") && c.has("--recompute-num-layers");
         return recomputes(c, "full") && !combines(c) && !told;
       },
       "--recompute-granularity full"},
      {Effect::refused, "Combined passes compute whole chunks again, without a method or a number of layers.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         return combines(c) && (c.has("--recompute-method") || c.has("--recompute-num-layers"));
       },
       "--overlap-moe-expert-parallel-comm --recompute-granularity full --recompute-method uniform"},
      {Effect::refused, "Modules that are computed again are some of these.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         return !are_among(listed(c, "--recompute-modules"),
                           {"core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"});
       },
       "--recompute-granularity selective --recompute-modules attention"},
      {Effect::refused, "moe_act is computed again with grouped GEMMs alone.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         return listed(c, "--recompute-modules").contains("moe_act") && !c.has("--moe-grouped-gemm");
       },
       "--recompute-granularity selective --recompute-modules moe_act"},
      {Effect::refused, "mla_up_proj is computed again in MLA alone.", "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         return listed(c, "--recompute-modules").contains("mla_up_proj") && !facts.mla;
       },
       nullptr},
      {Effect::refused, "Offloaded modules are some of these, and attn_proj goes with core_attn.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         const std::set<std::string> modules = listed(c, "--offload-modules");
         return !are_among(modules, {"attn_norm", "attn_proj", "core_attn", "expert_fc1", "mlp_norm", "moe_act",
                                     "qkv_linear"}) ||
                (modules.contains("attn_proj") && !modules.contains("core_attn"));
       },
       "--fine-grained-activation-offloading --offload-modules attn_proj"},
      {Effect::refused, "Passes are combined in a pipeline of virtual stages.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         return combines(c) && pp_of(c) > 1 && virtual_stages_of(c) == 1;
       },
       "--pipeline-model-parallel-size 4 --expert-model-parallel-size 8 --overlap-moe-expert-parallel-comm "
       "--moe-token-dispatcher-type alltoall"},
      {Effect::refused, "Passes are combined where experts are spread, by alltoall or flex.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         const std::string type = c.word("--moe-token-dispatcher-type", "allgather");
         return combines(c) &&
                (c.number("--expert-model-parallel-size", 1) == 1 || (type != "alltoall" && type != "flex"));
       },
       "--expert-model-parallel-size 8 --overlap-moe-expert-parallel-comm"},
      {Effect::refused, "Passes are combined with one MTP module at most.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts& facts) { return combines(c) && facts.mtp > 1; }, nullptr},
      {Effect::refused, "Gradients of weights are delayed where passes are combined.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) { return c.has("--delay-wgrad-compute") && !combines(c); },
       "--delay-wgrad-compute"},
      {Effect::refused, "Token dispatchers are some of these, and DeepEP is one of flex.",
       "transformer_config.py:TransformerConfig, __post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         const std::string type = c.word("--moe-token-dispatcher-type", "allgather");
         const std::string backend = c.word("--moe-flex-dispatcher-backend", "deepep");
         return !are_among({type}, {"allgather", "alltoall", "flex"}) ||
                !are_among({backend}, {"deepep", "deepepv2", "hybridep", "ncclep"}) ||
                (c.has("--moe-enable-deepep") && (type != "flex" || backend != "deepep"));
       },
       "--moe-token-dispatcher-type alltoall --moe-enable-deepep"},
      {Effect::refused, "DeepEP has settings for so many ranks.",
       "deep_ep/buffer.py:get_dispatch_config of deepseek-ai/DeepEP at dcfd954",
       [](const ReadCommand& c, const TrainingFacts&) {
         return c.has("--moe-enable-deepep") && !has_deep_ep_sizes(expert_ranks_of(c));
       },
       "--expert-model-parallel-size 256 --moe-token-dispatcher-type flex --moe-enable-deepep"},
      {Effect::refused, "Ranks have as many experts.", "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         return facts.experts % c.number("--expert-model-parallel-size", 1) != 0;
       },
       "--expert-model-parallel-size 24"},
      {Effect::refused, "Ranks have as many heads, and query groups divide them or are divided by them.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         const int tp = c.number("--tensor-model-parallel-size", 1);
         return facts.heads % tp != 0 || (facts.query_groups % tp != 0 && tp % facts.query_groups != 0);
       },
       "--tensor-model-parallel-size 3"},
      {Effect::refused, "Experts with tensor parallelism have sequence parallelism.",
       "megatron/training/arguments.py:validate_args at 307dcf3",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         return facts.experts > 0 && c.number("--tensor-model-parallel-size", 1) > 1 && !c.has("--sequence-parallel");
       },
       "--tensor-model-parallel-size 2"},
      {Effect::changed, "Without tensor parallelism there is no sequence parallelism.",
       "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts&) {
         return c.has("--sequence-parallel") && c.number("--tensor-model-parallel-size", 1) == 1;
       },
       "--sequence-parallel"},
      {Effect::refused, "Sequences are two parts of as many tokens for each rank that shares them.",
       "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts&) {
         const int cp = c.number("--context-parallel-size", 1);
         return cp > 1 && c.number("--seq-length", 0) % (2 * cp) != 0;
       },
       "--context-parallel-size 8 --seq-length 4104"},
      {Effect::refused, "A step has as many micro-batches for each replica.",
       "megatron/core/num_microbatches_calculator.py:ConstantNumMicroBatchesCalculator",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         return c.number("--global-batch-size", 0) % (c.number("--micro-batch-size", 1) * replicas_of(c, facts)) != 0;
       },
       "--global-batch-size 100 --micro-batch-size 1"},
      {Effect::refused,
       "Virtual stages have as many micro-batches for each rank of the pipeline, where it has the plan's pipeline.",
       "megatron/core/pipeline_parallel/schedules.py:forward_backward_pipelining_with_interleaving at 4dabc62",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         const int at_once = c.number("--micro-batch-size", 1) * replicas_of(c, facts);
         return virtual_stages_of(c) > 1 && c.number("--global-batch-size", 0) / at_once % pp_of(c) != 0 &&
                !c.says("its pipelines are 1F1B");
       },
       "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 --global-batch-size 96"},
      {Effect::refused, "CUDA graphs are not of what is computed again as a whole.",
       "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts&) { return c.has("--cuda-graph-impl") && recomputes(c, "full"); },
       "--cuda-graph-impl transformer_engine --cuda-graph-scope attn --recompute-granularity full "
       "--recompute-method uniform --recompute-num-layers 1"},
      {Effect::refused, "A graph of moe_preprocess has moe_router, and one of mlp is of dense layers.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts& facts) {
         const std::set<std::string> parts = listed(c, "--cuda-graph-scope");
         return (parts.contains("moe_preprocess") && !parts.contains("moe_router")) ||
                (parts.contains("mlp") && !facts.dense_layers);
       },
       "--cuda-graph-impl transformer_engine --cuda-graph-scope attn moe_preprocess"},
      {Effect::refused, "Graphs beside combined passes are not of mlp.",
       "transformer_config.py:__post_init__ at 002526d",
       [](const ReadCommand& c, const TrainingFacts&) {
         return combines(c) && listed(c, "--cuda-graph-scope").contains("mlp");
       },
       "--overlap-moe-expert-parallel-comm --cuda-graph-impl transformer_engine --cuda-graph-scope mlp"},
      {Effect::refused, "Before Blackwell, TP and CP start with one CUDA connection, which a note has to say.",
       "megatron/training/arguments.py:validate_args at 000c4ac",
       [](const ReadCommand& c, const TrainingFacts&) {
         const bool shared =
             c.number("--tensor-model-parallel-size", 1) > 1 || c.number("--context-parallel-size", 1) > 1;
         return shared && !combines(c) && !c.says("CUDA_DEVICE_MAX_CONNECTIONS=1");
       },
       "--tensor-model-parallel-size 2 --sequence-parallel"},
  };
  return kRules;
}

}  // namespace moeline::testing
