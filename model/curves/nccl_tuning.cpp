#include "curves/nccl_tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "curves/topology.hpp"

namespace moeline {
namespace {

enum Protocol : std::size_t { ll, ll128, simple };
constexpr std::array<Protocol, 3> kProtocols = {ll, ll128, simple};
constexpr std::array<const char*, 3> kProtocolNames = {"LL", "LL128", "Simple"};

using ByProtocol = std::array<double, 3>;
constexpr ByProtocol kTreeBase = {6.8, 14.0, 8.4}, kRingBase = {6.6, 14.0, 8.4};
constexpr ByProtocol kTreeHop = {0.6, 1.25, 4.0}, kRingHop = {0.6, 1.9, 3.4};         // inside a node, over NVLink
constexpr ByProtocol kTreeNetHop = {5.0, 8.5, 14.0}, kRingNetHop = {2.7, 4.0, 14.0};  // between nodes
constexpr double kNetOverhead = 1;    // us that a ring's hop inside a node takes at least where there are several
constexpr double kRingPlateau = 1.4;  // on the latency of a ring that pipelines

// What LL carries at most, GB/s of a ring: hosts write its flags (Intel's, of two nodes and of more).
constexpr double kMostLl = 39, kMostLlOfMany = 20.4;

// treeCorrectionFactor: of a tree's bandwidth, by the power of two of bytes / 64.
constexpr std::array<std::array<double, 24>, 3> kTreeCorrection = {
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, 1}}};

// Between the powers interpolated: stepping up at one, it would make more bytes quicker.
double tree_correction(Protocol protocol, double bytes) {
  const auto& factors = kTreeCorrection[protocol];
  const double power = std::clamp(std::log2(bytes / 64), 0.0, static_cast<double>(factors.size() - 1));
  const auto low = static_cast<std::size_t>(power), high = std::min(low + 1, factors.size() - 1);
  return std::lerp(factors[low], factors[high], power - static_cast<double>(low));
}

struct Ranks {
  double all, per_node, nodes;
  double nics_GBps, nvlink_GBps;  // that a node sends to others, and a GPU to its neighbours
  [[nodiscard]] double most_ll() const { return nodes > 2 ? kMostLlOfMany : kMostLl; }
};

double reached_GBps(const MachineFacts& machine) { return machine.nccl_nic_share * nic_rate_GBps(machine); }

Ranks ranks_of(const Traffic& traffic, const MachineFacts& machine) {
  const double all = traffic.members, per_node = traffic.members_per_node;
  const double nvlink = per_node > 1 ? nvlink_rate_GBps(machine) : INFINITY;
  return {all, per_node, std::ceil(all / per_node), reached_GBps(machine) * per_node, nvlink};
}

struct Cost {
  double latency_us, GBps;  // of the whole message
  double nic_bytes;
  const char* link;  // that carries it
};

const char* link_of(double nics_GBps, const Ranks& ranks) { return nics_GBps > ranks.nvlink_GBps ? "NVLink" : "NIC"; }

// Up the tree and down; two trees, in which each node is a leaf once, so that on two nodes each NIC
// carries half of the bytes.
Cost tree(Protocol protocol, const Ranks& ranks, double bytes) {
  const double levels = std::floor(std::log2(ranks.nodes));
  const double latency =
      kTreeBase[protocol] + 2 * ((ranks.per_node - 1) * kTreeHop[protocol] + levels * kTreeNetHop[protocol]);
  const double nics = ranks.nics_GBps * (ranks.nodes > 2 ? 1 : 2);
  double bus = 0.92 * std::min(nics, ranks.nvlink_GBps);
  if (protocol == ll) bus = std::min(bus / 3.8, ranks.most_ll());
  if (protocol == ll128) bus *= 120.0 / 128;
  const double sent = bytes * (ranks.nodes > 2 ? 2 : 1) / ranks.per_node;
  return {latency, bus / 2 * tree_correction(protocol, bytes), sent, link_of(nics, ranks)};
}

Cost ring(Protocol protocol, const Ranks& ranks, double rounds, double bytes) {
  constexpr double kChannels = 16, kPipelined = 64;  // bytes of a rank and channel
  const double steps = rounds * (ranks.all - 1), between = rounds * (ranks.nodes - 1);
  const double hop = std::max(kRingHop[protocol], kNetOverhead * (protocol == simple ? 3 : 1));
  double latency = kRingBase[protocol] + (steps - between) * hop + between * kRingNetHop[protocol];
  if (protocol == simple && rounds > 1 && bytes >= kPipelined * kChannels * ranks.all) latency *= kRingPlateau;
  double bus = std::min(ranks.nics_GBps, ranks.nvlink_GBps);
  if (protocol == ll) bus = std::min(bus / 2, ranks.most_ll());
  if (protocol == ll128) bus *= 0.92;
  return {latency, bus * ranks.all / steps, bytes * steps / ranks.all / ranks.per_node,
          link_of(ranks.nics_GBps, ranks)};
}

// The first bytes go at half the rate, until the pipeline of chunks is full.
NcclChoice choice_of(const Cost& cost, double bytes, const MachineFacts& machine) {
  const double latency = machine.nccl_call_us + cost.latency_us, sent = bytes / (cost.GBps * 1e3);
  return {latency + sent + std::min(sent, machine.nccl_ramp_us), latency, cost.nic_bytes, cost.link};
}

NcclChoice by_messages(const Operator& op, const MachineFacts& machine) {
  const int peers = std::max(1, op.traffic.members - op.traffic.members_per_node);
  const double bytes = op.traffic.wire_bytes;
  return choice_of({(peers - 1) * machine.nccl_peer_us, reached_GBps(machine), bytes, "NIC"}, bytes, machine);
}

}  // namespace

NcclChoice nccl_choice(const Operator& op, const MachineFacts& machine) {
  if (op.family == Family::send || op.family == Family::all_to_all) return by_messages(op, machine);
  MOELINE_CHECK(op.traffic.members > op.traffic.members_per_node, op.name);
  const Ranks ranks = ranks_of(op.traffic, machine);
  const bool reduces_all = op.family == Family::all_reduce;
  const double bytes = op.traffic.message_bytes;
  NcclChoice best{.us = INFINITY};
  const auto take_quicker = [&](const Cost& cost, const char* algorithm, Protocol protocol) {
    NcclChoice choice = choice_of(cost, bytes, machine);
    choice.algorithm = algorithm;
    choice.protocol = kProtocolNames[protocol];
    if (choice.us < best.us) best = choice;
  };
  for (const Protocol protocol : kProtocols) {
    if (reduces_all) take_quicker(tree(protocol, ranks, bytes), "tree", protocol);
    take_quicker(ring(protocol, ranks, reduces_all ? 2 : 1, bytes), "ring", protocol);
  }
  return best;
}

}  // namespace moeline
