// Lists in a plan of what is searched.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/spec.hpp"

namespace moeline {

/// Throws SpecError where there is none, or one stands twice.
template <class Values>
[[nodiscard]] Values each_once(const Spec& spec, const char* key, Values values) {
  if (values.empty()) throw spec.error(key, "has no values");
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

/// 1, 2, 4, ... up to `most`.
[[nodiscard]] inline std::vector<int> powers_of_two(int most) {
  std::vector<int> powers;
  for (int power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

}  // namespace moeline
