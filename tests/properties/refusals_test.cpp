// What is refused is refused by name.
#include <doctest/doctest.h>

#include "tests/support/random_scenarios.hpp"

TEST_SUITE("properties/refusals") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Of scenarios that are refused; those that run have nothing to show here.
std::optional<std::string> nameless_refusal(const ScenarioKeys& keys) {
  try {
    (void)run_scenario(setup_of(yaml_of(keys)));
  } catch (const SpecError& error) {
    if (!error.key().empty()) return "";
    return "no key is named: " + kind_of(error.reason());
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("every refusal names the key that is refused") { none_in_any_scenario(nameless_refusal, 200); }

}  // TEST_SUITE("properties/refusals")
