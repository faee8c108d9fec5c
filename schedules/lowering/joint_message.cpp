#include "schedules/lowering/joint_message.hpp"

#include <algorithm>

namespace moeline {
namespace {

bool is_outgoing(RankResource link) {
  return link == RankResource::nvlink_out || link == RankResource::nic_out || link == RankResource::host_out;
}

}  // namespace

void keep_end(bool sends, PreparedKernel& kernel) {
  std::erase_if(kernel.usages, [&](const Usage& usage) {
    const auto link = static_cast<RankResource>(usage.link);
    return link != RankResource::hbm && is_outgoing(link) != sends;
  });
}

namespace {

using Kind = JointMessage::Kind;

std::optional<Kind> kind_of_message(const Operator& op) {
  switch (op.family) {
    case Family::notify:
    case Family::nvlink_prepare:
      return Kind::barrier;
    case Family::all_reduce:
      return Kind::all_reduce;
    case Family::all_gather:
      return Kind::all_gather;
    case Family::reduce_scatter:
      return Kind::reduce_scatter;
    case Family::all_to_all:
    case Family::nvlink_dispatch:
    case Family::nvlink_combine:
      return Kind::all_to_all;
    default:
      break;
  }
  const bool sends = op.traffic.stage == Stage::whole || op.traffic.stage == Stage::wire;
  return is_all_to_all(op.family) && sends ? std::optional(Kind::all_to_all) : std::nullopt;
}

double held_bytes(Kind kind, const Traffic& traffic, int ranks) {
  switch (kind) {
    case Kind::barrier:
      return 0;
    case Kind::all_to_all:
      return (traffic.wire_bytes + traffic.nvlink_bytes) * ranks / (ranks - 1);
    case Kind::all_gather:
      return traffic.message_bytes / ranks;
    case Kind::all_reduce:
    case Kind::reduce_scatter:
      break;
  }
  return traffic.message_bytes;
}

}  // namespace

std::optional<JointMessage> joint_message_of(const Program& program, TaskId task) {
  const Execution execution = program.execution_of(task);
  if (execution.kernel == Execution::kNone) return std::nullopt;
  const Operator& op = program.kernels[execution.kernel].op;
  const std::optional<Kind> kind = kind_of_message(op);
  const int ranks = op.traffic.members > 0 ? op.traffic.members : op.traffic.ranks;
  if (!kind || ranks < 2) return std::nullopt;
  return JointMessage{.kind = *kind,
                      .ranks = ranks,
                      .distance = op.traffic.members > 0 ? op.traffic.ranks / ranks : 0,
                      .bytes = static_cast<double>(execution.share) * held_bytes(*kind, op.traffic, ranks)};
}

std::vector<int> JointRanks::numbers() const {
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) ranks.push_back(first + i * distance);
  return ranks;
}

JointRanks joint_ranks(const JointMessage& message, const Parallelism& split, int rank) {
  if (message.ranks >= split.group()) return {split.group(), 1, 0};
  const int distance = message.distance > 0 ? message.distance : split.moe_tp;
  const int span = message.ranks * distance;
  return {message.ranks, distance, rank / span * span + rank % distance};
}

}  // namespace moeline
