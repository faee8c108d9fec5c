// Steps as phases, so that two runs of one server can be laid beside each other.
#pragma once

#include <set>
#include <string>

#include "trace/step_windows.hpp"

namespace moeline {

/// The same events with other phases: of each kind of step its median, everything that starts while it runs. A kind of
/// `divided` has a phase per layer, named like the kind, in which the layer is its position, and two more for what
/// comes before its first layer and after its last; any other kind is one phase. `steps` and `kinds` are those of the
/// trace's first GPU.
[[nodiscard]] Interpretation phases_of_steps(const Trace& trace, Interpretation meaning,
                                             const std::vector<StepWindow>& steps, const std::vector<StepKind>& kinds,
                                             const std::set<std::string>& divided);

}  // namespace moeline
