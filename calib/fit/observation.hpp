// One measured time, and the terms of the cost curve that should add up to it.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "hardware/curve.hpp"
#include "moe/architecture.hpp"

namespace moeline {

struct Observation {
  std::string family;  ///< of FamilyFit, or "launch"
  double measured_us = 0;
  std::vector<Term> terms;
  double size = 0;    ///< size_of(op)
  int sms = 0;        ///< of a resident kernel
  std::string where;  ///< "attn(F) 15, layer 0"
  int ranks = 0;      ///< of a transfer
};

}  // namespace moeline
