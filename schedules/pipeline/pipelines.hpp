// The published pipeline schedules: what each rank does, and in which order. When it does so comes out of the graph
// that the slots are lowered to.
#pragma once

#include <string>
#include <vector>

#include "schedules/lowering/program.hpp"
#include "schedules/pipeline/slot.hpp"

namespace moeline {

struct PipelineShape {
  int ranks = 1;
  int micro_batches = 1;  ///< of one pipeline; of DualPipe both directions together
  int chunks = 1;         ///< per rank, of interleaved-1f1b; the others know their own number
  bool combined = false;  ///< 1F1B's pairs of F and B are F&B
};

/// All forward passes, then all backward passes (Huang et al., GPipe, arXiv 1811.06965, figure 2c).
[[nodiscard]] RankSlots gpipe(int rank, const PipelineShape& shape);

/// One forward, one backward (Narayanan et al., arXiv 2104.04473, figure 3: PipeDream-Flush).
[[nodiscard]] RankSlots one_f_one_b(int rank, const PipelineShape& shape);

/// The same with several chunks per rank (there, figure 4 below). REQUIRES: micro-batches a multiple of the ranks.
///
/// Combined (Megatron-Core, --overlap-moe-expert-parallel-comm): one more forward pass warms up, then F and B are one
/// F&B. Neighbours would wait for each other's in turn with as few as 1F1B has, so that it warms up as the interleaved
/// one of a single chunk does.
[[nodiscard]] RankSlots interleaved_one_f_one_b(int rank, const PipelineShape& shape);

/// W split from B and used to fill the end (Qi et al., Zero Bubble, arXiv 2401.10241, figure 2: ZB-H1).
/// REQUIRES: at least as many micro-batches as ranks.
[[nodiscard]] RankSlots zb1p(int rank, const PipelineShape& shape);

/// So many more F warm up that no rank idles until the last B, for about twice 1F1B's activations (there, figure 3:
/// ZB-H2). Its ranks end one after the other, and can begin the next step so if no norm of gradients makes them meet.
/// REQUIRES: micro-batches at least twice the ranks, less one.
[[nodiscard]] RankSlots zb_h2(int rank, const PipelineShape& shape);

/// Two chunks on each rank, in a V, and W apart: no rank idles between its first and last pass where F, B - W and W
/// are equally long, for 1F1B's activations (there, section 6: ZB-V).
[[nodiscard]] RankSlots zbv(int rank, const PipelineShape& shape);

/// The same for about half and a third of 1F1B's activations (Qi et al., Pipeline Parallelism with Controllable Memory,
/// arXiv 2405.15362). Their block repeats without gaps where F, B - W and W are equally long, and is not rearranged at
/// its ends.
[[nodiscard]] RankSlots v_half(int rank, const PipelineShape& shape);
[[nodiscard]] RankSlots v_min(int rank, const PipelineShape& shape);

/// A V: the first chunk of a rank as micro-batches go down the ranks, the second as they come up again.
[[nodiscard]] std::vector<Chunk> chunks_in_a_v(int rank, int ranks);

/// Micro-batches from both ends, F of one direction overlapped with B of the other (DeepSeek-V3, arXiv 2412.19437,
/// figure 5, as executed by deepseek-ai/DualPipe). Direction 0 has the first half of the micro-batches.
/// REQUIRES: an even number of ranks, and an even number of micro-batches, at least twice the ranks.
[[nodiscard]] RankSlots dualpipe(int rank, const PipelineShape& shape);

/// One half of DualPipe's ranks with the work of both: micro-batches run down the ranks and up again (deepseek-ai/
/// DualPipe; "cut-in-half"). REQUIRES: micro-batches at least twice the ranks.
[[nodiscard]] RankSlots dualpipev(int rank, const PipelineShape& shape);

/// DualPipe's eight steps on the rank that is `inward` ranks away from the nearer end, of `half` ranks from an end to
/// the middle. `slots`: its two chunks, the one whose micro-batches come from the nearer end first.
[[nodiscard]] RankSlots dualpipe_steps(int inward, int half, int micro_batches_per_chunk, SlotWriter slots);

/// What the schedule of this name, which is a whole pipeline's, does on a rank.
[[nodiscard]] RankSlots slots_of(const std::string& schedule, int rank, const PipelineShape& shape);
/// The same of all ranks.
[[nodiscard]] std::vector<RankSlots> slots_of(const std::string& schedule, const PipelineShape& shape);

// A scenario's pipeline: what each of its ranks does, and the program of slots of given length.

/// What each rank does, in order.
[[nodiscard]] std::vector<RankSlots> pipeline_slots(const Scenario& scenario);

/// One task for each slot, as long as the scenario says; nothing else takes time. REQUIRES: it gives slot costs.
[[nodiscard]] Program given_slots(const Scenario& scenario);

}  // namespace moeline
