// Keys that plans for serving and for training share: the machines, and lists of what is searched.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/spec.hpp"

namespace moeline {

struct PlanHardware {
  std::string name;
  std::string kernels;           ///< empty: the newest set
  double usd_per_gpu_hour = 0;   ///< 0: not given
  std::vector<std::string> set;  ///< "nic_GBps=45"
};

/// `plan`: the whole file. Throws SpecError for a machine, kernel set or fact that is not known, and where several
/// machines are compared without their prices.
[[nodiscard]] std::vector<PlanHardware> read_plan_hardware(const Spec& plan, const std::filesystem::path& file);

/// The first lines of a scenario: schema, model, hardware, kernels. A model's path may hold what means something in
/// YAML.
[[nodiscard]] std::string scenario_head(const std::string& model, const PlanHardware& machine);
/// Its changed facts, as after simulate --set.
void add_facts(const PlanHardware& machine, std::vector<std::string>& set);

// Lists in a plan of what is searched.

/// Throws SpecError where there is none, or one stands twice, or there are more than a thousand.
template <class Values>
[[nodiscard]] Values each_once(const Spec& spec, const char* key, Values values) {
  constexpr std::size_t kMost = 1000;
  if (values.empty()) throw spec.error(key, "has no values");
  if (values.size() > kMost) throw spec.error(key, "has more than 1000 values");
  for (auto value = values.begin(); value != values.end(); ++value) {
    if (std::find(values.begin(), value, *value) != value) throw spec.error(key, "has a value twice");
  }
  return values;
}

[[nodiscard]] inline std::vector<int> integers_or_none(const Spec& spec, const char* key, int low, int high) {
  if (!spec.has(key)) return {};
  return each_once(spec, key, spec.integers(key, low, high));
}

[[nodiscard]] inline std::vector<std::string> texts_or_none(const Spec& spec, const char* key) {
  return spec.has(key) ? spec.texts(key) : std::vector<std::string>{};
}

/// Of lists that are crossed, before anything is made of them. Throws SpecError at `key` for more than a million
/// combinations; `sizes`: values of each list, 0 where it is not given.
inline void check_combinations(const Spec& spec, const char* key, std::initializer_list<std::size_t> sizes) {
  constexpr double kMost = 1e6;
  double combinations = 1;
  for (const std::size_t size : sizes) combinations *= static_cast<double>(std::max<std::size_t>(size, 1));
  if (combinations <= kMost) return;
  throw spec.error(key, fmt::format("lists {:.3g} combinations; at most a million are searched", combinations));
}

/// 1, 2, 4, ... up to `most`.
[[nodiscard]] inline std::vector<int> powers_of_two(int most) {
  std::vector<int> powers;
  for (int power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

}  // namespace moeline
