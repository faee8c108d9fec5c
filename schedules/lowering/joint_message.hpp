// A message between GPUs has two ends, and each takes its own links.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/lowering/program.hpp"

namespace moeline {

/// Of a message's kernel, what the end that sends, or the one that receives, takes of links and memory.
void keep_end(bool sends, PreparedKernel& kernel);

// What ranks send each other in the kernels that they run together, as other simulators of networks count it.

struct JointMessage {
  enum class Kind : std::uint8_t { barrier, all_to_all, all_reduce, all_gather, reduce_scatter };
  Kind kind = Kind::barrier;
  int ranks = 0;     ///< that take part
  int distance = 0;  ///< between their numbers; 0: they are those of experts, moe_tp apart
  double bytes = 0;  ///< that a rank holds before it
};

/// Of a task that is a collective, a barrier or an all-to-all; a low-latency transfer is its part on the wire, and what
/// issues and receives it computes. Nothing where ranks send nothing together: also for messages between two ranks, and
/// for kernels that compute and send at once.
/// Bytes of an all-to-all are as many as make a rank send what it sends in ours, of N equal parts all but its own:
/// where a token goes to a node once and is passed on there, both ways count.
[[nodiscard]] std::optional<JointMessage> joint_message_of(const Program& program, TaskId task);

/// So many ranks, so far apart, from the first one on.
struct JointRanks {
  int size = 0, distance = 1, first = 0;
  bool operator==(const JointRanks&) const = default;
  [[nodiscard]] std::vector<int> numbers() const;
};
/// Those that take part in a message of `rank`, by their numbers in the group that waits for each other in a layer.
[[nodiscard]] JointRanks joint_ranks(const JointMessage& message, const Parallelism& split, int rank);

}  // namespace moeline
