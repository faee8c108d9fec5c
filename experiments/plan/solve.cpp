#include "experiments/plan/solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/parallel.hpp"
#include "experiments/plan/choices.hpp"
#include "experiments/plan/colocated.hpp"

namespace moeline {
namespace {

constexpr int kAnyNumber = 1 << 30;

// All ways on one machine.
struct Ways {
  const PlanHardware* machine = nullptr;
  NumberFormats formats{};  // of decode
  std::vector<DecodeFamily> decode;
  std::vector<PrefillFamily> prefill;
  std::vector<ColocatedOption> colocated;
};

std::vector<FittingPrefill> fitting_prefill(const Ways& ways) {
  std::vector<FittingPrefill> list;
  for (const PrefillFamily& family : ways.prefill) {
    list.insert(list.end(), family.fitting.begin(), family.fitting.end());
  }
  return list;
}

std::vector<std::vector<PrefillChoice>> families_of(const std::vector<PrefillChoice>& choices) {
  std::map<std::tuple<int, Parallelism, int, bool, std::string>, std::vector<PrefillChoice>> families;
  for (const PrefillChoice& choice : choices) {
    const bool alone = !is_two_batch(choice.schedule);
    families[{choice.gpus(), choice.unit, choice.redundant_experts, alone, choice.schedule}].push_back(choice);
  }
  std::vector<std::vector<PrefillChoice>> list;
  for (auto& [key, family] : families) list.push_back(std::move(family));
  return list;
}

// Each with the way in which its tokens reach experts. Only the normal mode takes SMs, of which the others need no
// list.
std::vector<PrefillChoice> with_modes(const Points& points, const std::vector<PrefillChoice>& choices) {
  std::vector<PrefillChoice> list;
  std::map<std::tuple<Parallelism, int, std::string>, std::optional<CommMode>> modes;
  std::set<std::tuple<Parallelism, int, std::string, int>> without_sms;
  for (PrefillChoice choice : choices) {
    const std::tuple key(choice.unit, choice.redundant_experts, choice.schedule);
    if (!modes.contains(key)) modes[key] = points.mode(choice);
    const bool takes_sms = modes[key] == CommMode::normal;
    choice.mode = modes[key].value_or(choice.mode);
    if (!takes_sms) choice.comm_sms = 0;
    const auto first = [&] { return without_sms.insert(std::tuple_cat(key, std::tuple(choice.tokens))).second; };
    if (takes_sms || first()) list.push_back(std::move(choice));
  }
  return list;
}

std::vector<DecodeChoice> with_modes(const Points& points, std::vector<DecodeChoice> choices) {
  for (DecodeChoice& choice : choices) choice.mode = points.mode(choice).value_or(choice.mode);
  return choices;
}

// Dearer than that by the best that is known, nothing is worth a list.
constexpr int kTimesTheBest = 2;

int times_the_best(int gpus) { return gpus > kAnyNumber / kTimesTheBest ? kAnyNumber : kTimesTheBest * gpus; }

// Of prefill and decode apart; kAnyNumber: of no such deployment.
int fewest_apart(const Plan& plan, const Ways& ways) {
  int prefill = kAnyNumber, decode = kAnyNumber;
  for (const PrefillFamily& family : ways.prefill) {
    if (family.best) prefill = std::min(prefill, family.best->gpus());
  }
  for (const DecodeFamily& family : ways.decode) {
    const DecodeOption* best = family.best(plan.limits.tpot_ms);
    if (best != nullptr) decode = std::min(decode, best->gpus());
  }
  const bool is_one = plan.disaggregated && prefill < kAnyNumber && decode < kAnyNumber;
  return is_one ? prefill + decode : kAnyNumber;
}

// Families by the GPUs of their units: those of smaller ones say what larger ones may take.
std::map<int, std::vector<const DecodeFamily*>> by_size(const std::vector<DecodeFamily>& families) {
  std::map<int, std::vector<const DecodeFamily*>> sizes;
  for (const DecodeFamily& family : families) sizes[family.choice.gpus()].push_back(&family);
  return sizes;
}

void add_colocated(const Plan& plan, const Points& points, std::size_t workers, Ways& ways) {
  const std::vector<FittingPrefill> prefill = fitting_prefill(ways);
  int fewest = fewest_apart(plan, ways);
  for (const auto& of_size : by_size(ways.decode)) {
    const std::vector<const DecodeFamily*>& families = of_size.second;
    std::vector<std::optional<ColocatedOption>> options(families.size());
    parallel_for(families.size(), workers, [&](std::size_t i) {
      options[i] = colocated_option(plan, points, *families[i], prefill, times_the_best(fewest));
    });
    for (auto& option : options) {
      if (!option) continue;
      fewest = std::min(fewest, option->gpus());
      ways.colocated.push_back(std::move(*option));
    }
  }
}

Ways ways_on(const Plan& plan, const PlanHardware& machine, KnownSteps& known, std::size_t workers,
             const Progress& progress) {
  const HardwareProfile profile = load_profile(machine.name, machine.set, plan.file.string());
  const Architecture model = load_architecture(plan.model, plan.file.string());
  const Points points(plan, machine, known);
  const std::vector<DecodeChoice> decode = with_modes(points, decode_choices(plan, model, profile));
  const std::vector<std::vector<PrefillChoice>> families =
      families_of(with_modes(points, prefill_choices(plan, model, profile)));
  Ways ways;
  ways.machine = &machine;
  ways.decode.resize(decode.size());
  ways.prefill.resize(families.size());
  ProgressCount one_more(progress, "ways to serve", decode.size() + families.size());
  parallel_for(decode.size() + families.size(), workers, [&](std::size_t i) {
    if (i < decode.size()) {
      ways.decode[i] = decode_family(plan, points, decode[i]);
    } else {
      ways.prefill[i - decode.size()] = prefill_family(plan, points, families[i - decode.size()]);
    }
    one_more();
  });
  const auto possible =
      std::ranges::find_if(ways.decode, [](const DecodeFamily& each) { return !each.options.empty(); });
  if (possible != ways.decode.end()) ways.formats = points.formats(possible->options.front().choice);
  if (!plan.colocated) return ways;
  add_colocated(plan, points, workers, ways);
  return ways;
}

template <class Option>
Side side_of(const Option& option, double utilization, int fits_requests) {
  return {.units = option.units,
          .spares = option.spares,
          .gpus = option.gpus(),
          .step_ms = option.step.step_ms,
          .exposed_ms = option.step.exposed_ms,
          .tokens_per_s_per_gpu = option.step.tokens_per_s,
          .utilization = utilization,
          .memory = option.step.memory,
          .fits_requests = fits_requests,
          .bound_by = option.bound_by,
          .known = option.step.known};
}

Deployment deployment(const Plan& plan, const Ways& ways, const PrefillOption& prefill, const DecodeOption& decode,
                      bool colocated) {
  const PlanHardware& machine = *ways.machine;
  Deployment d;
  d.colocated = colocated;
  d.prefill_choice = prefill.choice;
  d.decode_choice = decode.choice;
  d.prefill = side_of(prefill, prefill.utilization, 0);
  d.decode = side_of(decode, decode.utilization(), decode.fits_requests);
  d.formats = ways.formats;
  d.gpus_per_node = static_cast<int>(facts_of(plan, machine).gpus_per_node);
  d.usd_per_gpu_hour = machine.usd_per_gpu_hour;
  d.ttft_ms = prefill.ttft_ms;
  d.tpot_ms = decode.tpot_ms;
  d.tokens_per_s_per_user = 1e3 / d.tpot_ms;
  set_totals(d, plan.traffic.output_tokens_per_s());
  d.bound_by = d.decode.gpus >= d.prefill.gpus ? d.decode.bound_by : d.prefill.bound_by;
  return d;
}

// Null: none is within the limit.
const PrefillOption* best_prefill(const Ways& ways) {
  const PrefillOption* best = nullptr;
  for (const PrefillFamily& family : ways.prefill) {
    if (family.best && (best == nullptr || is_better(*family.best, *best))) best = &*family.best;
  }
  return best;
}

// The best way to decode with every way to prefill, the best way to prefill with every way to decode, and every
// colocated one.
std::vector<Deployment> deployments_of(const Plan& plan, const Ways& ways) {
  std::vector<Deployment> list;
  const DecodeOption* decode = nullptr;
  const PrefillOption* prefill = best_prefill(ways);
  for (const DecodeFamily& family : ways.decode) {
    const DecodeOption* best = family.best(plan.limits.tpot_ms);
    if (best != nullptr && (decode == nullptr || is_better(*best, *decode))) decode = best;
  }
  if (plan.disaggregated && decode != nullptr && prefill != nullptr) {
    for (const DecodeFamily& family : ways.decode) {
      const DecodeOption* best = family.best(plan.limits.tpot_ms);
      if (best != nullptr) list.push_back(deployment(plan, ways, *prefill, *best, false));
    }
    for (const PrefillFamily& family : ways.prefill) {
      const bool other = family.best && &*family.best != prefill;
      if (other) list.push_back(deployment(plan, ways, *family.best, *decode, false));
    }
  }
  for (const ColocatedOption& option : ways.colocated) {
    list.push_back(deployment(plan, ways, option.prefill, option.decode, true));
    list.back().mixed = option.mixed;
    list.back().prefill.memory = list.back().decode.memory = option.memory;
  }
  return list;
}

std::string more_gpus(const char* side, const Side& one, const Side& best) {
  if (one.gpus <= best.gpus) return "";
  return fmt::format("{} on {}, not {}: {}", side, one.gpus, best.gpus, one.bound_by);
}

std::string why_worse(const Deployment& d, const Deployment& best) {
  if (d.gpus == best.gpus && d.price() == best.price()) {
    return d.tpot_ms > best.tpot_ms ? fmt::format("TPOT {:.1f} ms, not {:.1f}", d.tpot_ms, best.tpot_ms)
                                    : fmt::format("TTFT {:.0f} ms, not {:.0f}", d.ttft_ms, best.ttft_ms);
  }
  if (d.prefill_choice.hardware != best.prefill_choice.hardware || d.colocated || best.colocated) {
    return fmt::format("{} GPUs, not {}: {}", d.gpus, best.gpus, d.bound_by);
  }
  const std::string decode = more_gpus("decode", d.decode, best.decode);
  const std::string prefill = more_gpus("prefill", d.prefill, best.prefill);
  return decode + (decode.empty() || prefill.empty() ? "" : "; ") + prefill;
}

// The best prefill beside every batch size that fits: as if TPOT were not limited.
void add_trade_offs(const Plan& plan, const Ways& ways, std::vector<TradeOff>& trade_offs) {
  const PrefillOption* prefill = best_prefill(ways);
  if (prefill == nullptr) return;
  const double per_gpu_of_prefill = plan.traffic.output_tokens_per_s() / prefill->gpus();
  for (const DecodeFamily& family : ways.decode) {
    for (const DecodeOption& option : family.options) {
      const double per_gpu = 1 / (1 / option.step.tokens_per_s + 1 / per_gpu_of_prefill);
      trade_offs.push_back({option.choice, 1e3 / option.tpot_ms, per_gpu});
    }
  }
}

void add_impossible(const std::string& what, const std::string& why, std::vector<Impossible>& impossible) {
  const auto same =
      std::find_if(impossible.begin(), impossible.end(), [&](const Impossible& i) { return i.why == why; });
  if (same == impossible.end()) {
    impossible.push_back({what, why});
  } else if ((same->what + ",").find(what + ",") == std::string::npos) {  // "EP8 on h20" is no part of "EP8 on h200"
    same->what += ", " + what;
  }
}

void add_impossible(const Ways& ways, std::vector<Impossible>& impossible) {
  const std::string& machine = ways.machine->name;
  const char* undivided =
      "no unit searched divides the experts with the redundant ones, or is a multiple of a tp searched";
  if (ways.decode.empty()) add_impossible("decode on " + machine, undivided, impossible);
  if (ways.prefill.empty()) add_impossible("prefill on " + machine, undivided, impossible);
  for (const DecodeFamily& family : ways.decode) {
    if (family.impossible.empty()) continue;
    add_impossible(fmt::format("decode {} on {}", short_name(family.choice.unit), machine), family.impossible,
                   impossible);
  }
  for (const PrefillFamily& family : ways.prefill) {
    if (family.impossible.empty() || family.best) continue;
    add_impossible(fmt::format("prefill {} on {}", short_name(family.choice.unit), machine), family.impossible,
                   impossible);
  }
}

// The shortest TTFT and TPOT of prefill and decode apart; each side has its own.
std::optional<Limits> disaggregated_reach(const Plan& plan, const Ways& ways) {
  Limits limits{0, 0, plan.limits.percentile};
  const auto keep_least = [](double& least, double value) {
    if (value > 0 && (least == 0 || value < least)) least = value;
  };
  for (const DecodeFamily& family : ways.decode) {
    for (const DecodeOption& option : family.options) keep_least(limits.tpot_ms, option.tpot_ms);
  }
  for (const PrefillFamily& family : ways.prefill) keep_least(limits.ttft_ms, family.shortest_ttft_ms);
  if (limits.tpot_ms == 0 || limits.ttft_ms == 0) return std::nullopt;
  return limits;
}

// A hundredth more, where that is more than the plan's own.
Limits widened(Limits limits, const Limits& own) {
  constexpr double kMore = 1.01;
  limits.tpot_ms = std::max(own.tpot_ms, kMore * limits.tpot_ms);
  limits.ttft_ms = std::max(own.ttft_ms, kMore * limits.ttft_ms);
  return limits;
}

// The limits that widen the plan's the least, of those that any way can meet; a little more, so that rounding loses
// nothing.
std::optional<Limits> reachable(const Plan& plan, const std::vector<Ways>& all, KnownSteps& known) {
  std::optional<Limits> nearest;
  const auto keep_nearest = [&](const std::optional<Limits>& reach) {
    const bool nearer = reach && (!nearest || widening(*reach, plan.limits) < widening(*nearest, plan.limits));
    if (nearer) nearest = reach;
  };
  for (const Ways& ways : all) {
    if (plan.disaggregated) keep_nearest(disaggregated_reach(plan, ways));
    if (!plan.colocated) continue;
    const Points points(plan, *ways.machine, known);
    const std::vector<FittingPrefill> prefill = fitting_prefill(ways);
    for (const DecodeFamily& family : ways.decode) keep_nearest(colocated_reach(plan, points, family, prefill));
  }
  return nearest ? std::optional(widened(*nearest, plan.limits)) : std::nullopt;
}

std::vector<Deployment> sorted_deployments(const Plan& plan, const std::vector<Ways>& all) {
  std::vector<Deployment> list;
  for (const Ways& ways : all) {
    std::vector<Deployment> more = deployments_of(plan, ways);
    list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  std::stable_sort(list.begin(), list.end(), [](const Deployment& a, const Deployment& b) {
    const auto rank = [](const Deployment& d) {
      return std::make_tuple(d.price(), d.gpus, d.tpot_ms, d.ttft_ms, describe(d.prefill_choice),
                             describe(d.decode_choice));
    };
    return rank(a) < rank(b);
  });
  for (std::size_t i = 1; i < list.size(); ++i) list[i].loses = why_worse(list[i], list.front());
  return list;
}

}  // namespace

namespace {

// ", TBO", as users of the stacks call it.
std::string overlap_of(const std::string& schedule) {
  static const std::map<std::string, std::string> kShort = {{"sequential", ""},
                                                            {"prefill-two-batch", ", TBO"},
                                                            {"decode-two-batch", ", TBO"},
                                                            {"single-batch", ", SBO"},
                                                            {"per-expert", ", PEO"}};
  const auto known = kShort.find(schedule);
  return known != kShort.end() ? known->second : ", " + schedule;
}

std::optional<Deployment> best_within(const Limits& limits, const Plan& plan, KnownSteps& known, std::size_t workers,
                                      const Progress& progress) {
  Plan wider = plan;
  wider.limits = limits;
  std::vector<Ways> ways;
  for (const PlanHardware& machine : wider.hardware) ways.push_back(ways_on(wider, machine, known, workers, progress));
  const std::vector<Deployment> within = sorted_deployments(wider, ways);
  return within.empty() ? std::nullopt : std::optional(within.front());
}

}  // namespace

std::string describe(const DecodeChoice& choice) {
  return fmt::format("{}{}{}{}", short_name(choice.unit),
                     choice.batch_size > 0 ? fmt::format(", {} requests", choice.batch_size) : "",
                     overlap_of(choice.schedule), choice.mtp > 0 ? fmt::format(", MTP {}", choice.mtp) : "");
}

std::string describe(const PrefillChoice& choice) {
  const std::string sms = choice.comm_sms > 0 ? fmt::format(", {} SMs", choice.comm_sms) : "";
  return fmt::format("{}, {} tokens{}{}", short_name(choice.unit), choice.tokens, sms, overlap_of(choice.schedule));
}

Answer solve(const Plan& plan, KnownSteps& known, std::size_t workers, const Progress& progress) {
  std::vector<Ways> all;
  for (const PlanHardware& machine : plan.hardware) all.push_back(ways_on(plan, machine, known, workers, progress));
  Answer answer;
  answer.deployments = sorted_deployments(plan, all);
  for (const Ways& ways : all) {
    if (plan.disaggregated) add_trade_offs(plan, ways, answer.trade_offs);
    add_impossible(ways, answer.impossible);
  }
  if (!answer.deployments.empty()) return answer;
  answer.nearest_limits = reachable(plan, all, known);
  // What is reached goes by whole steps: where that leaves nothing, a little more does.
  constexpr int kMostWidenings = 4;
  for (int i = 0; i < kMostWidenings && answer.nearest_limits && !answer.nearest; ++i) {
    if (i > 0) answer.nearest_limits = widened(*answer.nearest_limits, plan.limits);
    answer.nearest = best_within(*answer.nearest_limits, plan, known, workers, progress);
  }
  return answer;
}

}  // namespace moeline
