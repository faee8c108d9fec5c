#include "experiments/run/silent_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "experiments/run/run_metrics.hpp"

namespace moeline {
namespace {

const FactField& field_of(const std::string& key) {
  const auto fields = fact_fields();
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const FactField& field) { return field.key == key; });
  MOELINE_CHECK(found != fields.end(), key);
  return *found;
}

// A third less, or where that is out of range a third more; of numbers of things a whole one, and another.
double moved(double value, const FactField& field) {
  const double less = field.is_count ? std::floor(value * 2 / 3) : value * 2 / 3;
  if (less >= field.low && less < value) return less;
  return std::min(field.high, field.is_count ? std::ceil((value + 1) * 4 / 3) : std::max(1.0, value) * 4 / 3);
}

bool is_how_known(const char* metric) {
  return std::any_of(std::begin(kKnownShares), std::end(kKnownShares),
                     [&](const KnownShare& share) { return std::string_view(share.name) == metric; });
}

bool have_same_price(const Price& one, const Price& other) {
  return one.solo_us == other.solo_us && one.disturbed_speed == other.disturbed_speed && one.sms == other.sms;
}

bool changes_a_price(const Run& run, const Setup& changed) {
  return std::any_of(run.program.kernels.begin(), run.program.kernels.end(), [&](const KernelWork& work) {
    if (work.conditions.sms <= 0 || work.conditions.sms > changed.machine.facts.sms) return work.conditions.sms > 0;
    const auto now = run.setup.prices->price(work.op, work.conditions);
    return !have_same_price(*now, *changed.prices->price(work.op, work.conditions));
  });
}

bool is_silent(const Run& run, const std::string& key, const SetupWithFact& with) {
  const FactField& field = field_of(key);
  std::optional<Setup> changed;
  try {
    changed = with(fmt::format("{}={}", key, moved(run.setup.machine.facts.*field.value, field)));
    return !changes_a_price(run, *changed) && have_same_metrics(run, run_scenario(*changed));
  } catch (const SpecError&) {
    return false;  // where it may lie depends on the rest of the scenario
  }
}

}  // namespace

bool have_same_metrics(const Run& one, const Run& other) {
  return std::all_of(run_metrics().begin(), run_metrics().end(), [&](const RunMetric& metric) {
    if (is_how_known(metric.name)) return true;
    const bool applies = metric.applies(one);
    return applies == metric.applies(other) && (!applies || metric.value(one) == metric.value(other));
  });
}

std::vector<std::string> silent_facts(const Run& run, const SetupWithFact& with) {
  std::set<std::string> keys;
  for (const std::string& fact : run.setup.scenario.hardware_overrides) keys.insert(fact.substr(0, fact.find('=')));
  keys.erase("memory_gib");
  std::vector<std::string> silent;
  for (const std::string& key : keys) {
    if (is_silent(run, key, with)) silent.push_back(key);
  }
  return silent;
}

}  // namespace moeline
