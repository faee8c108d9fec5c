#include "experiments/plan/prefill_options.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "experiments/plan/deployment.hpp"

namespace moeline {
namespace {

struct Candidate {
  PrefillChoice choice;
  StepPoint step;
  double busy_units = 0;  // with full steps
  int fewest_units = 0;   // that keep up
};

class Prefill {
 public:
  Prefill(const Plan& plan, const Points& points, double transfer_ms_per_token)
      : plan_(plan), points_(points), transfer_ms_per_token_(transfer_ms_per_token) {}

  [[nodiscard]] PrefillTimes waits(const Candidate& candidate, const StepTimes& times, double units,
                                   double limit_ms) const {
    const PrefillQueue queue{.requests_per_s = plan_.traffic.requests_per_s / units,
                             .groups = candidate.choice.unit.attention_groups(),
                             .tokens_per_step = 1.0 * candidate.choice.tokens,
                             .step = times,
                             .cache_hit_share = plan_.traffic.cache_hit_share,
                             .transfer_ms_per_token = transfer_ms_per_token_};
    return prefill_times(queue, points_.arrivals(), plan_.limits.percentile, limit_ms);
  }

  [[nodiscard]] double shortest_ttft(const Candidate& candidate, const StepTimes& times) const {
    return waits(candidate, times, kMostTimes * candidate.fewest_units, INFINITY).ttft_ms;
  }

  // The fewest units within the limit, no more than `most`.
  [[nodiscard]] std::optional<PrefillOption> option(const Candidate& candidate, const StepTimes& times,
                                                    int most) const {
    const double limit_ms = plan_.limits.ttft_ms;
    const auto within = [&](int units) { return waits(candidate, times, units, limit_ms).ttft_ms <= limit_ms; };
    int low = candidate.fewest_units - 1;
    int high = std::max(low + 1, 1);
    for (int step = 1; !within(high); step *= 2) {
      low = high;
      high += step;
      if (low >= most) return std::nullopt;
    }
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (within(middle) ? high : low) = middle;
    }
    PrefillOption option{.choice = candidate.choice, .step = candidate.step, .units = high};
    option.spares = plan_.prefill.spare_units;
    option.rented_per_unit = rented_gpus(candidate.choice.gpus(), points_.gpus_per_node());
    option.ttft_ms = waits(candidate, times, high, limit_ms).ttft_ms;
    option.utilization = candidate.busy_units / high;
    const bool more = high > candidate.fewest_units;
    option.bound_by = more ? "ttft" : network_or_compute(candidate.step.exposed_ms, candidate.step.step_ms);
    return option;
  }

 private:
  const Plan& plan_;
  const Points& points_;
  double transfer_ms_per_token_;
};

Candidate candidate_of(const Plan& plan, const Points& points, const PrefillChoice& choice) {
  Candidate candidate{choice, points.prefill(choice, points.part(choice.tokens))};
  candidate.busy_units = plan.traffic.new_tokens_per_s() / (candidate.step.tokens_per_s * choice.gpus());
  candidate.fewest_units = static_cast<int>(std::ceil(candidate.busy_units / kMostBusy));
  return candidate;
}

// Tokens per second and GPU; 0: it does not fit, or is no scenario.
double tokens_per_s_of(const Points& points, const PrefillChoice& choice) {
  try {
    return points.memory(choice).fits() ? points.prefill(choice, points.part(choice.tokens)).tokens_per_s : 0;
  } catch (const SpecError&) {
    return 0;  // whoever asks for the step is told why
  }
}

// Where the plan lists no SMs, those with which steps of the usual size compute the most tokens: they are the best of
// all sizes, or nearly.
std::vector<PrefillChoice> with_best_sms(const Plan& plan, const Points& points, std::vector<PrefillChoice> choices) {
  constexpr int kUsualTokens = 8192;
  if (!plan.prefill.comm_sms.empty() || !plan.prefill.tokens.empty()) return choices;
  int best_sms = 0;
  double most = 0;
  for (const PrefillChoice& choice : choices) {
    if (choice.tokens != kUsualTokens) continue;
    const double tokens_per_s = tokens_per_s_of(points, choice);
    if (tokens_per_s > most) {
      most = tokens_per_s;
      best_sms = choice.comm_sms;
    }
  }
  if (most > 0) std::erase_if(choices, [&](const PrefillChoice& each) { return each.comm_sms != best_sms; });
  return choices;
}

// "Memory before speed": what does not fit is not simulated.
std::vector<Candidate> candidates_of(const Plan& plan, const Points& points, const std::vector<PrefillChoice>& choices,
                                     std::string& impossible) {
  std::vector<Candidate> candidates;
  for (const PrefillChoice& choice : with_best_sms(plan, points, choices)) {
    try {
      if (points.memory(choice).fits()) candidates.push_back(candidate_of(plan, points, choice));
    } catch (const SpecError& error) {
      impossible = error.what();
    }
  }
  if (candidates.empty() && impossible.empty()) impossible = "does not fit into memory";
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.fewest_units < b.fewest_units; });
  return candidates;
}

}  // namespace

bool is_better(const PrefillOption& a, const PrefillOption& b) {
  const auto rank = [](const PrefillOption& option) {
    return std::make_tuple(option.rented(), option.gpus(), option.ttft_ms, option.choice.tokens, option.choice.comm_sms,
                           option.choice.schedule);
  };
  return rank(a) < rank(b);
}

StepTimes step_times(const Points& points, int tokens, const std::function<StepPoint(const PromptPart&)>& step) {
  StepTimes times;
  for (const int share : {16, 4, 1}) {
    const int part = std::max(2, tokens / share);
    if (!times.tokens.empty() && part <= times.tokens.back()) continue;
    const PromptPart prompts = points.part(part);
    const StepPoint point = step(prompts);
    times.tokens.push_back(part);
    times.ms.push_back(point.step_ms);
    times.own_ms.push_back(point.own_ms);
    times.seen.push_back(prompts.length);
  }
  const PromptPart full = points.part(tokens);
  const double own_ms = step(full.behind(full.length)).own_ms;
  times.ms_per_pair = std::max(0.0, own_ms - times.own_ms.back()) / (1.0 * full.tokens * full.length);
  return times;
}

PrefillFamily prefill_family(const Plan& plan, const Points& points, const std::vector<PrefillChoice>& choices) {
  PrefillFamily family{.choice = choices.front()};
  const std::vector<Candidate> candidates = candidates_of(plan, points, choices, family.impossible);
  if (candidates.empty()) return family;
  for (const Candidate& candidate : candidates) family.fitting.push_back({candidate.choice, candidate.step});
  const Prefill prefill(plan, points, points.transfer_ms_per_token(candidates.front().choice));  // as of all of them
  for (const Candidate& candidate : candidates) {
    if (family.best && candidate.fewest_units > family.best->units) break;  // the next ones need more still
    const StepTimes times = step_times(points, candidate.choice.tokens,
                                       [&](const PromptPart& part) { return points.prefill(candidate.choice, part); });
    const double shortest = prefill.shortest_ttft(candidate, times);
    if (family.shortest_ttft_ms == 0 || shortest < family.shortest_ttft_ms) family.shortest_ttft_ms = shortest;
    if (shortest > plan.limits.ttft_ms) continue;
    const int most = family.best ? family.best->units : kMostTimes * candidate.fewest_units;
    if (auto option = prefill.option(candidate, times, most)) {
      if (!family.best || is_better(*option, *family.best)) family.best = std::move(option);
    }
  }
  return family;
}

}  // namespace moeline
