// How what ranks split comes together: the keys of comm.
#pragma once

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Where they do not enter, they must still be spelt right.
void check_comm_keys(const Spec& spec);
/// REQUIRES: `setup` has its scenario's parallelism.
[[nodiscard]] Comm read_comm(const Spec& spec, const Setup& setup);

}  // namespace moeline
