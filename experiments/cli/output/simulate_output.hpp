// A run as JSON (the interface contract), CSV, or tables for people.
#pragma once

#include <string>

#include "experiments/report/fields.hpp"
#include "experiments/run/run.hpp"
#include "experiments/run/samples.hpp"
#include "timeline/write_trace.hpp"

namespace moeline {

/// What is shown beside a run. Each may be null.
struct Beside {
  const Run* baseline = nullptr;     ///< the same work without overlap
  const Run* burst = nullptr;        ///< the same at the boost clock
  const Samples* samples = nullptr;  ///< the same scenario with other seeds
};

[[nodiscard]] std::string to_json(const Run& run, const Beside& beside);
/// Of that, and of requests (serve_output.hpp).
[[nodiscard]] std::string simulate_schema();
/// The phases, one per line.
[[nodiscard]] std::string to_csv(const Run& run);
/// The schedules that `schedule: auto` chose among; empty where the scenario named its own.
[[nodiscard]] std::string tried_table(const Run& run);
[[nodiscard]] std::string to_table(const Run& run, const Beside& beside);
/// Of a whole pipeline: its step, and each rank's bubble.
[[nodiscard]] std::string pipeline_table(const Run& run);

// A whole step of training: as JSON, as tables, and what a trace shows besides its kernels.

/// "stages" and "ranks". REQUIRES: the run is a whole step of training, as below.
[[nodiscard]] Fields<Run> step_fields();

[[nodiscard]] std::string step_table(const Run& run);

/// A track of the rank's slots, and its saved activations over time.
void add_step_tracks(const Run& run, std::uint32_t rank, TraceOptions& trace);

}  // namespace moeline
