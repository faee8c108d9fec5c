// What each rank of a pipeline holds in memory over a step of training.
#pragma once

#include "experiments/run/step_report.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Weights, gradients and optimizer states of the rank's stages stay. What a pass saves is there from the start of its
/// F until the end of its B, or the start of the next slot if that comes first; of a B without the gradients of
/// weights, what those need is there from then on until the end of their W. What is offloaded is there as
/// StayOnGpu says. REQUIRES: the report has its slots.
void add_memory(const Setup& setup, StepReport& report);

/// Weights, gradients and optimizer states of a rank whose stages have `own` parameters, each stage on `copies` ranks
/// of the pipeline; replicas share what is split, as replicas.hpp counts them. `neighbours`: of split ones, which
/// blocks are there whole at once: one that runs, and the one that comes or goes beside it.
[[nodiscard]] StepMemory lasting_memory(const Setup& setup, const StageParameters& own, int copies,
                                        const std::vector<StageParameters>& neighbours = {});

/// Bytes of the fullest GPU, or less: weights, gradients, optimizer states and layers' activations, as if stages were
/// equal, less a tenth since they are not; no workspace, no logits. REQUIRES: a whole pipeline of operators.
[[nodiscard]] double least_memory_bytes(const Setup& setup);

}  // namespace moeline
