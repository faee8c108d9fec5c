// A run as JSON (the interface contract), CSV, or tables for people.
#pragma once

#include <string>

#include "experiments/run/run.hpp"
#include "experiments/run/samples.hpp"

namespace moeline {

/// `samples`: the same scenario with other seeds; may be null.
[[nodiscard]] std::string to_json(const Run& run, const Samples* samples);
/// The phases, one per line.
[[nodiscard]] std::string to_csv(const Run& run);
/// `baseline`: the same work without overlap, shown beside; may be null.
[[nodiscard]] std::string to_table(const Run& run, const Run* baseline);
/// What of it is chance.
[[nodiscard]] std::string to_table(const Samples& samples);
/// Of a whole pipeline: its step, and each rank's bubble.
[[nodiscard]] std::string pipeline_table(const Run& run);

}  // namespace moeline
