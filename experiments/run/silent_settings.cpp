#include "experiments/run/silent_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "experiments/run/metrics.hpp"

namespace moeline {
namespace {

constexpr std::string_view kHardware = "hardware.";

bool is_how_known(const Metric* metric) {
  return std::any_of(known_shares().begin(), known_shares().end(),
                     [&](const Metric& share) { return &share == metric; });
}

bool have_same_price(const Price& one, const Price& other) {
  return one.solo_us == other.solo_us && one.disturbed_speed == other.disturbed_speed && one.sms == other.sms;
}

// That of some kernel of the run, on the changed machine.
bool changes_a_price(const Run& run, const Setup& changed) {
  return std::any_of(run.program.kernels.begin(), run.program.kernels.end(), [&](const KernelWork& work) {
    if (work.conditions.sms <= 0 || work.conditions.sms > changed.machine.facts.sms) return work.conditions.sms > 0;
    const auto now = run.setup.prices->price(work.op, work.conditions);
    return !have_same_price(*now, *changed.prices->price(work.op, work.conditions));
  });
}

// Where a value is refused another one tells; where all are, what the key does depends on the rest of the scenario.
bool is_silent(const Run& run, const std::string& key, const std::string& value, const SetupWith& with) {
  for (const std::string& other : other_values(value)) {
    try {
      const Setup changed = with(fmt::format("{}={}", key, other));
      const bool of_machine = key.starts_with(kHardware) && changed.prices != nullptr;
      return !(of_machine && changes_a_price(run, changed)) && have_same_metrics(run, run_scenario(changed));
    } catch (const SpecError&) {
      continue;
    }
  }
  return false;
}

using Settings = std::map<std::string, std::string>;

void add(const std::string& assignment, Settings& settings) {
  const std::size_t equals = assignment.find('=');
  settings.insert_or_assign(assignment.substr(0, equals), assignment.substr(equals + 1));
}

Settings settings_of(const Run& run, const std::vector<std::string>& assignments) {
  constexpr std::size_t kManyTasks = 50000;
  Settings settings;
  for (const std::string& fact : run.setup.scenario.hardware_overrides) add(std::string(kHardware) + fact, settings);
  for (const std::string& each : assignments) {
    const bool asked = each.find('=') != std::string::npos && !each.starts_with(kHardware);
    if (asked && run.program.graph.size() <= kManyTasks) add(each, settings);
  }
  // What results are held against; how often they are drawn; and of how many GPUs each is one.
  for (const char* other : {"hardware.memory_gib", "memory.fraction", "samples", "parallelism.dp"})
    settings.erase(other);
  return settings;
}

}  // namespace

std::vector<std::string> other_values(const std::string& number) {
  const auto read = as_number<double>(number);
  if (!read) return {};
  const double value = *read;
  if (value == 0) return {"1", "0.1"};
  const std::string more = fmt::format("{}", value * 4 / 3), less = fmt::format("{}", value * 2 / 3);
  if (value != std::floor(value)) return {less, more};
  const double half = std::ceil(value / 2) == value ? value - 1 : std::floor(value / 2);
  return {fmt::format("{}", std::ceil(std::max(value + 1, value * 4 / 3))), fmt::format("{}", 2 * value),
          fmt::format("{}", half), less};
}

bool have_same_metrics(const Run& one, const Run& other) {
  return std::all_of(run_metrics().begin(), run_metrics().end(), [&](const Metric* metric) {
    if (is_how_known(metric)) return true;
    const bool applies = metric->applies(one);
    return applies == metric->applies(other) && (!applies || metric->value(one) == metric->value(other));
  });
}

std::vector<std::string> silent_settings(const Run& run, const std::vector<std::string>& assignments,
                                         const SetupWith& with) {
  std::vector<std::string> silent;
  for (const auto& [key, value] : settings_of(run, assignments)) {
    if (is_silent(run, key, value, with)) silent.push_back(key);
  }
  return silent;
}

}  // namespace moeline
