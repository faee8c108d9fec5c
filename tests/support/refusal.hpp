// What is refused, and with which words.
#pragma once

#include <doctest/doctest.h>

#include <concepts>
#include <string>

#include "base/error.hpp"

namespace moeline::testing {

/// What `work` is refused with; "" where it is not.
template <std::invocable Work>
std::string refusal_of(Work work) {
  try {
    work();
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

template <std::invocable Work>
void check_refused_with(const std::string& says, Work work) {
  CAPTURE(says);
  const std::string said = refusal_of(work);
  CHECK_MESSAGE(said.find(says) != std::string::npos, "says: " << said);
}

}  // namespace moeline::testing
