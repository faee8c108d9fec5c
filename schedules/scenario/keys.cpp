#include "schedules/scenario/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "schedules/scenario/flag_list.hpp"
#include "schedules/scenario/read_scenario.hpp"

namespace moeline::keys {
namespace {

constexpr int kMostLoadStep = 1'000'000;

// A name, or a path that leads to the file also from where the scenario is read again, below the same folder.
std::string found_again(const Scenario& s, const std::string& reference, const char* folder) {
  const std::vector<std::string> names = names_in(folder);
  if (std::find(names.begin(), names.end(), reference) != names.end()) return reference;
  return beside(s.file, reference).string();
}

std::vector<Entry> resolved_workload(const Workload& workload) {
  std::vector<Entry> entries = {{"phase", word_of(phase_of(workload))}};
  const auto append = [&](const std::vector<Entry>& more) { entries.insert(entries.end(), more.begin(), more.end()); };
  if (const auto* w = std::get_if<TrainWorkload>(&workload)) append(train().resolved(*w));
  if (const DecodeWorkload* w = decode_of(workload)) append(decode().resolved(*w));
  if (const PrefillWorkload* w = prefill_of(workload)) append(prefill().resolved(*w));
  return entries;
}

}  // namespace

const Table<Parallelism>& parallelism() {
  using P = Parallelism;
  static const Type ranks = whole(1, kMostRanks);
  static const Table<P> kKeys = {
      key(&P::tp, "tp", ranks,
          "ranks of an attention group, which split attention's heads, dense layers, embedding and LM head"),
      key(&P::pp, "pp", whole(1, kMostPipelineRanks), "ranks of a pipeline"),
      key(&P::cp, "cp", ranks, "attention groups that share prompts, in training sequences").unless_default(),
      key(&P::moe_tp, "moe_tp", ranks,
          "ranks that split each expert's FFN; by default the least with which ep x moe_tp holds whole attention "
          "groups, in training 1")
          .depends()
          .unless_default(),
      key(&P::virtual_pp, "virtual_pp", whole(1, kMostChunks),
          "model chunks on each rank, of interleaved-1f1b, which needs it; 1 is for `schedule: auto` with "
          "slot_costs_ms alone")
          .depends()
          .pipelines_alone()
          .unless_default(),
      key(&P::ep, "ep", ranks,
          "ranks that routed experts are spread over. Needed in prefill and decode with tp 1; else 1 by default")
          .depends(),
      key(&P::dp, "dp", ranks,
          "attention groups; in training, data-parallel ranks. By default as many as ep x moe_tp holds")
          .depends(),
  };
  return kKeys;
}

const Table<PrecisionWords>& precision() {
  using P = PrecisionWords;
  static const Table<P> kKeys = {
      key(&P::linear, "linear", words({"checkpoint", "bf16", "fp8", "fp8_tensor", "fp8_static", "nvfp4"}),
          "of attention's projections, dense layers and shared experts"),
      key(&P::experts, "experts", words({"checkpoint", "bf16", "fp8", "fp8_tensor", "nvfp4", "mxfp4", "int4"}),
          "of routed experts"),
      key(&P::kv_cache, "kv_cache", words({"checkpoint", "bf16", "fp8"}),
          "of the KV cache in memory, and as decode reads it"),
      key(&P::expert_inputs, "expert_inputs", words({"stack", "bf16", "fp8"}),
          "with what experts in MXFP4 that are one fused layer are multiplied, where tensor cores have FP4; by default "
          "as the stack does"),
  };
  return kKeys;
}

const Table<MemoryChoices>& memory() {
  static const Table<MemoryChoices> kKeys = {
      key(&MemoryChoices::stack, "stack", words(words_of<Stack>()),
          "by whose rule a GPU's memory is filled; by default of the stack whose kernels are used")
          .depends(),
      key(&MemoryChoices::fraction, "fraction", number(0.1, 1),
          "of a GPU's memory, that the stack fills: SGLang with weights and caches, vLLM with activations and buffers "
          "as well, TensorRT-LLM with caches, of what all else leaves; by default the stack's own, else 0.9 of all")
          .depends(),
  };
  return kKeys;
}

namespace {

const Table<Routing>& rows_of_rank() {
  static const Type rows = list_of(whole(1, 1 << 30));
  static const Table<Routing> kKeys = {
      special<Routing>("forward", rows, "of forward passes", [](const Routing& r) { return r.forward_rows; }).needed(),
      special<Routing>("backward", rows, "of backward passes", [](const Routing& r) { return r.backward_rows; })
          .needed(),
  };
  return kKeys;
}

}  // namespace

const Table<Scenario>& routing() {
  const auto of = [](auto field, auto... rest) { return key(&Scenario::routing, field, std::move(rest)...); };
  const Type hits = number(1, 1 << 16);
  static const Table<Scenario> kKeys = {
      of(&Routing::distribution, "distribution", words(words_of<Distribution>()),
         "of tokens over experts. skewed: at random, some of a rank's experts more often than others "
         "(default of inference); balanced: at random, alike on average (default of training); exact: each gets the "
         "mean; power_law: the expert of rank r gets r^-alpha; file: loads from a file; given: rows of rank 0, of "
         "training")
          .depends(),
      mapping<Scenario>("rows", rows_of_rank().rows(),
                        "Expert rows of rank 0, padded to 128 per expert, one number for each layer; needed by the "
                        "distribution given",
                        [](const Scenario& s) { return rows_of_rank().resolved(s.routing); })
          .when([](const Scenario& s) { return !s.routing.forward_rows.empty(); }),
      of(&Routing::alpha, "alpha", number(0, 10),
         "exponent of power_law and of skewed, by default 1 and 0.7 (as in others' servers). skewed: tokens reach as "
         "many experts as if the r-th most popular one were chosen with weight r^-alpha")
          .depends()
          .when([](const Scenario& s) {
            return s.routing.distribution == Distribution::power_law ||
                   (s.routing.is_skewed() && s.routing.experts_hit.empty());
          }),
      special<Scenario>("experts_hit", either(hits, list_of(hits)),
                        "of skewed, in place of alpha: distinct experts that a step's tokens reach on average over all "
                        "experts, one number or one for each MoE layer",
                        [](const Scenario& s) { return one_or_list(s.routing.experts_hit); })
          .when([](const Scenario& s) { return !s.routing.experts_hit.empty(); }),
      of(&Routing::file, "file", text(), "loads per layer and expert, or a router map; needed by the distribution file")
          .as([](const Scenario& s) { return beside(s.file, s.routing.file).string(); })
          .when([](const Scenario& s) { return s.routing.distribution == Distribution::file; }),
      of(&Routing::step, "step", whole(0, kMostLoadStep),
         "which of the file's time steps, as numbered there; by default the last")
          .depends()
          .unless_default(),
      of(&Routing::placed_before, "placed_before", whole(0, kMostLoadStep),
         "with placement eplb: experts are placed by the loads of the steps before this one; by default `step`, and "
         "at the latest that")
          .depends()
          .unless_default(),
      of(&Routing::placement, "placement", words(words_of<PlacementRule>()),
         "static: experts in order, then copies of the first ones; eplb: by load")
          .when([](const Scenario& s) { return s.routing.has_loads(); }),
      of(&Routing::rows_spread, "rows_spread", number(0, 0.5),
         "of balanced, skewed and given: standard deviation of a rank's rows in a layer over their mean")
          .unless_default(),
      of(&Routing::redundant_experts, "redundant_experts", whole(0, 1 << 16),
         "copies of experts, on all ranks together; prefill and decode only")
          .unless_default(),
  };
  return kKeys;
}

namespace {

bool by_megatron(const Scenario& s) { return is_training_step(s) && s.training.by_megatron(); }

Value resolved_recompute(const Scenario& s) {
  const TrainingChoices& c = s.training;
  const bool lists = c.by_megatron() && c.recompute == Recompute::selective;
  return lists ? Value(names_of(c.modules)) : Value(word_of(c.recompute));
}

std::function<Value(const Scenario&)> one_of(bool TrainingChoices::*field, const char* yes, const char* no) {
  return [=](const Scenario& s) { return std::string(s.training.*field ? yes : no); };
}

}  // namespace

const Table<Scenario>& training() {
  using C = TrainingChoices;
  const auto of = [](auto field, auto... rest) { return key(&Scenario::training, field, std::move(rest)...); };
  static const Table<Scenario> kKeys = {
      of(&C::operators, "operators", words(words_of<TrainingOperators>()),
         "whose kernels train the model; by default deepseek for models like deepseek-v3 in FP8, else megatron")
          .depends(),
      special<Scenario>(
          "recompute", either(words(words_of<Recompute>()), some_of(all_names<RecomputedModules>())),
          "what the backward pass computes again; by Megatron's operators also a list of modules. By default "
          "selective by DeepSeek's, none by Megatron's",
          resolved_recompute),
      special<Scenario>("activations", words({"fp8", "bf16"}),
                        "of DeepSeek's operators: format in which SwiGLU's input and attention's output are kept",
                        one_of(&C::narrow_activations, "fp8", "bf16"))
          .otherwise("\"fp8\"")
          .when([](const Scenario& s) { return !s.training.by_megatron() && s.training.recompute != Recompute::full; }),
      special<Scenario>("gradients", words({"fp32", "bf16"}), "of whole pipelines: in memory and on links",
                        one_of(&C::fp32_gradients, "fp32", "bf16"))
          .otherwise("\"fp32\"")
          .pipelines_alone()
          .when(is_training_step),
      special<Scenario>("moments", words({"bf16", "fp32"}),
                        "of AdamW; by default bf16 by DeepSeek's operators, fp32 by Megatron's",
                        one_of(&C::fp32_moments, "fp32", "bf16"))
          .pipelines_alone()
          .when(is_training_step),
      of(&C::copies_moments, "copies_moments", flag(),
         "moments in BF16 are there in FP32 as well while the optimizer runs, as in TransformerEngine of 2025")
          .pipelines_alone()
          .when([](const Scenario& s) { return is_training_step(s) && !s.training.fp32_moments; }),
      of(&C::zero, "zero", whole(0, 3),
         "what replicas split: 0 nothing, 1 optimizer states, 2 gradients too, 3 parameters too")
          .pipelines_alone()
          .when(is_training_step),
      of(&C::overlap_gradients, "overlap_gradients", flag(),
         "a stage's gradients are reduced once they are complete; false: after the rank's last slot")
          .pipelines_alone()
          .when(is_training_step),
      of(&C::overlap_sends, "overlap_sends", flag(),
         "a rank's next slot need not wait for its sends; by default true, but of gpipe and 1f1b")
          .depends()
          .pipelines_alone()
          .when(is_training_step),
      of(&C::mtp, "mtp", flag(), "MTP modules are trained, too; by default where the model has them")
          .depends()
          .pipelines_alone()
          .when(is_training_step),
      of(&C::overlap_parameters, "overlap_parameters", flag(),
         "parameters are gathered at the beginning of a step, not behind the optimizer; by default true with zero 1 "
         "and overlap_gradients by Megatron's operators")
          .depends()
          .pipelines_alone()
          .when(by_megatron),
      special<Scenario>("offload", either(words({"none"}), some_of(all_names<OffloadedModules>())),
                        "by Megatron's operators: modules whose inputs wait in the host's memory",
                        [](const Scenario& s) { return names_of(s.training.offload); })
          .otherwise("\"none\"")
          .pipelines_alone()
          .when([](const Scenario& s) { return is_training_step(s) && s.training.offload.any(); }),
      of(&C::offload_optimizer, "offload_optimizer", flag(),
         "by Megatron's operators: the optimizer's states wait in the host's memory while passes run")
          .pipelines_alone()
          .when(by_megatron),
      of(&C::delay_weights, "delay_weight_gradients", flag(),
         "of overlap combined: gradients of weights no longer precede the transfers behind them")
          .otherwise("false")
          .pipelines_alone()
          .when([](const Scenario& s) { return is_training_step(s) && s.overlap == kCombined; }),
  };
  return kKeys;
}

const Table<SlotCosts>& slot_costs() {
  static const Type ms = number(1e-3, 1e6);
  static const Table<SlotCosts> kKeys = {
      key(&SlotCosts::f, "F", ms, "forward pass, ms").needed(),
      key(&SlotCosts::b, "B", ms, "full backward pass, W included, ms").needed(),
      key(&SlotCosts::w, "W", ms,
          "gradients of weights alone, at most B; needed by schedules that split the backward pass, ms")
          .depends()
          .unless_default(),
      key(&SlotCosts::f_and_b, "F&B", ms,
          "an overlapped pair, at least F and at least B; needed where passes overlap, ms")
          .depends()
          .unless_default(),
  };
  return kKeys;
}

namespace {

std::vector<std::string> schedules_or_auto() {
  std::vector<std::string> names = schedule_names();
  names.emplace_back(kAutoSchedule);
  return names;
}

Type one_of_definitions(const std::vector<std::string>& names) {
  return {
      fmt::format(R"("oneOf": [{{"$ref": "#/definitions/{}"}}])", fmt::join(names, R"("}, {"$ref": "#/definitions/)"))};
}

}  // namespace

const Table<Setup>& top() {
  using S = Setup;
  static const Type texts = {R"("type": "array", "items": {"type": "string"})"};
  static const Table<S> kKeys = {
      special<S>("schema", whole(1, 1), "version of the format of scenarios", [](const S&) { return 1; })
          .also_of_slots()
          .needed(),
      special<S>("model", text(), "a name of `moeline list models`, or the path of a config.json or of its folder",
                 [](const S& s) { return found_again(s.scenario, s.scenario.model, "model/zoo"); }),
      special<S>("hardware", text(), "a name of `moeline list hardware`, or the path of a profile",
                 [](const S& s) { return found_again(s.scenario, s.scenario.hardware, "hwprofiles"); }),
      special<S>("hardware_overrides", texts, "facts of the machine that are changed, each as nic_GBps=45",
                 [](const S& s) { return s.scenario.hardware_overrides; })
          .also_of_slots()
          .otherwise("[]")
          .resolved_as(texts, "facts of the machine that were changed, as nic_GBps=25"),
      key(&Scenario::kernels, "kernels", text(),
          "a kernel set of the machine (`moeline list hardware NAME`), or the name of a stack; by default the newest "
          "set that has the phase"),
      special<S>("schedule", words(schedules_or_auto()),
                 "what runs when (`moeline list schedules`); auto: the best of those that apply",
                 [](const S& s) { return s.scenario.schedule; })
          .also_of_slots()
          .needed()
          .resolved_as(words(schedule_names()), "what runs when"),
      mapping<S>("parallelism", parallelism().rows(), "How the model is split over ranks",
                 [](const S& s) { return parallelism().resolved(s.scenario.parallelism); })
          .also_of_slots()
          .needed(),
      special<S>("workload", one_of_definitions({"train", "prefill", "decode", "mixed", "serve"}),
                 "What a step consists of; `phase` decides which other keys there are",
                 [](const S& s) { return resolved_workload(s.scenario.workload); })
          .also_of_slots()
          .needed()
          .resolved_as(one_of_definitions({"train", "prefill", "decode", "mixed"}),
                       "What a step consists of; `phase` decides which other keys there are"),
      mapping<S>("comm", comm().rows(), "The all-to-all", [](const S& s) { return comm().resolved(s.scenario); })
          .otherwise("{}"),
      key(&Scenario::attention_backend, "attention_backend", words(words_of<AttentionBackend>()),
          "whose kernels run attention's core; by default the stack's habit")
          .depends()
          .when([](const S& s) { return s.scenario.phase() != WorkloadPhase::train; }),
      key(&Scenario::moe_backend, "moe_backend", words(words_of<MoeBackend>()),
          "whose kernels run experts that are one fused layer; by default the stack's habit")
          .depends()
          .when(runs_fused),
      key(&Scenario::shared_experts, "shared_experts", words(words_of<SharedExperts>()),
          "in_turn: before the routed ones; beside: on a stream of their own; by default the stack's habit")
          .depends()
          .when(serves_shared_experts),
      mapping<S>("precision", precision().rows(),
                 "In which number formats the model is stored and multiplied; by default the checkpoint's",
                 [](const S& s) { return precision().resolved(s.scenario.precision); })
          .otherwise("{}"),
      mapping<S>("routing", routing().rows(), "How much each expert has to do. A dense model has none of these keys",
                 [](const S& s) { return routing().resolved(s.scenario); })
          .otherwise("{}")
          .when([](const S& s) { return s.model.n_routed_experts > 0; }),
      mapping<S>("memory", memory().rows(), "How much of a GPU's memory serving, prefill and decode may fill",
                 [](const S& s) { return memory().resolved(s.scenario.memory); })
          .otherwise("{}")
          .when([](const S& s) { return s.scenario.phase() != WorkloadPhase::train; }),
      special<S>("layers", either(words({"all"}), whole(1, 5000)),
                 "all, or a number of MoE layers (of a dense model, of layers) that are simulated alone",
                 [](const S& s) { return s.scenario.whole_model ? Value("all") : Value(s.scenario.layers); })
          .otherwise("\"all\""),
      key(&Scenario::overlap, "overlap", text(),
          "the plan that belongs to the schedule (default); the path of another plan; none, of pipelines; combined, "
          "of 1f1b and interleaved-1f1b"),
      special<S>(
          "launch", either(words(words_of<Launch>()), some_of(all_names<GraphParts>())),
          "graph: no host; stream: the host launches kernel by kernel; none: kernels follow each other at once; a "
          "list, of training by Megatron's operators: parts of layers that run in CUDA graphs. By default graph in "
          "decode, else stream",
          [](const S& s) {
            const GraphParts& graphs = s.scenario.graphs;
            return graphs.any() ? Value(names_of(graphs)) : Value(word_of(s.scenario.launch));
          }),
      mapping<S>("training", training().rows(), "What training keeps, repeats and shares",
                 [](const S& s) { return training().resolved(s.scenario); })
          .otherwise("{}")
          .when([](const S& s) { return s.scenario.phase() == WorkloadPhase::train; }),
      special<S>("stages", either(text(), list_of({R"("type": "integer", "minimum": 0)"})),
                 "of pipelines: a list of the decoder layers of each stage, in training 0 for one of the embedding or "
                 "the loss alone; or of training Megatron's layout, as 'Et*3|(tt|)*29,m|L'; balanced by their cost "
                 "(default of training); even (default of prefill and decode)",
                 [](const S& s) {
                   const std::vector<int>& layers = s.scenario.stage_layers;
                   return layers.empty() ? Value("balanced") : Value(layers);
                 })
          .when([](const S& s) { return is_staged(s.scenario) || is_training_step(s.scenario); }),
      key(&Scenario::level, "level", words(words_of<Level>()),
          "of pipelines of training: every operator, or (phase) each kind of slot once")
          .when([](const S& s) { return is_training_step(s.scenario); }),
      key(&Scenario::ranks, "ranks", words(words_of<RankChoice>()),
          "which ranks of an expert-parallel group are simulated; folded: one stands for all; auto: all that differ")
          .as([](const S& s) { return std::string(s.every_rank ? "all" : "folded"); })
          .resolved_as(words({"all", "folded"}),
                       "whether all ranks of an expert-parallel group were simulated, or one stood for all"),
      key(&Scenario::jitter, "jitter", words(words_of<Jitter>()),
          "how kernels' times vary from one execution to the next"),
      key(&Scenario::clock, "clock", words(words_of<ClockChoice>()),
          "of the SMs: sustained, as the cap on power leaves it, or burst, the highest"),
      key(&Scenario::speed_spread, "speed_spread", number(0, 0.3),
          "standard deviation of the GPUs' speeds over their mean; by default the kernel set's")
          .depends(),
      key(&Scenario::seed, "seed", whole(0, 1 << 30), "of everything that is drawn: routing, ranks, jitter"),
      key(&Scenario::samples, "samples", whole(1, 10000),
          "number of draws, with the seeds from `seed` on; more than one gives medians and bands"),
      mapping<S>("slot_costs_ms", slot_costs().rows(),
                 "Of pipelines of training: lengths of the slots instead of operators; nothing else takes time then")
          .also_of_slots(),
  };
  return kKeys;
}

std::vector<Entry> resolved(const Setup& setup) { return top().resolved(setup); }

std::vector<Entry> resolved_pipeline(const Scenario& s) {
  std::vector<Entry> entries = {{"schema", 1},
                                {"schedule", s.schedule},
                                {"parallelism", parallelism().resolved(s.parallelism)},
                                {"workload", resolved_workload(s.workload)},
                                {"slot_costs_ms", slot_costs().resolved(*s.slot_costs)}};
  if (overlaps_passes(s) && s.kind().may_combine()) entries.push_back({"overlap", s.overlap});
  return entries;
}

}  // namespace moeline::keys
