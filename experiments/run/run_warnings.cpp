#include "experiments/run/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/carried_over.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

double memory_gib_with(const Run& run, const TrainingChoices& choices) {
  Setup setup = run.setup;
  setup.scenario.training = choices;
  StepReport report = *run.step();
  report.slots = run.phases;
  add_memory(setup, report);
  return gib(report.fullest().memory.peak.total());
}

void recompute_all(TrainingChoices& c) {
  c.recompute = Recompute::full;
  c.narrow_activations = false;
}
void split_optimizer(TrainingChoices& c) { c.zero = std::max(c.zero, 1); }
void split_everything(TrainingChoices& c) { c.zero = 3; }
void narrow_moments(TrainingChoices& c) { c.fp32_moments = false; }
void narrow_gradients(TrainingChoices& c) { c.fp32_gradients = false; }

struct Remedy {
  const char* key;
  void (*apply)(TrainingChoices&);
};
// In the order in which they cost: time first, then precision. Everything is split by Megatron, pass by pass.
constexpr Remedy kRemedies[] = {{"zero=1", split_optimizer},
                                {"recompute=full", recompute_all},
                                {"zero=3", split_everything},
                                {"moments=bf16", narrow_moments},
                                {"gradients=bf16", narrow_gradients}};

bool may_split_everything(const Run& run) {
  const Scenario& s = run.setup.scenario;
  return s.training.by_megatron() && s.training.overlap_gradients && !overlaps_passes(s);
}

// "training.recompute=full makes it fit with 10 % to spare: 61.2 GiB", or that none of the choices of `training` does.
// The timeline stays that of the run: what is computed again would take longer. REQUIRES: a whole step of training.
std::string what_makes_it_fit(const Run& run) {
  const double usable_gib = (1 - kMemoryReserve) * run.setup.machine.facts.memory_gib;
  TrainingChoices choices = run.setup.scenario.training;
  std::vector<std::string> made;
  double best = memory_gib_with(run, choices);
  for (const Remedy& remedy : kRemedies) {
    if (remedy.apply == split_everything && !may_split_everything(run)) continue;
    remedy.apply(choices);
    const double memory = memory_gib_with(run, choices);
    if (memory >= best) continue;  // it was so already
    best = memory;
    made.push_back(fmt::format("training.{}", remedy.key));
    if (best <= usable_gib) {
      return fmt::format("{} {} it fit with {:.0f} % to spare: {:.1f} GiB", fmt::join(made, ", "),
                         made.size() == 1 ? "makes" : "make", 100 * kMemoryReserve, best);
    }
  }
  const std::string tried = made.empty() ? "" : fmt::format(", even with {} ({:.1f} GiB)", fmt::join(made, ", "), best);
  return fmt::format("tp, pp or ep must be larger, or the micro-batch smaller{}", tried);
}

// Mean of the given rows, relative to balanced routing of the same tokens; 1 where none are given.
double rows_over_balanced(const Setup& setup) {
  const Routing& routing = setup.scenario.routing;
  if (routing.distribution != Distribution::given) return 1;
  const LayerWork work = setup.layer_work(true, 0);
  const double balanced = balanced_load(setup.model, work.own_tokens(), work.ep, setup.spread).rows;
  double sum = 0;
  for (const auto& rows : {routing.forward_rows, routing.backward_rows})
    sum += std::accumulate(rows.begin(), rows.end(), 0.0);
  return sum / (2.0 * setup.scenario.layers) / balanced;
}

// The families that matter most, each with its share of all solo time and the reason.
std::string extrapolation_warning(const Run& run) {
  constexpr std::size_t kNamed = 4;
  std::vector<ProvenanceUse> uses;
  for (const ProvenanceUse& use : run.program.provenance) {
    if (use.provenance == Provenance::extrapolated) uses.push_back(use);
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const ProvenanceUse& a, const ProvenanceUse& b) { return a.solo_us > b.solo_us; });
  std::vector<std::string> largest;
  for (std::size_t i = 0; i < std::min(kNamed, uses.size()); ++i) {
    largest.push_back(fmt::format("{} {:.1f} ({})", name_of(uses[i].family), 100 * uses[i].solo_us / solo_us(run),
                                  uses[i].note.text()));
  }
  return fmt::format("{:.1f} % of the solo time is extrapolated: {}{} (`list hardware` prints what was measured)",
                     100 * extrapolated_share(run), fmt::join(largest, "; "), uses.size() > kNamed ? "; ..." : "");
}

// Of the fullest GPU, or one of a stage that is over.
const Memory& memory_over(const InferenceResult& inference, const Setup& setup) {
  for (const StageResult& stage : inference.stages) {
    if (!fits(setup, stage.memory)) return stage.memory;
  }
  return inference.memory;
}

// Less is left of the GPU than what is not counted there has been seen to take.
void add_filled_warning(const Run& run, std::vector<std::string>& warnings) {
  constexpr double kMuch = 0.95;
  if (!knows_memory(run) || filled_share(run) <= kMuch) return;
  const double gpu_gib = run.setup.machine.facts.memory_gib;
  std::string text = fmt::format("{:.1f} % of the GPU's {:.0f} GiB are filled, ", 100 * filled_share(run), gpu_gib);
  text += run.inference() != nullptr
              ? "as memory.fraction says: CUDA's graphs, NCCL and fragmentation have to do with the rest"
              : "and CUDA, NCCL and fragmentation are not counted; " + what_makes_it_fit(run);
  warnings.push_back(std::move(text));
}

// That a serving stack has to be told.
void add_batch_warning(const Run& run, std::vector<std::string>& warnings) {
  const DecodeWorkload* decode = run.inference() != nullptr ? decode_of(run.setup.scenario.workload) : nullptr;
  if (decode == nullptr) return;
  const double tokens = cache_room(run.setup, run.inference()->memory).tokens();
  const int most = habits::most_running(run.setup, tokens);
  if (decode->batch_size <= most) return;
  warnings.push_back(fmt::format("batch_size {} is more than the {} requests that {} runs at a time unless it is told",
                                 decode->batch_size, most, name_of(run.setup.scenario.memory.stack)));
}

// What is there and does not enter, or enters otherwise than a reader would think.
void add_scope_warnings(const Run& run, std::vector<std::string>& warnings) {
  const Scenario& s = run.setup.scenario;
  const auto* train = std::get_if<TrainWorkload>(&s.workload);
  const DecodeWorkload* decode = decode_of(s.workload);
  if (is_chunked(run) && !is_staged(s)) {
    warnings.emplace_back(
        "the prompt takes several steps: this is the first and shortest; ttft_ms and tokens_per_s_per_gpu are of them "
        "all");
  }
  if (run.step() == nullptr && train != nullptr && (s.parallelism.pp > 1 || train->global_batch_size > 0)) {
    warnings.emplace_back(
        "pp and global_batch_size do not enter: this is the work of one stage, without pipeline communication, bubbles "
        "and optimizer");
  }
  if (decode != nullptr && decode->query_len > 1 && run.setup.drafted_tokens() == 0) {
    warnings.emplace_back(
        "query_len above 1, and the model has no MTP module: drafting costs nothing here (workload.draft_layers gives "
        "it a draft)");
  }
  if (s.routing.redundant_experts > 0 && !s.routing.has_loads()) {
    warnings.emplace_back(
        "redundant experts gain nothing while ranks get equally much: they only take memory and weights");
  }
  if (s.layers > run.setup.model.main_layers()) {
    warnings.push_back(fmt::format("{} layers simulated; the model has {} {}layers", s.layers,
                                   run.setup.model.main_layers(),
                                   run.setup.model.moe_layers() == run.setup.model.main_layers() ? "MoE " : ""));
  }
}

// A skew that nobody measured of this model.
void add_routing_warning(const Run& run, std::vector<std::string>& warnings) {
  const Routing& routing = run.setup.scenario.routing;
  if (routing.skews.empty() || !routing.experts_hit.empty() || routing.alpha != kUsualSkew) return;
  warnings.push_back(
      fmt::format("routing is assumed to be as skewed as in others' servers (alpha {}): the step's tokens reach {:.1f} "
                  "of {} experts a layer, where {:.1f} if all were chosen alike (routing.experts_hit, "
                  "routing.distribution)",
                  kUsualSkew, experts_hit(run), run.setup.model.n_routed_experts, experts_hit(run, 0)));
}

// The first of them, and those around `chosen`. REQUIRES: it is one of them.
std::string batches_around(const std::vector<int>& sizes, int chosen) {
  constexpr std::ptrdiff_t kFirst = 3, kBefore = 2;
  const auto at = std::lower_bound(sizes.begin(), sizes.end(), chosen);
  const auto from = std::max(sizes.begin(), at - kBefore);
  const auto until = std::min(sizes.end(), at + 2);
  std::string text;
  if (from - sizes.begin() > kFirst)
    text = fmt::format("{}, ..., ", fmt::join(sizes.begin(), sizes.begin() + kFirst, ", "));
  return text + fmt::format("{}{}", fmt::join(text.empty() ? sizes.begin() : from, until, ", "),
                            until == sizes.end() ? "" : ", ...");
}

// Rows that no request has, and why they are computed.
void add_graph_warning(const Run& run, std::vector<std::string>& warnings) {
  const Setup& setup = run.setup;
  const DecodeWorkload* decode = decode_of(setup.scenario.workload);
  if (decode == nullptr || decode->graph_batch == 0) return;
  const int most = setup.most_requests();
  if (decode->graph_batch == decode->batch_size && most == decode->batch_size) return;
  const char* of_rank = setup.variation.requests.empty() ? "" : " of the fullest rank";
  const std::string times = decode->query_len > 1 ? fmt::format(" x {}", decode->query_len) : "";
  std::string reason = "workload.graph_batch says so";
  if (decode->graph_batch == habits::graph_batch(setup, most)) {
    reason = fmt::format("{} captures {}", title_of(setup.kernels().stack),
                         batches_around(habits::captured_batches(setup), decode->graph_batch / passes(setup.scenario)));
    if (is_staged(setup.scenario)) reason += fmt::format(" for each of {} micro-batches", passes(setup.scenario));
  }
  warnings.push_back(fmt::format("decode steps run {}{} rows for {} requests{}: {}", decode->graph_batch, times, most,
                                 of_rank, reason));
}

void add_price_warnings(const Run& run, std::vector<std::string>& warnings) {
  for (const ProvenanceUse& use : run.program.provenance) {
    if (use.provenance == Provenance::roofline) {
      warnings.push_back(
          fmt::format("{}: no measurement of this family; priced at the roofline, {:.1f} % of the solo time",
                      name_of(use.family), 100 * share_of_solo(run, use.solo_us)));
    }
  }
  if (const auto carried = carried_over(run)) warnings.push_back(carried_over_warning(*carried));
  if (extrapolated_share(run) > 0) warnings.push_back(extrapolation_warning(run));
  for (const char* group : {"launch", "jitter"}) {
    if (!run.setup.kernels().knows(group)) {
      warnings.push_back(fmt::format("{}: not in the kernel set, nor in one that it borrows from; taken as 0", group));
    }
  }
}

void add_power_warning(const Run& run, std::vector<std::string>& warnings) {
  constexpr double kMet = 1.02;
  const bool capped = run.setup.scenario.clock == ClockChoice::sustained && clock_matters(run.setup);
  if (!capped || run.is_pipeline() || is_staged(run.setup.scenario)) return;
  const double cap_w = run.setup.machine.facts.power_cap_w;
  if (const double drawn_w = power_w(run); drawn_w > kMet * cap_w) {
    warnings.push_back(fmt::format("power_cap_w, {:.0f} W, is not met: {:.0f} W even at {:.0f} MHz", cap_w, drawn_w,
                                   clock_mhz(run.setup)));
  }
}

}  // namespace

std::string what_is_over(const Run& run) {
  if (run.inference() != nullptr) return what_is_over(run.setup, memory_over(*run.inference(), run.setup));
  return fmt::format("{:.1f} GiB per GPU ({}), and the GPU has {:.0f}; {}", gib(memory_bytes(run)),
                     breakdown(memory_parts(run)), run.setup.machine.facts.memory_gib, what_makes_it_fit(run));
}

std::vector<std::string> warnings_of(const Run& run) {
  std::vector<std::string> warnings;
  if (run.has_given_slots()) {
    const std::vector<std::string>& keys = run.setup.scenario.without_use;
    if (!keys.empty())
      warnings.push_back(fmt::format("with slot_costs_ms, these do not enter: {}", fmt::join(keys, ", ")));
    return warnings;
  }
  if (!run.setup.unused_learnt_set.empty()) {
    warnings.push_back(fmt::format("{} was learnt from a step of another phase: {}, which it multiplies, counts here",
                                   run.setup.unused_learnt_set, run.setup.kernels().name));
  }
  add_routing_warning(run, warnings);
  add_price_warnings(run, warnings);
  add_power_warning(run, warnings);
  if (!fits_memory(run)) warnings.push_back("does not fit: " + what_is_over(run));
  if (fits_memory(run)) {
    add_filled_warning(run, warnings);
    add_batch_warning(run, warnings);
  }
  add_scope_warnings(run, warnings);
  add_graph_warning(run, warnings);
  if (const double share = rows_over_balanced(run.setup); share < 0.7 || share > 1.4) {
    warnings.push_back(fmt::format("routing.rows are {:.2f} of what this many tokens give when balanced", share));
  }
  return warnings;
}

}  // namespace moeline
