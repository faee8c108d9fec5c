// What profiles say of their kernel sets is what validate finds.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/validate/validation.hpp"
#include "hardware/profile.hpp"
#include "tests/support/data.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("published/kernel_sets") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const KernelSet& set_of(const HardwareProfile& profile, const std::string& name) {
  const auto found = std::find_if(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                                  [&](const KernelSet& set) { return set.name == name; });
  REQUIRE(found != profile.kernel_sets.end());
  return *found;
}

void check_errors(const KernelSet& set, const char* facts) {
  const Validation validation = validate({source("tests/published") / facts});
  const std::vector<ScoredFact>& scored = validation.subjects.at(0).facts;
  CHECK(scored.size() == set.published_errors.size());
  for (const ScoredFact& fact : scored) {
    CAPTURE(fact.fact.key);
    CHECK(std::abs(set.published_errors.at(fact.fact.key) - fact.error()) < 0.0006);
  }
}

}  // namespace

TEST_CASE("a set's errors in published throughput are those of validate" * doctest::skip(kSanitized)) {
  const HardwareProfile h800 = load_profile("h800");
  check_errors(set_of(h800, "deepseek-2025-02"), "inference_throughput.yaml");
  check_errors(set_of(h800, "open-2025-late"), "inference_throughput_late_kernels.yaml");
}

TEST_CASE("the nearest set is the one that comes nearest to what was published") {
  const HardwareProfile h800 = load_profile("h800");
  const auto nearest = h800.nearest_to_published();
  REQUIRE(nearest.size() == 2);
  CHECK(nearest.front()->name == "deepseek-2025-02");
  CHECK(load_profile("h100").nearest_to_published().empty());
}

}  // TEST_SUITE("published/kernel_sets")
