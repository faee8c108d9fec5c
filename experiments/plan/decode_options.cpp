#include "experiments/plan/decode_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "experiments/plan/choices.hpp"
#include "experiments/plan/deployment.hpp"

namespace moeline {

double share_that_waits(double slots, double busy) {
  if (busy >= slots) return 1;
  constexpr double kPi = 3.14159265358979323846;
  const double beta = (1 - busy / slots) * std::sqrt(slots);
  const double below = std::erfc(-beta / std::sqrt(2.0)) / 2;
  const double density = std::exp(-beta * beta / 2) / std::sqrt(2 * kPi);
  return density / (density + beta * below);
}

int units_for(double busy, double slots_per_unit, double share) {
  int units = static_cast<int>(std::ceil(busy / slots_per_unit));
  while (share_that_waits(units * slots_per_unit, busy) > share) ++units;
  return units;
}

namespace {

DecodeOption option_of(const Plan& plan, const Points& points, DecodeChoice choice, int batch_size) {
  choice.batch_size = batch_size;
  DecodeOption option{.choice = choice, .step = points.decode(choice)};
  option.spares = plan.decode.spare_units;
  option.rented_per_unit = rented_gpus(choice.gpus(), points.gpus_per_node());
  option.tpot_ms = option.step.step_ms / points.tokens_per_request(choice);
  option.busy_slots = plan.traffic.output_tokens_per_s() * option.tpot_ms / 1e3;  // Little's law
  option.units =
      units_for(option.busy_slots, 1.0 * choice.unit.attention_groups() * batch_size, may_wait(plan.limits.percentile));
  return option;
}

// TPOT grows with the batch: between the last that is within the limit and the first that is not.
void add_largest_within_limit(const Plan& plan, const Points& points, DecodeFamily& family) {
  const auto within = [&](const DecodeOption& option) { return option.tpot_ms <= plan.limits.tpot_ms; };
  const auto first_outside = std::find_if_not(family.options.begin(), family.options.end(), within);
  if (first_outside == family.options.begin() || first_outside == family.options.end()) return;
  int low = (first_outside - 1)->choice.batch_size;
  int high = first_outside->choice.batch_size;
  auto place = first_outside - family.options.begin();
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    DecodeOption option = option_of(plan, points, family.choice, middle);
    if (!within(option)) {
      high = middle;
      continue;
    }
    low = middle;
    family.options.insert(family.options.begin() + place++, std::move(option));
  }
}

// Fewer GPUs would do with slower tokens: the limit on TPOT. No fewer with the largest batch that fits: memory.
std::string bound_of(const Plan& plan, const DecodeFamily& family, const DecodeOption& option) {
  const auto fewer_but_slow = [&](const DecodeOption& other) {
    return other.tpot_ms > plan.limits.tpot_ms && other.gpus() < option.gpus();
  };
  if (std::any_of(family.options.begin(), family.options.end(), fewer_but_slow)) return "tpot";
  const bool to_the_brim = plan.decode.batch_size.empty() && family.options.back().tpot_ms <= plan.limits.tpot_ms;
  if (option.units > 1 && to_the_brim && family.options.back().gpus() >= option.gpus()) return "memory";
  return network_or_compute(option.step.exposed_ms, option.step.step_ms);
}

std::string why_none(const DecodeChoice& choice, int fits_requests) {
  if (fits_requests == 0) return "no request fits into memory";
  return fmt::format("{} requests fit into memory, and no listed batch_size is from {} to {}", fits_requests,
                     micro_batches(choice.schedule), fits_requests);
}

}  // namespace

bool is_better(const DecodeOption& a, const DecodeOption& b) {
  const auto rank = [](const DecodeOption& option) {
    return std::make_tuple(option.rented(), option.gpus(), option.tpot_ms, option.choice.gpus(),
                           option.choice.batch_size, option.choice.mtp, option.choice.schedule);
  };
  return rank(a) < rank(b);
}

const DecodeOption* DecodeFamily::best(double tpot_limit_ms) const {
  const DecodeOption* best = nullptr;
  for (const DecodeOption& option : options) {
    if (option.tpot_ms > tpot_limit_ms) continue;
    if (best == nullptr || is_better(option, *best)) best = &option;
  }
  return best;
}

DecodeFamily decode_family(const Plan& plan, const Points& points, const DecodeChoice& choice) {
  DecodeFamily family{.choice = choice};
  try {
    family.fits_requests = points.most_requests(choice);
    for (const int size : batch_sizes(plan, family.fits_requests)) {
      if (size < micro_batches(choice.schedule)) continue;
      family.options.push_back(option_of(plan, points, choice, size));
    }
  } catch (const SpecError& error) {
    family.impossible = error.what();
    return family;
  }
  if (family.options.empty()) family.impossible = why_none(choice, family.fits_requests);
  if (plan.decode.batch_size.empty()) add_largest_within_limit(plan, points, family);
  for (DecodeOption& option : family.options) {
    option.fits_requests = family.fits_requests;
    option.bound_by = bound_of(plan, family, option);
  }
  return family;
}

}  // namespace moeline
