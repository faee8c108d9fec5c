// One measured time, and the cost curve that should meet it.
#pragma once

#include <string>

#include "base/error.hpp"
#include "hardware/curve.hpp"
#include "moe/architecture.hpp"

namespace moeline {

/// What the error of a measurement grows with.
enum class Noise {
  profiled,  ///< whole microseconds beside other kernels: between relative and absolute errors
  timed      ///< a benchmark of its own: relative errors
};

struct Observation {
  std::string family{};  ///< of FamilyFit, or "launch"
  double measured_us = 0;
  Curve curve{};
  double size = 0;      ///< size_of(op)
  int sms = 0;          ///< of a resident kernel
  std::string where{};  ///< "attn(F) 15, layer 0"
  int ranks = 0;        ///< of a transfer
  Noise noise = Noise::profiled;
  std::string fold{};  ///< of cross-validation: observations with the same fold are left out together; "": never
};

}  // namespace moeline
