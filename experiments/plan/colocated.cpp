#include "experiments/plan/colocated.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "experiments/plan/decode_options.hpp"
#include "experiments/plan/deployment.hpp"

namespace moeline {
namespace {

// So many times the slots that the simulation of arrivals has: where it finds them all taken now and then, a little
// more load takes them all for long.
constexpr double kSlotsInReserve = 1.1;

// Of a unit's time in steps with prompts of `step_ms` each, the most that leaves answers their tokens in time.
double most_share(bool mixed, double step_ms, double decode_step_ms, double may_take_ms) {
  const double lost = 1 / decode_step_ms - (mixed ? 1 / step_ms : 0);  // of steps with tokens, in all of the time
  const double spare = 1 / decode_step_ms - 1 / may_take_ms;
  return spare >= kMostBusy * lost ? kMostBusy : spare / lost;
}

// One batch size beside one way of prefilling, on any number of units. REQUIRES: decode alone is faster than the limit.
class Colocated {
 public:
  Colocated(const Plan& plan, const Points& points, const DecodeOption& decode, const FittingPrefill& prefill,
            const Limits& limits, bool in_turn)
      : plan_(&plan),
        points_(&points),
        decode_(&decode),
        choice_(prefill.choice),
        alone_(prefill.step),
        limits_(limits),
        in_turn_(in_turn),
        mixed_(micro_batches(decode.choice.schedule) == 1 && micro_batches(choice_.schedule) == 1),
        tokens_per_step_(points.tokens_per_request(decode.choice)) {}

  // With fewer units answers or prompts would not keep up, even if prompts took no longer beside answers than alone.
  [[nodiscard]] int fewest_units() const { return fewest_units(alone_); }

  // TPOT is no shorter on so many units, for the same reason: were all steps with prompts full ones.
  [[nodiscard]] double least_tpot_ms(int units) const {
    const double share = plan_->traffic.new_tokens_per_s() / (alone_.tokens_per_s * choice_.gpus() * units);
    return decode_->tpot_ms * slowdown({.share = share, .step_ms = alone_.step_ms});
  }

  // Simulates the step with prompts. Whether both fit into memory.
  [[nodiscard]] bool fits() {
    memory_ = points_->memory(choice_, decode_->choice, mixed_);
    if (memory_.fits()) prefill_ = step(points_->part(choice_.tokens));
    return memory_.fits();
  }

  // `most` units, or fewer, or nothing. REQUIRES: it fits.
  [[nodiscard]] std::optional<ColocatedOption> option(int most) const {
    int low = fewest_units(prefill_) - 1;
    int high = std::min(kMostTimes * (low + 1), most);
    if (high <= low || !at(high).within()) return std::nullopt;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      (at(middle).within() ? high : low) = middle;
    }
    return finished(high);
  }

  // Limits that this meets. REQUIRES: it fits.
  [[nodiscard]] Limits reach() const {
    const State most = at(kMostTimes * fewest_units(prefill_), INFINITY);
    return {most.ttft_ms, std::max(limits_.tpot_ms, most.tpot_ms), limits_.percentile};
  }

 private:
  struct State {
    double ttft_ms = 0, tpot_ms = 0, share = 0, busy_slots = 0;
    bool ttft = false, tpot = false, slots = false;  // are within their limits
    [[nodiscard]] bool within() const { return ttft && tpot && slots; }
  };

  [[nodiscard]] StepPoint step(const PromptPart& part) const {
    return mixed_ ? points_->mixed(choice_, decode_->choice, part) : points_->prefill(choice_, part);
  }

  // Of TPOT, over that of decode alone.
  [[nodiscard]] double slowdown(const PrefillTimes& prefill) const {
    const double in_mixed = mixed_ && prefill.share > 0 ? prefill.share / prefill.step_ms : 0;  // steps per ms
    return 1 / (1 - prefill.share + in_mixed * decode_->step.step_ms);
  }

  [[nodiscard]] int keeping_up(const StepPoint& prompts) const {
    const double share = most_share(mixed_, prompts.step_ms, decode_->step.step_ms, limits_.tpot_ms * tokens_per_step_);
    return static_cast<int>(
        std::ceil(plan_->traffic.new_tokens_per_s() / (prompts.tokens_per_s * choice_.gpus() * share)));
  }

  [[nodiscard]] int fewest_units(const StepPoint& prompts) const {
    return std::max(keeping_up(prompts), decode_->units);
  }

  [[nodiscard]] PrefillTimes waits(int units, double limit_ms) const {
    if (times_.ms.empty()) {
      times_ = step_times(*points_, choice_.tokens, [&](const PromptPart& part) { return step(part); });
    }
    const PrefillQueue queue{.requests_per_s = plan_->traffic.requests_per_s / units,
                             .groups = choice_.unit.attention_groups(),
                             .tokens_per_step = 1.0 * choice_.tokens,
                             .step = times_,
                             .in_turn = in_turn_,
                             .cache_hit_share = plan_->traffic.cache_hit_share,
                             .decode_step_ms = decode_->step.step_ms,
                             .mixed = mixed_,
                             .slots = std::max(1.0, std::floor(decode_->choice.batch_size / kSlotsInReserve)),
                             .tokens_per_decode_step = tokens_per_step_};
    return prefill_times(queue, points_->arrivals(), limits_.percentile, limit_ms);
  }

  [[nodiscard]] State at(int units) const { return at(units, limits_.ttft_ms); }
  [[nodiscard]] State at(int units, double limit_ms) const {
    const PrefillTimes waited = waits(units, limit_ms);
    State state{waited.ttft_ms, waited.tpot_ms, waited.share, decode_->busy_slots * slowdown(waited)};
    const double slots = 1.0 * units * choice_.unit.attention_groups() * decode_->choice.batch_size;
    state.ttft = state.ttft_ms <= limits_.ttft_ms;
    state.tpot = state.tpot_ms <= limits_.tpot_ms;
    state.slots = share_that_waits(slots, state.busy_slots) <= may_wait(limits_.percentile);
    return state;
  }

  // What a unit less would be short of.
  [[nodiscard]] std::string bound_by(int units) const {
    if (units == 1) return network_or_compute(prefill_.exposed_ms, prefill_.step_ms);
    if (units <= keeping_up(prefill_)) return "tpot";
    const State less = at(units - 1);
    if (!less.ttft) return "ttft";
    return less.tpot ? decode_->bound_by : "tpot";
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
    prefill.spares = decode_->spares;
    prefill.ttft_ms = state.ttft_ms;
    prefill.utilization = state.share;
    ColocatedOption option{*decode_, std::move(prefill), memory_, mixed_};
    option.decode.units = units;
    option.decode.tpot_ms = state.tpot_ms;
    option.decode.busy_slots = state.busy_slots;
    option.decode.fits_requests = most_requests();
    option.decode.bound_by = option.prefill.bound_by = bound_by(units);
    return option;
  }

  const Plan* plan_;
  const Points* points_;
  const DecodeOption* decode_;
  PrefillChoice choice_;
  StepPoint alone_;  // a full step with prompts and no answers
  Limits limits_;
  bool in_turn_;  // requests go to groups
  bool mixed_;
  double tokens_per_step_;  // of a request
  GpuMemory memory_{};
  StepPoint prefill_;        // a full step with prompts
  mutable StepTimes times_;  // of parts of it, once they are asked for: many choices never are
};

// As deployments are ranked; of those that are alike, the one with fewer requests and smaller steps.
bool is_better(const ColocatedOption& a, const ColocatedOption& b) {
  const auto rank = [](const ColocatedOption& option) {
    return std::make_tuple(option.gpus(), option.decode.tpot_ms, option.prefill.ttft_ms,
                           option.decode.choice.batch_size, option.prefill.choice.tokens,
                           option.prefill.choice.comm_sms, option.prefill.choice.schedule);
  };
  return rank(a) < rank(b);
}

// Both fit, and what `set` asks of prefill goes with decode.
bool goes(Colocated& way) {
  try {
    return way.fits();
  } catch (const SpecError&) {
    return false;
  }
}

bool same_unit(const PrefillChoice& prefill, const DecodeChoice& decode) {
  return prefill.unit == decode.unit && prefill.redundant_experts == decode.redundant_experts;
}

}  // namespace

std::optional<ColocatedOption> colocated_option(const Plan& plan, const Points& points, const DecodeFamily& family,
                                                const std::vector<FittingPrefill>& prefill, int most_gpus) {
  const int most_units = most_gpus / family.choice.gpus();
  struct Candidate {
    Colocated way;
    int fewest_units = 0;
    double least_tpot_ms = 0;  // on these
    [[nodiscard]] auto bounds() const { return std::pair(fewest_units, least_tpot_ms); }
    [[nodiscard]] bool may_be_better(const ColocatedOption& best) const {
      if (fewest_units != best.decode.units) return fewest_units < best.decode.units;
      return least_tpot_ms <= best.decode.tpot_ms;
    }
  };
  if (family.options.empty()) return std::nullopt;
  std::vector<Candidate> candidates;
  const bool in_turn = points.routes_in_turn(family.choice);
  for (const DecodeOption& decode : family.options) {
    if (decode.tpot_ms >= plan.limits.tpot_ms) continue;
    for (const FittingPrefill& each : prefill) {
      if (!same_unit(each.choice, family.choice)) continue;
      const Colocated way(plan, points, decode, each, plan.limits, in_turn);
      const int fewest = way.fewest_units();
      if (fewest <= most_units) candidates.push_back({way, fewest, way.least_tpot_ms(fewest)});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bounds() < b.bounds(); });
  std::optional<ColocatedOption> best;
  for (Candidate& candidate : candidates) {
    if ((best && !candidate.may_be_better(*best)) || !goes(candidate.way)) continue;
    auto option = candidate.way.option(best ? best->decode.units : most_units);
    if (option && (!best || is_better(*option, *best))) best = std::move(option);
  }
  return best;
}

std::optional<Limits> colocated_reach(const Plan& plan, const Points& points, const DecodeFamily& family,
                                      const std::vector<FittingPrefill>& prefill) {
  if (family.options.empty()) return std::nullopt;
  const DecodeOption& decode = family.options.front();
  const bool in_turn = points.routes_in_turn(family.choice);
  std::optional<Limits> least;
  for (const double tpot_ms : {plan.limits.tpot_ms, 1.25 * decode.tpot_ms, 2 * decode.tpot_ms}) {
    if (decode.tpot_ms >= tpot_ms) continue;
    for (const FittingPrefill& each : prefill) {
      if (!same_unit(each.choice, family.choice)) continue;
      Colocated way(plan, points, decode, each, {INFINITY, tpot_ms, plan.limits.percentile}, in_turn);
      if (!goes(way)) continue;
      const Limits reach = way.reach();
      if (!least || widening(reach, plan.limits) < widening(*least, plan.limits)) least = reach;
    }
  }
  return least;
}

double widening(const Limits& limits, const Limits& of_plan) {
  return std::max(1.0, limits.ttft_ms / of_plan.ttft_ms) * std::max(1.0, limits.tpot_ms / of_plan.tpot_ms);
}

}  // namespace moeline
