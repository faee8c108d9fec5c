// Weights, gradients and optimizer states of a GPU in training: what stays through a step.
#pragma once

#include "experiments/memory/parts.hpp"
#include "moe/training_memory.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Of a rank whose stages have `own` parameters, each stage on `copies` ranks of the pipeline; replicas share what is
/// split, as replicas.hpp counts them. `neighbours`: of split ones, which blocks are there whole at once: one that
/// runs, and the one that comes or goes beside it.
[[nodiscard]] StepMemory lasting_memory(const Setup& setup, const StageParameters& own, int copies,
                                        const std::vector<StageParameters>& neighbours = {});

/// Bytes that the rank's optimizer needs beside its states while it runs: dense layers and routed experts are updated
/// one after the other.
[[nodiscard]] double update_memory(const Setup& setup, const StageParameters& own, int copies);

/// Bytes of the fullest GPU, or less: weights, gradients, optimizer states and layers' activations, as if stages were
/// equal, less a tenth since they are not; no workspace, no logits. REQUIRES: a whole pipeline of operators.
[[nodiscard]] double least_memory_bytes(const Setup& setup);

}  // namespace moeline
