#include "experiments/plan/colocated.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/plan/slots.hpp"

namespace moeline {
namespace {

Memory together(const Memory& decode, const Memory& prefill) {
  Memory both = decode;
  both.kv_cache += prefill.kv_cache;
  both.activations = std::max(decode.activations, prefill.activations);
  both.communication += prefill.communication;
  return both;
}

class Colocated {
 public:
  Colocated(const Plan& plan, const Points& points) : plan_(plan), points_(points) {}

  // Time left for decode, of each GPU.
  [[nodiscard]] double left_for_decode(const StepPoint& prefill, double gpus) const {
    return 1 - plan_.traffic.new_tokens_per_s() / (prefill.tokens_per_s * gpus);
  }

  // Within the limit on TPOT, with slots enough.
  [[nodiscard]] bool decodes(const DecodeOption& decode, const StepPoint& prefill, int units) const {
    const double gpus = 1.0 * units * decode.choice.ep;
    const double left = left_for_decode(prefill, gpus);
    if (left <= 0 || decode.tpot_ms / left > plan_.limits.tpot_ms) return false;
    const double waits = share_that_waits(gpus * decode.choice.batch_size, decode.busy_slots / left);
    return waits <= 1 - plan_.limits.percentile / 100;
  }

  [[nodiscard]] double ttft(const DecodeOption& decode, const PrefillOption& prefill, const StepTimes& times,
                            int units) const {
    const PrefillQueue queue{.requests_per_s = plan_.traffic.requests_per_s / units,
                             .gpus = decode.choice.ep,
                             .tokens_per_step = 1.0 * prefill.choice.tokens,
                             .step = times,
                             .between_ms = decode.step.step_ms};
    const Lengths new_tokens = plan_.traffic.input.scaled(1 - plan_.traffic.cache_hit_share);
    return ttft_ms(queue, new_tokens, plan_.limits.percentile);
  }

  // Fewer GPUs than `most`, or nothing.
  [[nodiscard]] std::optional<ColocatedOption> option(const DecodeOption& decode, const PrefillChoice& choice,
                                                      int most) const {
    PrefillOption prefill{.choice = choice, .step = points_.prefill(choice, choice.tokens)};
    const Memory memory = together(decode.step.memory, prefill.step.memory);
    if (memory.total() > points_.usable_bytes() || decode.tpot_ms > plan_.limits.tpot_ms) return std::nullopt;
    int units = 1;
    while (units * choice.ep < most && !decodes(decode, prefill.step, units)) units += std::max(1, units / 50);
    if (units * choice.ep >= most) return std::nullopt;
    const StepTimes times = step_times(points_, choice);
    prefill.ttft_ms = ttft(decode, prefill, times, units);
    const bool in_time = prefill.ttft_ms <= plan_.limits.ttft_ms;
    while (prefill.ttft_ms > plan_.limits.ttft_ms) {
      units += std::max(1, units / 20);
      if (units * choice.ep >= most) return std::nullopt;
      prefill.ttft_ms = ttft(decode, prefill, times, units);
    }
    return finished({decode, prefill, memory}, units, in_time);
  }

 private:
  [[nodiscard]] ColocatedOption finished(ColocatedOption option, int units, bool in_time) const {
    const double left = left_for_decode(option.prefill.step, 1.0 * units * option.decode.choice.ep);
    option.prefill.units = option.decode.units = units;
    option.prefill.utilization = 1 - left;
    option.decode.tpot_ms /= left;
    option.decode.busy_slots /= left;
    if (!in_time) option.decode.bound_by = "ttft";
    option.prefill.bound_by = option.decode.bound_by;
    return option;
  }

  const Plan& plan_;
  const Points& points_;
};

}  // namespace

std::optional<ColocatedOption> colocated_option(const Plan& plan, const Points& points, const DecodeFamily& family,
                                                const std::vector<PrefillChoice>& choices) {
  constexpr int kMostGpus = 1 << 20;
  const Colocated colocated(plan, points);
  std::optional<ColocatedOption> best;
  // Large batches first: they are mostly the best, and what needs more GPUs is soon put aside.
  for (auto decode = family.options.rbegin(); decode != family.options.rend(); ++decode) {
    for (const PrefillChoice& choice : choices) {
      if (choice.ep != family.choice.ep || choice.redundant_experts != family.choice.redundant_experts) continue;
      if (auto option = colocated.option(*decode, choice, best ? best->gpus() : kMostGpus)) best = std::move(option);
    }
  }
  return best;
}

}  // namespace moeline
