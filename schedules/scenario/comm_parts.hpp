// How what ranks split comes together: the keys of comm.
#pragma once

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// REQUIRES: `setup` has its scenario's parallelism.
void read_comm(const Spec& spec, Setup& setup);

}  // namespace moeline
