// Observations from calib/bench's own table: kernels alone, their launches included.
#pragma once

#include <string>
#include <vector>

#include "calib/fit/bench_table.hpp"
#include "calib/fit/observation.hpp"

namespace moeline {

/// The kernel of a measurement: of its key or, of a contention, the one that it names. REQUIRES: it is one kernel
/// (not a copy or a launch).
[[nodiscard]] Operator bench_operator(const Measurement& measurement);

/// How many SMs it was told to use: `machine`'s unless the measurement says.
[[nodiscard]] int bench_sms(const Measurement& measurement, const MachineFacts& machine);

/// Medians of the samples, as timed observations. A kernel's time contains the gap to the next one; both are solved for
/// together. Copies and contention are no part of the fit. Folds: n x k of a
/// GEMM, whatever its layout, since they share constants; lengths of a prompt, batch of a decode, bytes of a
/// memory-bound kernel. Throws SpecError where the table's machine has another number of SMs than `machine`.
[[nodiscard]] std::vector<Observation> bench_observations(const BenchTable& table, const MachineFacts& machine,
                                                          TileSet tiles);

}  // namespace moeline
