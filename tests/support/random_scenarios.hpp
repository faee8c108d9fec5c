// A claim about every scenario, held against many that are drawn at random. By default a few hundred, the same each
// time; thousands of others by hand: MOELINE_SCENARIOS=5000 MOELINE_SEED=7 moeline_tests --test-suite=properties/*
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "experiments/run/run.hpp"
#include "schedules/scenario/candidates.hpp"
#include "tests/support/random_scenario.hpp"
#include "tests/support/sanitized.hpp"

namespace moeline::testing {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Of the first schedule that the scenario asks for and that applies. Throws SpecError where none does.
inline Setup first_of(std::vector<Candidate> candidates) {
  const auto applies = [](const Candidate& candidate) { return candidate.setup.has_value(); };
  const auto first = std::find_if(candidates.begin(), candidates.end(), applies);
  REQUIRE(first != candidates.end());
  return std::move(*first->setup);
}
inline Setup setup_of(const std::string& text, const std::vector<std::string>& assignments = {}) {
  return first_of(read_candidates("random.yaml", text, assignments));
}

/// Null where the scenario is refused.
inline std::optional<Run> run_if_legal(const ScenarioKeys& keys, const std::vector<std::string>& assignments = {},
                                       const SimulateOptions& options = {}) {
  try {
    return run_scenario(setup_of(yaml_of(keys), assignments), options);
  } catch (const SpecError&) {
    return std::nullopt;
  }
}

/// Without what is refused, as far as the refusals name what can be left out: such a key, or all keys of a mapping.
inline ScenarioKeys repaired(ScenarioKeys keys) {
  constexpr int kMost = 8;
  for (int i = 0; i < kMost; ++i) {
    try {
      (void)setup_of(yaml_of(keys));
      break;
    } catch (const SpecError& error) {
      const auto is_refused = [&](const auto& entry) { return (entry.first + ".").starts_with(error.key() + "."); };
      if (std::erase_if(keys, is_refused) == 0) break;
    }
  }
  return keys;
}

/// A message without its numbers and names: the same of all scenarios with the same fault.
inline std::string kind_of(const std::string& message) {
  std::string kind;
  bool quoted = false;
  for (const char c : message) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && (c < '0' || c > '9')) kind += c;
  }
  return kind.substr(0, 160);
}

/// What is wrong with a scenario, in words that hold for all that have the same fault; "": nothing; null: it is not
/// asked of this one.
using Violation = std::function<std::optional<std::string>(const ScenarioKeys&)>;

/// Draws scenarios, a quarter as they fall and the others repaired, and prints the smallest with each fault that it
/// finds. REQUIRES: it is asked of one in `one_in` of them at the least.
inline void none_in_any_scenario(const Violation& violation, std::uint64_t usual_count, std::uint64_t one_in = 4) {
  const std::uint64_t count = from_environment("MOELINE_SCENARIOS", kSanitized ? usual_count / 10 : usual_count);
  ScenarioDraw draw(from_environment("MOELINE_SEED", 1));
  std::map<std::string, int> faults;
  std::uint64_t ran = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const ScenarioKeys keys = i % 4 == 0 ? draw.draw() : repaired(draw.draw());
    const std::optional<std::string> fault = violation(keys);
    if (fault) ++ran;
    if (!fault || fault->empty() || faults[*fault]++ > 0) continue;
    const ScenarioKeys least = smallest(keys, [&](const ScenarioKeys& other) { return violation(other) == fault; });
    FAIL_CHECK(*fault, "\n", yaml_of(least));
  }
  for (const auto& [fault, times] : faults) MESSAGE(times, " of ", count, ": ", fault);
  MESSAGE("held against ", ran, " of ", count, " scenarios");
  // Of a tenth of the draws chance decides how many are asked.
  CHECK(ran > (kSanitized ? 0 : count / one_in));
}

}  // namespace moeline::testing
