#include "experiments/run/stack_choices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "moe/inference.hpp"
#include "moe/tensor_parallel.hpp"
#include "schedules/scenario/kernel_habits.hpp"
#include "schedules/scenario/read_scenario.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

std::string by_habit(const Setup& setup, const std::string& where) {
  return fmt::format("as {} runs {}", title_of(setup.kernels().stack), where);
}

std::string as_said(const char* key) { return fmt::format("as {} says", key); }

// "tp 8, ep 32 on gb200-nvl72".
std::string place(const Setup& setup) {
  const Parallelism& p = setup.scenario.parallelism;
  std::vector<std::string> parts;
  for (const auto& [name, ranks] : {std::pair("tp", p.tp), std::pair("ep", p.ep)}) {
    if (ranks > 1) parts.push_back(fmt::format("{} {}", name, ranks));
  }
  if (parts.empty()) parts.emplace_back("one GPU");
  return fmt::format("{} on {}", fmt::join(parts, ", "), setup.machine.name);
}

using Counts = bool (*)(const Operator&);
bool is_core(const Operator& op) { return row_of(op.family).kind == FamilyKind::attention; }
bool is_of_experts(const Operator& op) { return op.experts.role != ExpertRole::none; }

// us alone, of those kernels of a phase that count, in the first layer that has any.
double layer_us(const Setup& setup, const char* phase, Counts counts) {
  const InferenceWork work = setup.inference_work({0, setup.scenario.kind().micro_batches});
  const PriceConditions conditions{.sms = static_cast<int>(setup.machine.facts.sms)};
  for (const Block& block : blocks_of(setup.model, 0)) {
    if (!is_layer(block.kind)) continue;
    double us = 0;
    for (const Operator& op : inference_phase(phase, work, block)) {
      if (counts(op)) us += setup.prices->price(op, conditions)->solo_us;
    }
    if (us > 0) return us;
  }
  return 0;
}

std::shared_ptr<const HardwareProfile> profile_of(const Scenario& s) {
  return known_profile(s.hardware, s.hardware_overrides, s.file);
}

// What a family is run by, and what else could run it.
template <class Backend>
struct LibraryPlace {
  const char *what, *key, *phase;
  Counts counts;
  Backend taken;
  Backend own;  // the kernel set's
  std::vector<Backend> known;
  const std::vector<habits::KernelHabit<Backend>>& habits;
  std::function<Libraries(Backend)> libraries;

  [[nodiscard]] const habits::KernelHabit<Backend>* habit(const Setup& setup) const {
    const auto* row = habits::habit_of(setup, habits, known);
    return row != nullptr && row->backend == taken ? row : nullptr;
  }

  [[nodiscard]] std::vector<OtherKernels> others(const Setup& setup) const {
    std::vector<OtherKernels> all;
    for (const Backend backend : known) {
      if (backend == taken) continue;
      Setup other = setup;
      other.prices = prices_of(profile_of(setup.scenario), setup.kernels().name, "", libraries(backend));
      all.push_back({word_of(backend), layer_us(other, phase, counts)});
    }
    return all;
  }

  [[nodiscard]] StackChoice choice(const Setup& setup) const {
    StackChoice made{.what = what, .taken = title_of(taken), .why = as_said(key), .key = key};
    if (const auto* row = habit(setup)) {
      made.why = by_habit(setup, row->where);
      made.source = row->source;
    } else if (taken == Backend::usual) {
      made.why = fmt::format("for want of kernels of {} by any library", setup.machine.name);
    } else if (taken == own) {
      made.why = fmt::format("as {} has them", setup.kernels().fitted_name());
    }
    made.layer_us = layer_us(setup, phase, counts);
    made.others = others(setup);
    return made;
  }
};

StackChoice tokens_choice(const Setup& setup) {
  const CommMode mode = setup.scenario.comm.mode;
  const bool usual = mode == usual_mode(setup);
  return {.what = "tokens to experts",
          .taken = word_of(mode),
          .why = usual ? by_habit(setup, place(setup)) : as_said("comm.mode"),
          .key = "comm.mode"};
}

// ", padded to 3072 x 3072 of 2880 x 2880": columns of all ranks x hidden, where kernels read more than the weights.
std::string padding(const Setup& setup) {
  const ExpertPadding padded = habits::expert_padding(setup);
  const int columns = setup.model.moe_intermediate_size, ranks = setup.scenario.parallelism.moe_tp;
  const double own = columns_of_rank(columns, ranks, setup.model.expert_weights);
  const double width = padded.padded_width(own), hidden = padded.padded_hidden(setup.model.expert_hidden_size());
  if (width * ranks == columns && hidden == setup.model.expert_hidden_size()) return "";
  return fmt::format(", padded to {} x {} of {} x {}", width * ranks, hidden, columns,
                     setup.model.expert_hidden_size());
}

StackChoice fused_choice(const Setup& setup) {
  const std::string family = measured_experts(setup, ExpertLayout::fused);
  const auto profile = profile_of(setup.scenario);
  const LibraryPlace<MoeBackend> place{"experts",
                                       "moe_backend",
                                       "mlp",
                                       is_of_experts,
                                       setup.scenario.moe_backend,
                                       experts_library(profile->kernels(setup.kernels().name), family),
                                       experts_libraries(*profile, family),
                                       habits::expert_kernels(),
                                       [&](MoeBackend backend) {
                                         return Libraries{setup.scenario.attention_backend, backend};
                                       }};
  StackChoice choice = place.choice(setup);
  choice.taken += padding(setup);
  return choice;
}

// Of rows as an all-to-all leaves them.
StackChoice arrived_choice(const Setup& setup) {
  const CommMode mode = setup.scenario.comm.mode;
  const InferenceWork work = setup.inference_work({0, setup.scenario.kind().micro_batches});
  const bool fp8 = multiplied_in(setup.model.expert_weights) == Precision::fp8;
  const char* layout = work.masked() ? "masked" : "contiguous";
  return {
      .what = "experts",
      .taken = mode == CommMode::fused ? "MegaMoE" : fmt::format("{} {}", layout, fp8 ? "DeepGEMM" : "grouped GEMMs"),
      .why = by_habit(setup, fmt::format("{}'s rows, {}", word_of(mode), place(setup))),
      .key = "comm.mode",
      .layer_us = layer_us(setup, "mlp", is_of_experts)};
}

StackChoice attention_choice(const Setup& setup, const std::string& family) {
  const auto profile = profile_of(setup.scenario);
  return LibraryPlace<AttentionBackend>{"attention",
                                        "attention_backend",
                                        "attn",
                                        is_core,
                                        setup.scenario.attention_backend,
                                        attention_library(profile->kernels(setup.kernels().name), family),
                                        attention_libraries(*profile, family),
                                        habits::attention_kernels(),
                                        [&](AttentionBackend backend) {
                                          return Libraries{backend, setup.scenario.moe_backend};
                                        }}
      .choice(setup);
}

StackChoice all_reduce_choice(const Setup& setup) {
  constexpr double kMB = 1e6;
  StackChoice choice{
      .what = "all-reduce", .taken = "nccl", .why = as_said("comm.all_reduce"), .key = "comm.all_reduce"};
  if (setup.scenario.comm.all_reduce == AllReduce::stack) {
    choice.taken =
        fmt::format("its own up to {:.0f} MB, with the norm behind it", habits::largest_custom_all_reduce(setup) / kMB);
    choice.why = by_habit(setup, place(setup));
  } else if (!habits::has_own_all_reduce(setup)) {
    choice.why = fmt::format("as {} has it", setup.kernels().fitted_name());
  }
  return choice;
}

StackChoice indexer_choice(const Setup& setup) {
  const IndexerQueries taken = setup.scenario.comm.indexer;
  const bool usual = taken == habits::indexer_queries(setup);
  return {
      .what = "indexer",
      .taken = taken == IndexerQueries::split ? "each rank a part of a prompt's queries" : "all queries on each rank",
      .why = usual ? by_habit(setup, "prompts of so many tokens") : as_said("comm.indexer"),
      .key = "comm.indexer"};
}

StackChoice shared_choice(const Setup& setup) {
  const bool beside = setup.scenario.shared_experts == SharedExperts::beside;
  return {.what = "shared experts",
          .taken = beside ? "beside the routed ones" : "in turn",
          .why = beside == habits::runs_shared_beside(setup) ? by_habit(setup, "them here") : as_said("shared_experts"),
          .key = "shared_experts"};
}

StackChoice inputs_choice(const Setup& setup) {
  const Precision rows = setup.mxfp4_rows();
  return {.what = "experts' inputs",
          .taken = name_of(rows),
          .why = rows == habits::mxfp4_rows(setup) ? by_habit(setup, "MXFP4") : as_said("precision.expert_inputs"),
          .key = "precision.expert_inputs"};
}

bool multiplies_mxfp4(const Setup& setup) {
  return setup.model.expert_weights == Precision::mxfp4 && runs_fused(setup) && setup.machine.facts.fp4_tflops > 0;
}

}  // namespace

std::vector<StackChoice> stack_choices(const Setup& setup) {
  const Scenario& s = setup.scenario;
  std::vector<StackChoice> choices;
  if (setup.kernels().stack == Stack::none) return choices;
  const bool serves = s.phase() != WorkloadPhase::train, has_experts = setup.model.n_routed_experts > 0;
  if (has_experts && s.comm.mode != CommMode::none) choices.push_back(tokens_choice(setup));
  if (!serves) return choices;
  if (has_experts) choices.push_back(runs_fused(setup) ? fused_choice(setup) : arrived_choice(setup));
  if (multiplies_mxfp4(setup)) choices.push_back(inputs_choice(setup));
  if (const std::string family = attention_family(setup); !family.empty()) {
    choices.push_back(attention_choice(setup, family));
  }
  if (s.parallelism.tp > 1) choices.push_back(all_reduce_choice(setup));
  if (s.comm.indexer != IndexerQueries::none) choices.push_back(indexer_choice(setup));
  if (serves_shared_experts(setup) && runs_fused(setup)) choices.push_back(shared_choice(setup));
  return choices;
}

std::string line_of(const StackChoice& choice) {
  std::string times;
  if (choice.layer_us > 0) times = fmt::format("; {:.1f} us a layer", choice.layer_us);
  for (const OtherKernels& other : choice.others) times += fmt::format(", {} {:.1f}", other.name, other.layer_us);
  return fmt::format("{}: {}, {} ({}{})", choice.what, choice.taken, choice.why, choice.key, times);
}

}  // namespace moeline
