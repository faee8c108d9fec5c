#include "experiments/plan/colocated.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "experiments/plan/decode_options.hpp"
#include "experiments/plan/deployment.hpp"

namespace moeline {
namespace {

// One batch size beside one way of prefilling, on any number of units. REQUIRES: decode alone is faster than the limit.
class Colocated {
 public:
  Colocated(const Plan& plan, const Points& points, const DecodeOption& decode, const PrefillChoice& choice,
            const Limits& limits)
      : plan_(&plan),
        points_(&points),
        decode_(&decode),
        choice_(choice),
        mixed_(micro_batches(decode.choice.schedule) == 1 && micro_batches(choice.schedule) == 1),
        memory_(points.memory(choice, decode.choice, mixed_)),
        fits_(memory_.fits()),
        may_take_ms_(limits.tpot_ms * points.tokens_per_request(decode.choice)),
        longest_wait_ms_(limits.ttft_ms) {
    if (fits_) prefill_ = step(choice.tokens);
  }

  // Into memory, and prefill into the time that decode leaves: a prompt that just missed a full step waits for all
  // steps of decode behind it, which alone is not to take longer than TTFT may.
  [[nodiscard]] bool fits() const { return fits_ && between_ms() <= longest_wait_ms_; }

  // Fewer GPUs than `most`, or nothing.
  [[nodiscard]] std::optional<ColocatedOption> option(int most_gpus) const {
    int low = fewest_units() - 1;
    int high = std::min(kMostTimes * (low + 1), (most_gpus - 1) / choice_.gpus());
    if (high <= low || !at(high).within()) return std::nullopt;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      (at(middle).within() ? high : low) = middle;
    }
    return finished(high);
  }

  // Below which it does not keep up.
  [[nodiscard]] int fewest_gpus() const { return fewest_units() * choice_.gpus(); }

  // A limit on TTFT that this meets.
  [[nodiscard]] double reach_ttft_ms() const {
    return std::max(between_ms(), at(kMostTimes * fewest_units(), INFINITY).ttft_ms);
  }

 private:
  struct State {
    double ttft_ms = 0, share = 0, slowdown = 0, busy_slots = 0;
    bool ttft = false, slots = false;  // are within their limits
    [[nodiscard]] bool within() const { return ttft && slots; }
  };

  [[nodiscard]] StepPoint step(int tokens) const {
    return mixed_ ? points_->mixed(choice_, decode_->choice, tokens) : points_->prefill(choice_, tokens);
  }

  [[nodiscard]] PrefillQueue queue(double requests_per_s, StepTimes times) const {
    return {.requests_per_s = requests_per_s,
            .groups = choice_.unit.attention_groups(),
            .tokens_per_step = 1.0 * choice_.tokens,
            .step = std::move(times),
            .decode_steps_per_ms = 1 / (may_take_ms_ - decode_->step.step_ms),
            .decode_step_ms = decode_->step.step_ms,
            .spared_ms = mixed_ ? may_take_ms_ : 0};
  }

  // After a full step that prefills.
  [[nodiscard]] double between_ms() const { return queue(0, {}).decode_ms(prefill_.step_ms); }
  [[nodiscard]] double decode_steps() const { return std::round(between_ms() / decode_->step.step_ms); }

  // Of TPOT, over that of decode alone.
  [[nodiscard]] double slowdown(const PrefillTimes& prefill) const {
    const double in_mixed = mixed_ && prefill.share > 0 ? prefill.share / prefill.step_ms : 0;  // steps per ms
    return 1 / (1 - prefill.share + in_mixed * decode_->step.step_ms);
  }

  // With which full steps of prefill, each followed by those of decode, keep up.
  [[nodiscard]] int keeping_up() const {
    const double longer = 1 + between_ms() / prefill_.step_ms;
    const double units = plan_->traffic.new_tokens_per_s() * longer / (prefill_.tokens_per_s * choice_.gpus());
    return static_cast<int>(std::ceil(units / kMostBusy));
  }

  [[nodiscard]] int fewest_units() const { return std::max(keeping_up(), decode_->units); }

  [[nodiscard]] State at(int units) const { return at(units, plan_->limits.ttft_ms); }
  [[nodiscard]] State at(int units, double limit_ms) const {
    if (times_.ms.empty()) times_ = step_times(choice_.tokens, [&](int tokens) { return step(tokens).step_ms; });
    const PrefillTimes prefill = prefill_times(queue(plan_->traffic.requests_per_s / units, times_),
                                               points_->arrivals(), plan_->limits.percentile, limit_ms);
    const double slower = slowdown(prefill);
    State state{prefill.ttft_ms, prefill.share, slower, decode_->busy_slots * slower};
    const double slots = 1.0 * units * choice_.unit.attention_groups() * decode_->choice.batch_size;
    state.ttft = state.ttft_ms <= plan_->limits.ttft_ms;
    state.slots = share_that_waits(slots, state.busy_slots) <= 1 - plan_->limits.percentile / 100;
    return state;
  }

  // What a unit less would be short of.
  [[nodiscard]] std::string bound_by(int units) const {
    if (units == 1) return network_or_compute(prefill_.exposed_ms, prefill_.step_ms);
    if (units <= keeping_up()) return "tpot";  // which decode's steps between those of prefill are for
    const State less = at(units - 1);
    return less.ttft ? decode_->bound_by : "ttft";
  }

  // Beside the prompts that share the GPU.
  [[nodiscard]] int most_requests() const {
    return largest_that_fits(decode_->choice.batch_size, decode_->fits_requests, [&](int requests) {
      DecodeChoice choice = decode_->choice;
      choice.batch_size = requests;
      return points_->memory(choice_, choice, mixed_).fits();
    });
  }

  [[nodiscard]] ColocatedOption finished(int units) const {
    const State state = at(units);
    PrefillOption prefill{.choice = choice_, .step = prefill_, .units = units};
    prefill.ttft_ms = state.ttft_ms;
    prefill.utilization = state.share;
    ColocatedOption option{*decode_, std::move(prefill), memory_, mixed_, static_cast<int>(decode_steps())};
    option.decode.units = units;
    option.decode.tpot_ms *= state.slowdown;
    option.decode.busy_slots = state.busy_slots;
    option.decode.fits_requests = most_requests();
    option.decode.bound_by = option.prefill.bound_by = bound_by(units);
    return option;
  }

  const Plan* plan_;
  const Points* points_;
  const DecodeOption* decode_;
  PrefillChoice choice_;
  bool mixed_;
  GpuMemory memory_;
  bool fits_;
  double may_take_ms_;  // a step, on average
  double longest_wait_ms_;
  StepPoint prefill_;        // a full step that prefills
  mutable StepTimes times_;  // of parts of it, once they are asked for: many choices never are
};

// Nothing where decode alone is no faster than the limit, or the two do not go together.
std::optional<Colocated> beside(const Plan& plan, const Points& points, const DecodeOption& decode,
                                const PrefillChoice& choice, const Limits& limits) {
  if (decode.tpot_ms >= limits.tpot_ms) return std::nullopt;
  try {
    Colocated candidate(plan, points, decode, choice, limits);
    if (candidate.fits()) return candidate;
  } catch (const SpecError&) {
    return std::nullopt;  // what `set` asks of prefill may not go with decode
  }
  return std::nullopt;
}

// As deployments are ranked; of those that are alike, the one with fewer requests and smaller steps.
bool is_better(const ColocatedOption& a, const ColocatedOption& b) {
  const auto rank = [](const ColocatedOption& option) {
    return std::make_tuple(option.gpus(), option.decode.tpot_ms, option.prefill.ttft_ms,
                           option.decode.choice.batch_size, option.prefill.choice.tokens,
                           option.prefill.choice.comm_sms, option.prefill.choice.schedule);
  };
  return rank(a) < rank(b);
}

bool same_unit(const PrefillChoice& prefill, const DecodeChoice& decode) {
  return prefill.unit == decode.unit && prefill.redundant_experts == decode.redundant_experts;
}

}  // namespace

std::optional<ColocatedOption> colocated_option(const Plan& plan, const Points& points, const DecodeFamily& family,
                                                const std::vector<PrefillChoice>& choices) {
  constexpr int kMostGpus = 1 << 30;
  std::vector<Colocated> candidates;
  for (const DecodeOption& decode : family.options) {
    for (const PrefillChoice& choice : choices) {
      if (!same_unit(choice, family.choice)) continue;
      if (auto candidate = beside(plan, points, decode, choice, plan.limits))
        candidates.push_back(*std::move(candidate));
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Colocated& a, const Colocated& b) { return a.fewest_gpus() < b.fewest_gpus(); });
  std::optional<ColocatedOption> best;
  for (const Colocated& candidate : candidates) {
    if (best && candidate.fewest_gpus() > best->gpus()) break;  // the next ones need more still
    auto option = candidate.option(best ? best->gpus() + 1 : kMostGpus);
    if (option && (!best || is_better(*option, *best))) best = std::move(option);
  }
  return best;
}

std::optional<Limits> colocated_reach(const Plan& plan, const Points& points, const DecodeFamily& family,
                                      const std::vector<PrefillChoice>& choices) {
  if (family.options.empty()) return std::nullopt;
  const DecodeOption& decode = family.options.front();
  std::optional<Limits> least;
  for (const double tpot_ms : {plan.limits.tpot_ms, 1.25 * decode.tpot_ms, 2 * decode.tpot_ms}) {
    for (const PrefillChoice& choice : choices) {
      if (!same_unit(choice, family.choice)) continue;
      const auto colocated = beside(plan, points, decode, choice, {INFINITY, tpot_ms, plan.limits.percentile});
      if (!colocated) continue;
      const Limits reach{colocated->reach_ttft_ms(), tpot_ms, plan.limits.percentile};
      if (!least || widening(reach, plan.limits) < widening(*least, plan.limits)) least = reach;
    }
  }
  return least;
}

double widening(const Limits& limits, const Limits& of_plan) {
  return std::max(1.0, limits.ttft_ms / of_plan.ttft_ms) * std::max(1.0, limits.tpot_ms / of_plan.tpot_ms);
}

}  // namespace moeline
