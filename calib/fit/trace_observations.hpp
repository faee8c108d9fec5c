// Observations from the kernels of DeepSeek's training profile.
#pragma once

#include "base/csv.hpp"
#include "calib/fit/observation.hpp"

namespace moeline {

/// `kernels`: a table of GPU events attributed to phase, layer and position (columns stream, start_us, dur_us,
/// end_us, name, phase, layer, idx, ctas, launch_us, M). Uses the given layers alone.
///
/// Measured times become solo times by what is known to run beside them: an elastic kernel under a transfer had
/// 132 - 20 SMs. Under a barrier it had all of them: the spin's small blocks leave room beside them for everything
/// but attention's, whose blocks need a whole SM (MEASURED: barrier -> dispatch slows these kernels by 1.17, as
/// idle -> dispatch does). Kernels on the communication stream that are not communication are left out: they are
/// squeezed by GEMMs. A transfer's slowdown is over its time by the constants `alone`. Throws SpecError where the
/// kernels are not those of our operator lists.
[[nodiscard]] std::vector<Observation> trace_observations(const CsvTable& kernels, const std::vector<int>& layers,
                                                          const Architecture& model, const MachineFacts& machine,
                                                          const Constants& alone);

}  // namespace moeline
