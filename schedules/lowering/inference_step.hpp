// What a step of inference consists of beside its MoE layers, whatever their schedule.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedules/lowering/inference_program.hpp"
#include "schedules/lowering/program.hpp"
#include "schedules/scenario/overlap_plan.hpp"

namespace moeline {

/// Phases of a dense layer.
[[nodiscard]] std::vector<std::string> dense_phases(const Setup& setup, const Layer& layer);

/// Appends layers by position in order of execution.
using AppendLayers = std::function<void(int first, int count)>;

/// The whole model: embedding, dense layers, MoE layers, LM head, and the MTP module once for each drafted token. With
/// a given number of layers: those MoE layers alone.
void append_step(InferenceRank& rank, const AppendLayers& dense_layers, const AppendLayers& moe_layers);

/// The same one phase after the other, of one micro-batch; but shared experts may run beside routed ones.
void append_in_turn(InferenceRank& rank, const Setup& setup, int micro_batch);

// A step of prefill or decode whose phases stand in an overlap plan: schedules/*.yaml.

[[nodiscard]] Program planned_step(const Setup& setup);

/// The scenario's plan, and what any such plan must place.
[[nodiscard]] OverlapPlan inference_plan(const Setup& setup);
[[nodiscard]] PlanContents inference_plan_contents(const Setup& setup);

}  // namespace moeline
