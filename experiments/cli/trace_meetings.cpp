#include "experiments/cli/trace_meetings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/lowering/joint_message.hpp"

namespace moeline {
namespace {

// As PyTorch names them.
const char* collective_of(JointMessage::Kind kind) {
  switch (kind) {
    case JointMessage::Kind::barrier:
      return "barrier";
    case JointMessage::Kind::all_to_all:
      return "all_to_all";
    case JointMessage::Kind::all_reduce:
      return "allreduce";
    case JointMessage::Kind::all_gather:
      return "allgather";
    case JointMessage::Kind::reduce_scatter:
      return "reduce_scatter";
  }
  return "";
}

// Long lists as PyTorch abbreviates them.
std::string list_of(std::vector<int> ranks) {
  constexpr std::size_t kMost = 30;
  if (ranks.size() <= kMost) return fmt::format("[{}]", fmt::join(ranks, ", "));
  const int last = ranks.back();
  ranks.resize(kMost - 1);
  return fmt::format("[{}, ..., {}]", fmt::join(ranks, ", "), last);
}

std::string name_of(const JointRanks& ranks, const Parallelism& split) {
  if (ranks.size >= split.group()) return "all";
  const std::string apart = ranks.distance == 1 ? "" : fmt::format(", {} apart", ranks.distance);
  return fmt::format("{} from {}{}", ranks.size, ranks.first, apart);
}

std::string name_in_stage(const JointMessage& message, const Parallelism& split, int rank) {
  if (message.ranks >= split.world()) return "all";
  const bool is_of_layer = message.distance == 0 || (message.distance == 1 && message.ranks == split.tp);
  return fmt::format("{} {} of rank {}", message.ranks, is_of_layer ? "in a layer" : "replicas", rank);
}

}  // namespace

std::optional<TraceMeeting> trace_meeting(const Run& run, TaskId task, int rank) {
  const std::optional<JointMessage> message = joint_message_of(run.program, task);
  if (!message) return std::nullopt;
  const Parallelism& split = run.setup.scenario.parallelism;
  const char* collective = collective_of(message->kind);
  if (run.setup.scenario.kind().pipeline || is_staged(run.setup.scenario)) {
    return TraceMeeting{collective, name_in_stage(*message, split, rank), "", message->ranks};
  }
  const JointRanks ranks = joint_ranks(*message, split, rank);
  return TraceMeeting{collective, name_of(ranks, split), list_of(ranks.numbers()), ranks.size};
}

}  // namespace moeline
