// The steps of a server or a training loop, and which GPU events belong to them.
#pragma once

#include "trace/annotation_levels.hpp"

namespace moeline {

/// Finds TraceRecords::steps and GpuEvent::step. The annotation of a step on the host and its twins on the streams are
/// one step: those around the launch of an event and around the event itself, where they bear the same name; and twins
/// of one name on different streams that follow each other and whose annotation on the host nothing tells. Steps
/// without a GPU event do not count. REQUIRES what attribute() does.
void find_steps(TraceRecords& records, const Levels& levels);

/// Names of annotations that are steps though nobody knows their names: each holds many repetitions of one sequence of
/// kernels, the layers of a model. Empty where an annotation that holds a notable part of the events does not: the
/// names say phases then. REQUIRES attribute().
[[nodiscard]] std::set<std::string> names_around_repetitions(const TraceRecords& records);

}  // namespace moeline
