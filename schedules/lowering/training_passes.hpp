// Passes of a micro-batch through blocks of the model, put onto the streams of a rank: one alone, or two overlapped.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "schedules/lowering/training_phases.hpp"
#include "schedules/scenario/overlap_plan.hpp"

namespace moeline {

enum class PassKind {
  forward,
  backward,        ///< gradients of inputs and weights
  backward_input,  ///< of inputs alone
  weight,          ///< of weights alone
};

/// The phases that take a pass's data and give it: activations, or their gradients. Of weights' gradients neither.
struct PassTasks {
  PhaseTasks input, output;
};

/// Of a block: its first task (kNoTask where the pass has nothing to do there), and the end of its computation.
struct BlockTasks {
  TaskId first = kNoTask, computed = kNoTask;
};
/// What is appended around each block of a pass. Either may be empty.
struct AroundBlocks {
  std::function<std::vector<TaskId>(const Block&)> before;  ///< gives what the block waits for
  std::function<void(const Block&, const BlockTasks&)> after;
};

/// Both of them. What `one` appends before a block comes first.
[[nodiscard]] AroundBlocks both(AroundBlocks one, AroundBlocks other);

/// `blocks` in order of execution, one phase after the other, whatever their streams.
[[nodiscard]] PassTasks append_pass(RankProgram& rank, TrainingPhases& phases, PassKind kind,
                                    std::span<const Block> blocks, int micro_batch, const AroundBlocks& around = {});

/// What a plan of overlapped passes must place.
[[nodiscard]] PlanContents training_plan_contents();
/// The scenario's plan of them; dualpipe-chunk.yaml where `overlap` is no path.
[[nodiscard]] OverlapPlan training_plan(const Scenario& scenario);

struct OverlappedPasses {
  std::span<const Block> forward, backward;  ///< in order of execution: those at one place run side by side
  int forward_micro_batch = 0;
  int backward_micro_batch = 0;
  AroundBlocks around_forward{}, around_backward{};
};
struct OverlappedTasks {
  PassTasks forward, backward;
};

/// A forward and a full backward pass in the order of the plan, which is one of MoE layers: what other blocks have to
/// do stands where a MoE layer's mlp phase of that kind does. Recomputation of a whole layer runs before its turn.
[[nodiscard]] OverlappedTasks append_overlapped(RankProgram& rank, TrainingPhases& phases, const OverlapPlan& plan,
                                                const OverlappedPasses& passes);

}  // namespace moeline
