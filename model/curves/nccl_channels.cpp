#include "curves/nccl_channels.hpp"

#include <algorithm>
#include <cmath>

namespace moeline {
namespace {

constexpr double kKiB = 1024;
constexpr double kOfCollective = 32 * kKiB;  // of a message, on each channel: 512 threads of 64 bytes
constexpr double kOfPeerInNode = 8 * kKiB, kOfPeerBetween = 128 * kKiB;  // the least that a channel gets of a peer's
constexpr double kPeersOfChannel = 8;                                    // between nodes, one after the other
constexpr double kMostInNode = 32, kMostBetween = 2;                     // channels of one peer

double power_of_two(double channels) { return std::exp2(std::ceil(std::log2(channels))); }

// Point to point, each peer gets the same.
double channels_of_peers(double bytes, double peers, bool in_node, double all) {
  const double most = in_node ? std::max(1.0, std::min(kMostInNode, all / peers)) : kMostBetween;
  const double each = std::clamp(std::ceil(bytes / (in_node ? kOfPeerInNode : kOfPeerBetween)), 1.0, most);
  return in_node ? peers * each : std::ceil(peers / kPeersOfChannel) * each;
}

}  // namespace

int nccl_channels(const Operator& op, const MachineFacts& machine) {
  const Traffic& traffic = op.traffic;
  const bool in_node = traffic.wire_bytes == 0;
  const double all = in_node ? machine.nccl_channels : machine.nccl_channels_between;
  if (all == 0) return 0;
  const bool sends = op.family == Family::send, by_peers = sends || op.family == Family::all_to_all;
  const double peers = sends ? 1 : traffic.members, bytes = sends ? op.bytes : traffic.message_bytes;
  const double most = by_peers ? power_of_two(all) : all;
  const double channels =
      by_peers ? channels_of_peers(bytes / peers, peers, in_node, most) : std::floor(bytes / kOfCollective);
  return static_cast<int>(std::min(std::clamp(channels, 1.0, most), machine.sms - 1));
}

}  // namespace moeline
