// Buffers of the libraries' all-to-alls.
#include "moe/dispatcher_buffers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace moeline::buffers {
namespace {

constexpr double kBf16 = 2;

// Tokens in the queues: the larger of dispatch and combine; DeepEP rounds the RDMA ones up to whole chunks.
struct Queues {
  int largest_ep;
  double nvlink, rdma;
};
constexpr std::array<Queues, 6> kQueues = {
    {{8, 256, 0}, {16, 288, 140}, {32, 288, 128}, {64, 288, 140}, {128, 560, 132}, {1 << 30, 720, 132}}};

}  // namespace

double low_latency(const BufferWork& work) {
  const double experts = work.local_experts * work.ep;
  const double bf16 = work.hidden * kBf16;
  const double scales = std::floor(work.hidden / 128) * 4;
  const double dispatch = 16 + std::max(bf16, work.hidden + scales);
  const double combine = bf16 + scales;
  const double send = work.tokens * std::max(dispatch, experts * combine);
  const double receive = work.tokens * experts * std::max(dispatch, combine);
  return 2 * (send + receive + experts * 4);
}

double normal(const BufferWork& work) {
  constexpr double kGpus = 8;        // of a node; DeepEP's first version knows no other
  constexpr double kSourceMeta = 8;  // bytes: rank and ranks of the node that want the token
  constexpr double kMostTopK = 128, kMostScales = 128;
  const double channels = work.sms / 2;  // NOLINT: whole channels
  const double nodes = std::max(1.0, std::floor(work.ep / kGpus));
  const double token = work.hidden * kBf16 + kSourceMeta + kMostTopK * (8 + 4) + kMostScales * 4;
  const Queues& queues =
      *std::find_if(kQueues.begin(), kQueues.end(), [&](const Queues& each) { return work.ep <= each.largest_ep; });
  const double nvlink = channels * std::min<double>(work.ep, kGpus) * (queues.nvlink * token + (2 * nodes + 3) * 4);
  if (work.ep <= kGpus) return nvlink;
  const double rdma = 2 * channels * nodes * (queues.rdma * (token + 16) + (2 * kGpus + 2) * 4) + (1 << 20);
  return nvlink + rdma;
}

double nvlink(const BufferWork& work) {
  return work.ep * work.tokens * work.hidden * (activation_bytes(work.dispatch) + kBf16);
}

double deepep_v2(const BufferWork& work) {
  constexpr double kAlignment = 2 << 20, kMostChannels = 8 * 160, kTokenAlignment = 32;
  const auto aligned = [](double bytes, double to) { return std::ceil(bytes / to) * to; };
  // A scale for each 32 numbers is what it reckons with, and 12 bytes for each expert of a token.
  const bool scaled = work.dispatch != Precision::bf16;
  const double out = aligned(work.hidden * number_bytes(work.dispatch) +
                                 (scaled ? std::ceil(work.hidden / 32) * 4 : 0) + 12.0 * work.top_k + 8,
                             kTokenAlignment);
  const double back = aligned(work.hidden * kBf16 + 4.0 * work.top_k, kTokenAlignment);
  const double nodes = std::max(1.0, std::floor(1.0 * work.ep / work.gpus_per_node)), node_size = work.ep / nodes;
  const double tokens = work.tokens;
  const auto results = [&](double places) { return std::min<double>(places, work.top_k); };
  if (nodes > 1 && work.topology == Topology::hybrid) {
    const double from_nodes = nodes * (tokens + kMostChannels);
    const double dispatch = work.ep * tokens + tokens + from_nodes;
    const double combine = results(node_size) * nodes * tokens + results(nodes) * tokens + from_nodes;
    return aligned(std::max(dispatch * out, combine * back), kAlignment);
  }
  const double send = nodes > 1 ? 1 : 0;  // over NVLink there is no copy to send from
  const double dispatch = (send + work.ep) * tokens;
  const double combine = (send * work.ep + results(work.ep)) * tokens;
  return aligned(std::max(dispatch * out, combine * back), kAlignment);
}

double pplx(const BufferWork& work) {
  const double received = work.ep * work.tokens * std::min<double>(work.top_k, work.local_experts);
  return (work.tokens * work.top_k + received) * work.hidden * kBf16;
}

double fused(const BufferWork& work) {
  return work.tokens * work.hidden * (activation_bytes(Precision::fp8) + work.top_k * kBf16);
}

}  // namespace moeline::buffers
