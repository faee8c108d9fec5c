// The steps of a server or a training loop, which GPU events belong to them, and how they are found: by what
// annotations say, or by what repeats itself (repetitions.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/assemble_trace.hpp"

namespace moeline {

/// Around a step of a server, or a numbered iteration: what steps of the same work have in common, such as
/// "DECODE bs=32". Nothing for any other annotation. The known names are a table in steps.cpp.
[[nodiscard]] std::optional<std::string> kind_of_step(std::string_view name);

/// N of "ProfilerStep#N", which PyTorch's profiler writes.
[[nodiscard]] std::optional<std::uint32_t> profiler_step(std::string_view name);

/// The name without a number at its end: "my step 17" is of the kind "my step".
[[nodiscard]] std::string without_number(std::string_view name);

/// Annotations that frameworks make themselves and that are neither steps nor phases.
[[nodiscard]] bool is_of_framework(std::string_view name);

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
