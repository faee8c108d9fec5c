// Constants that were fitted: no other values come closer to what they were fitted to.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>

namespace moeline::testing {

/// `squared_errors` of the defaults is no more than of any in which one constant is a hundredth more or less.
template <class Constants, class Errors>
void check_least(const Errors& squared_errors, std::initializer_list<double Constants::*> fitted) {
  const double least = squared_errors(Constants{});
  for (double Constants::*constant : fitted) {
    for (const double factor : {0.99, 1.01}) {
      Constants other;
      other.*constant *= factor;
      CHECK(squared_errors(other) >= least);
    }
  }
}

}  // namespace moeline::testing
