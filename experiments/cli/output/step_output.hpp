// A whole step of training, written out: as JSON, as tables, and what a trace shows besides its kernels.
#pragma once

#include <string>

#include "experiments/report/fields.hpp"
#include "experiments/run/run.hpp"
#include "timeline/write_trace.hpp"

namespace moeline {

/// "stages" and "ranks". REQUIRES: the run is a whole step of training, as below.
[[nodiscard]] Fields<Run> step_fields();

[[nodiscard]] std::string step_table(const Run& run);

/// A track of the rank's slots, and its saved activations over time.
void add_step_tracks(const Run& run, std::uint32_t rank, TraceOptions& trace);

}  // namespace moeline
