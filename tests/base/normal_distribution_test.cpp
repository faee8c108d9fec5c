#include "base/random.hpp"

#include <doctest/doctest.h>

TEST_SUITE("base/normal_distribution") {

using namespace moeline;
namespace {

TEST_CASE("the expected maximum of normal numbers is what tables list") {
  CHECK(expected_maximum(1) == doctest::Approx(0).epsilon(1e-4));
  CHECK(expected_maximum(2) == doctest::Approx(0.56419).epsilon(1e-4));
  CHECK(expected_maximum(10) == doctest::Approx(1.53875).epsilon(1e-4));
  CHECK(expected_maximum(100) == doctest::Approx(2.50759).epsilon(1e-4));
}

TEST_CASE("normal quantiles are what tables list, and the last of many in order is their maximum") {
  CHECK(normal_quantile(0.5) == doctest::Approx(0).epsilon(1e-6));
  CHECK(normal_quantile(0.975) == doctest::Approx(1.95996).epsilon(1e-5));
  for (const int count : {2, 8, 64, 256}) {
    const std::vector<double> in_order = expected_in_order(count);
    CHECK(in_order.back() == doctest::Approx(expected_maximum(count)).epsilon(0.05));
    CHECK(in_order.front() == doctest::Approx(-in_order.back()));
  }
}

}  // namespace

}  // TEST_SUITE("base/normal_distribution")
