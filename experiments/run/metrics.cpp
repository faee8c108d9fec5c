#include "experiments/run/metrics.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/sustained_clock.hpp"

namespace moeline {
namespace {

constexpr Has kNever = Has::never;
constexpr Has kSometimes = Has::sometimes;
constexpr Has kAlways = Has::always;

bool holds_always(const Run& /*run*/) { return true; }
bool has_kernels(const Run& run) { return !run.has_given_slots(); }
bool has_layers(const Run& run) { return !run.is_pipeline(); }
bool has_one_stage(const Run& run) { return has_layers(run) && !is_staged(run.setup.scenario); }
bool has_clock(const Run& run) { return has_kernels(run) && clock_matters(run.setup); }

constexpr RunCondition kOfAll = {holds_always, {kAlways, kAlways, kAlways}};
constexpr RunCondition kOfAllButJsonOfSlots = {holds_always, {kAlways, kAlways, kNever}};
constexpr RunCondition kOfKernels = {has_kernels, {kAlways, kAlways, kNever}};
constexpr RunCondition kOfOperators = {
    [](const Run& r) { return has_kernels(r) && r.setup.scenario.level == Level::by_operator; },
    {kAlways, kSometimes, kNever}};
constexpr RunCondition kOfLayers = {has_layers, {kAlways, kNever, kNever}};
constexpr RunCondition kOfOneStage = {has_one_stage, {kSometimes, kNever, kNever}};
constexpr RunCondition kOfMemory = {knows_memory, {kSometimes, kAlways, kNever}};
constexpr RunCondition kOfInference = {[](const Run& r) { return r.inference() != nullptr; },
                                       {kSometimes, kNever, kNever}};
constexpr RunCondition kOfTrainingStep = {[](const Run& r) { return r.step() != nullptr; }, {kNever, kAlways, kNever}};
constexpr RunCondition kOfWholeTraining = {[](const Run& r) { return r.step() != nullptr && is_whole_step(r); },
                                           {kNever, kSometimes, kNever}};
constexpr RunCondition kOfPipeline = {[](const Run& r) { return r.is_pipeline(); }, {kNever, kAlways, kNever}};
constexpr RunCondition kOfWholeStep = {is_whole_step, {kSometimes, kSometimes, kNever}};
constexpr RunCondition kOfDecode = {[](const Run& r) { return is_whole_step(r) && decodes(r); },
                                    {kSometimes, kNever, kNever}};
constexpr RunCondition kOfPrefill = {[](const Run& r) { return is_whole_step(r) && prefills(r); },
                                     {kSometimes, kNever, kNever}};
constexpr RunCondition kOfClock = {has_clock, {kSometimes, kSometimes, kNever}};
constexpr RunCondition kOfPower = {[](const Run& r) { return has_one_stage(r) && has_clock(r); },
                                   {kSometimes, kNever, kNever}};
constexpr RunCondition kOfChance = {has_chance_of_experts, {kSometimes, kNever, kNever}};
constexpr RunCondition kOfLoads = {has_imbalance, {kSometimes, kNever, kNever}};

constexpr std::array<bool, 3> kLayersAlone = {true, false, false};
constexpr std::array<bool, 3> kTrainingAlone = {false, true, false};
constexpr std::array<bool, 3> kSlotsAlone = {false, false, true};
constexpr std::array<bool, 3> kButSlots = {true, true, false};
constexpr bool kOfRunsAlone = false;

constexpr const char* kPartOfSolo = "fraction of solo time";

double ranks_of(const Run& run) { return static_cast<double>(run.program.ranks); }

double in_ms(Time time) { return to_us(time) / 1e3; }

template <Time StepParts::*kPart>
double mean_ms(const Run& run) {
  return in_ms(run.step()->mean.*kPart);
}

template <Time Metrics::*kTime>
double whole_us(const Run& run) {
  return to_us(run.metrics.*kTime);
}

template <Time Metrics::*kTime>
double of_layer_us(const Run& run) {
  return us_of_layer(run, kTime);
}

// The order is that of the columns of a sweep. Busy and overlapped time is neither good nor bad: what of it is exposed
// is.
// clang-format off
constexpr Metric kMetrics[] = {
    {"step_ms", "ms", Better::lower, 0, 6, &kOfAll, [](const Run& r) { return in_ms(r.metrics.span); },
     "first kernel's start to last kernel's end; of a prompt that takes several steps, of the first",
     {"step, ms", 3}},
    {"layer_us", "us", Better::lower, 0, 3, &kOfLayers, layer_us,
     "steady-state period of one MoE layer with all its micro-batches; in training, of one forward and one backward "
     "layer, or where layers differ step / layers",
     {"layer, us", 1, 1, kLayersAlone}},
    {"layer_compute_busy_us", "us", Better::neither, 6, 3, &kOfLayers, of_layer_us<&Metrics::compute_busy>,
     "part of layer_us in which any kernel computes", {"  compute busy, us", 1, 1, kLayersAlone}},
    {"layer_comm_busy_us", "us", Better::neither, 6, 3, &kOfLayers, of_layer_us<&Metrics::comm_busy>,
     "part of layer_us in which any kernel communicates", {"  communication busy, us", 1, 1, kLayersAlone}},
    {"layer_exposed_comm_us", "us", Better::lower, 6, 3, &kOfLayers, of_layer_us<&Metrics::exposed_comm>,
     "part of layer_us in which communication runs and no compute does",
     {"  exposed communication, us", 1, 1, kLayersAlone}},
    {"layer_sm_use", "fraction of SMs", Better::neither, 6, kNotInJson, &kOfLayers,
     [](const Run& r) { return r.steady().metrics.sm_use; }, "sm_use of layers in steady state",
     {"  SM use, %", 1, 100, kLayersAlone}, kOfRunsAlone},
    {"tokens_per_s_per_gpu", "tokens/s", Better::higher, 3, 3, &kOfWholeStep, tokens_per_s,
     "tokens of one GPU: in decode those produced, in prefill those computed, cached ones not counted, in mixed steps "
     "both, in training those of the batch",
     {"tokens/s per GPU", 0}},
    {"tokens_per_s_per_user", "tokens/s", Better::higher, 3, kNotInJson, &kOfDecode, nullptr, "1000 / tpot_ms"},
    {"tpot_ms", "ms", Better::lower, 3, 3, &kOfDecode, tpot_ms,
     "time per output token: the step over the tokens a request gets from it, 1 + a + a^2 + ... for query_len tokens, "
     "a = mtp_acceptance",
     {"TPOT, ms", 2}},
    {"ttft_ms", "ms", Better::lower, 3, 3, &kOfPrefill, [](const Run& r) { return r.inference()->ttft_ms; },
     "time to the first token: sum of the steps that one prompt takes, each with as many tokens as a step has, the "
     "last with the rest; of a mixed step, which has the keys that a prompt's chunks see on average, so many times the "
     "step",
     {"TTFT, ms", 1}},
    {"cost_per_million_tokens", "USD", Better::lower, 3, kNotInJson, &kOfDecode, nullptr,
     "what 10^6 tokens of answers cost, prompts included"},
    {"mfu", kPartOfPeak, Better::higher, 5, 5, &kOfKernels, mfu,
     "FLOPs of matrix products and causal attention, recomputation left out, padded expert rows counted, over the BF16 "
     "peak (of the FP8 peak it is half); of a whole step of training flops_per_token, over the peak of all GPUs",
     {"MFU of BF16 peak, %", 1, 100}},
    {"compute_busy_us", "us", Better::neither, 5, 3, &kOfAllButJsonOfSlots, whole_us<&Metrics::compute_busy>,
     "time in which any kernel computes"},
    {"comm_busy_us", "us", Better::neither, 5, 3, &kOfAllButJsonOfSlots, whole_us<&Metrics::comm_busy>,
     "time in which any kernel communicates: dispatch, combine and their barriers, in whole steps of training also "
     "sends and collectives"},
    {"exposed_comm_us", "us", Better::lower, 5, 3, &kOfAllButJsonOfSlots, whole_us<&Metrics::exposed_comm>,
     "time in which communication runs and no compute does; launch gaps of compute under a transfer count",
     {"exposed communication, ms", 1, 1e-3, kTrainingAlone}},
    {"barrier_us", "us", Better::lower, 6, 3, &kOfOperators, barrier_us,
     "time in barriers before transfers, mean of the ranks"},
    {"compute_waits_us", "us", Better::lower, 6, 3, &kOfOneStage, compute_waits_us,
     "time in which the compute stream of rank 0 waits for communication"},
    {"overlap_fraction", "fraction of communication", Better::higher, 5, 5, &kOfAllButJsonOfSlots,
     [](const Run& r) { return r.metrics.overlap_fraction(); },
     "communication that compute hides: comm_busy_us without exposed_comm_us, over comm_busy_us",
     {"overlap, %", 1, 100, kButSlots}},
    {"bubble_fraction", "fraction of step", Better::lower, 5, 5, &kOfAll, bubble_fraction,
     "share of the step in which no kernel runs; of a whole pipeline, in which a rank runs no slot, mean of the ranks",
     {"bubble, mean of ranks, %", 2, 100, kSlotsAlone}},
    {"sm_use", "fraction of SMs", Better::neither, 5, 5, &kOfAllButJsonOfSlots,
     [](const Run& r) { return r.metrics.sm_use; },
     "SMs held by persistent kernels or worked on by others, over all SMs and the span", {}, kOfRunsAlone},
    {"bubble_ms", "ms", Better::lower, 2, 6, &kOfPipeline, bubble_ms,
     "time in which a rank has no slot to run, mean of the ranks", {"bubble, ms", 1, 1, kTrainingAlone}},
    {"forward_ms", "ms", Better::lower, 1, 6, &kOfTrainingStep, mean_ms<&StepParts::forward>,
     "time in slots F, from first to last kernel, waits inside included, mean of the ranks",
     {"F alone, ms", 1, 1, kTrainingAlone}},
    {"backward_ms", "ms", Better::lower, 1, 6, &kOfTrainingStep, mean_ms<&StepParts::backward>,
     "time in slots B, with and without W, mean of the ranks", {"B alone, ms", 1, 1, kTrainingAlone}},
    {"weight_ms", "ms", Better::lower, 1, 6, &kOfTrainingStep, mean_ms<&StepParts::weight>,
     "time in slots W, mean of the ranks", {"W alone, ms", 1, 1, kTrainingAlone}},
    {"overlapped_ms", "ms", Better::neither, 1, 6, &kOfTrainingStep, mean_ms<&StepParts::overlapped>,
     "time in slots F&B, mean of the ranks", {"F&B, ms", 1, 1, kTrainingAlone}},
    {"optimizer_ms", "ms", Better::lower, 2, 6, &kOfTrainingStep, mean_ms<&StepParts::optimizer>,
     "time from the last slot of any rank: gradients that are left, optimizer, all-gather",
     {"gradients and optimizer, ms", 1, 1, kTrainingAlone}},
    {"mfu_non_causal", kPartOfPeak, Better::higher, 4, 5, &kOfWholeTraining, mfu_non_causal,
     "mfu with masked keys counted", {"MFU, non-causal, %", 1, 100}},
    {"gpu_hours_per_trillion_tokens", "GPU-hours", Better::lower, 3, 3, &kOfWholeTraining,
     gpu_hours_per_trillion_tokens, "what 10^12 tokens take", {"GPU-hours per 10^12 tokens", 0}},
    {"flops_per_token", "FLOP", Better::neither, 3, 0, &kOfWholeTraining,
     [](const Run& r) { return flops_per_token(r, true); },
     "what a token of the batch needs: 3 x forward, causal attention, without MTP and recomputation (`moeline model`)",
     {"GFLOP per token", 1, 1e-9}, kOfRunsAlone},
    {"flops_per_token_non_causal", "FLOP", Better::neither, 3, 0, &kOfWholeTraining,
     [](const Run& r) { return flops_per_token(r, false); }, "flops_per_token with masked keys counted",
     {"GFLOP per token, non-causal", 1, 1e-9}, kOfRunsAlone},
    {"memory_gib", "GiB", Better::lower, 8, 3, &kOfMemory, [](const Run& r) { return gib(memory_bytes(r)); },
     "memory of one GPU: in inference weights, KV cache, activations, communication buffers, without CUDA's context, "
     "graphs and fragmentation; in training of the fullest rank at its fullest, weights, gradients, optimizer, saved "
     "activations, temporaries, buffers"},
    {"fits_memory", "1: yes", Better::neither, 8, kNotInJson, &kOfMemory,
     [](const Run& r) { return fits_memory(r) ? 1.0 : 0.0; },
     "whether the GPU holds that, in inference as its stack fills it (memory.fraction); not known of a chunk of training "
     "and of given slots"},
    {"weights_gib", "GiB", Better::lower, 8, kNotInJson, &kOfInference,
     [](const Run& r) { return gib(r.inference()->memory.weights); }, "weights of one GPU, a draft model's too"},
    {"cache_room_gib", "GiB", Better::higher, 8, kNotInJson, &kOfInference,
     [](const Run& r) { return std::max(0.0, gib(room_for_caches(r.setup, r.inference()->memory))); },
     "memory of one GPU that caches may have beside all else"},
    {"kv_tokens_per_gpu", "tokens", Better::higher, 8, kNotInJson, &kOfInference,
     [](const Run& r) { return cache_room(r.setup, r.inference()->memory).tokens(); },
     "tokens that the cache of one GPU then holds, of requests as long as the scenario's"},
    {"clock_mhz", "MHz", Better::higher, 7, 3, &kOfClock, [](const Run& r) { return clock_mhz(r.setup); },
     "mean clock of the SMs under the cap on power, where kernels were timed on rested GPUs and the machine's power is "
     "known"},
    {"power_w", "W", Better::lower, 7, 3, &kOfPower, power_w, "mean power of the GPU under its cap"},
    {"imbalance", "max / mean", Better::lower, 6, 4, &kOfLoads, imbalance,
     "token-expert pairs of the busiest rank over the mean, on average over the layers",
     {"busiest rank over mean rows", 3, 1, kLayersAlone}},
    {"experts_hit", "experts", Better::neither, 6, 3, &kOfChance, [](const Run& r) { return experts_hit(r); },
     "distinct experts of a MoE layer, copies counted apart, that the step's tokens reach together, expected",
     {"experts reached a layer", 1, 1, kLayersAlone}},
    {"ranks", "ranks", Better::neither, 6, 0, &kOfLayers, ranks_of,
     "how many were simulated", {}, kOfRunsAlone},
    {"extrapolated_share", kPartOfSolo, Better::lower, 8, 5, &kOfKernels, extrapolated_share,
     "of the kernels' time alone, that of curves which were not measured where they lie", {"extrapolated, %", 1, 100}},
    {"outside_share", kPartOfSolo, Better::lower, 8, 5, &kOfKernels, outside_share,
     "of extrapolated_share, that of kernels outside of what was measured of their family",
     {"  outside what was measured, %", 1, 100}},
    {"carried_over_share", kPartOfSolo, Better::lower, 8, 5, &kOfKernels, carried_over_share,
     "of extrapolated_share, that by measurements of another machine", {"  by another machine's, %", 1, 100}},
    {"roofline_share", kPartOfSolo, Better::lower, 8, 5, &kOfKernels, roofline_share,
     "of the kernels' time alone, that of families which nobody measured, by the least that the machine's peaks allow; "
     "it counts as no extrapolation",
     {"roofline (not measured), %", 1, 100}},
    // Steps of training have them behind the shares.
    {"ranks", "ranks", Better::neither, 8, 0, &kOfTrainingStep, ranks_of,
     "how many were simulated", {}, kOfRunsAlone},
    {"tasks", "tasks", Better::neither, 8, 0, &kOfAll,
     [](const Run& r) { return static_cast<double>(r.program.graph.size()); }, "those of the graph", {}, kOfRunsAlone},
    {"simulate_ms", "ms", Better::lower, 8, 3, &kOfAll, [](const Run& r) { return r.simulate_ms; },
     "what the simulation took", {}, kOfRunsAlone},
};
// clang-format on

template <class Chosen>
std::vector<const Metric*> chosen(Chosen is_chosen) {
  std::vector<const Metric*> found;
  for (const Metric& metric : kMetrics) {
    if (metric.value != nullptr && is_chosen(metric)) found.push_back(&metric);
  }
  return found;
}

std::vector<const Metric*> by_groups() {
  std::vector<const Metric*> metrics = chosen([](const Metric& m) { return m.decimals != kNotInJson; });
  std::stable_sort(metrics.begin(), metrics.end(),
                   [](const Metric* a, const Metric* b) { return a->json_group < b->json_group; });
  return metrics;
}

}  // namespace

RunKind kind_of(const Run& run) {
  if (run.step() != nullptr) return RunKind::training_step;
  return run.has_given_slots() ? RunKind::given_slots : RunKind::layers;
}

std::span<const Metric> all_metrics() { return kMetrics; }

std::span<const Metric* const> run_metrics() {
  static const std::vector<const Metric*> metrics = chosen([](const Metric& m) { return m.of_studies; });
  return metrics;
}

std::span<const Metric* const> json_metrics() {
  static const std::vector<const Metric*> metrics = by_groups();
  return metrics;
}

std::span<const Metric, kKnownShares> known_shares() {
  const auto is_share = [](const Metric& metric) { return metric.unit == std::string_view(kPartOfSolo); };
  MOELINE_CHECK(std::count_if(std::begin(kMetrics), std::end(kMetrics), is_share) == kKnownShares, kPartOfSolo);
  return std::span<const Metric, kKnownShares>(std::find_if(std::begin(kMetrics), std::end(kMetrics), is_share),
                                               kKnownShares);
}

const Metric* metric_named(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kMetrics), std::end(kMetrics), [&](const Metric& m) { return name == m.name; });
  return found == std::end(kMetrics) ? nullptr : found;
}

}  // namespace moeline
