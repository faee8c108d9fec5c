// Bytes that the kernels of DeepEP's second version read, sum up, write and send, and those of its buffers.
#include <doctest/doctest.h>

#include "architecture/architecture.hpp"
#include "moe/all_to_all.hpp"
#include "moe/memory.hpp"

TEST_SUITE("moe/deep_ep_v2") {

using namespace moeline;

namespace {

constexpr double kTokens = 4096, kNodes = 3.6, kRanks = 5.5;
constexpr double kSent = 7168 + 7168 / 128 * 4 + 8 + 8 * 8;  // FP8 and scales, two indices, eight experts with weights
constexpr double kReturned = 7168 * 2 + 8 * 4;

// EP32 on four nodes.
AllToAllWork work_of(Topology topology, RowLayout layout) {
  AllToAllWork work{7168, 8, kTokens, 256, 32, 8, {}};
  work.spread.nodes_per_token = kNodes;
  work.spread.ranks_per_token = kRanks;
  work.rows = kTokens * 8;
  work.elastic = {topology, layout, false};
  return work;
}

double elastic_buffer(int ep, double tokens, Topology topology) {
  GpuWork work;
  work.ep = ep;
  work.prefill = {.requests = 1, .query_len = tokens};
  work.mode = CommMode::deepep_v2;
  work.elastic.topology = topology;
  return memory_per_gpu(load_architecture("deepseek-v3"), work).communication;
}

double whole_2_MB(double bytes) { return std::ceil(bytes / 2097152) * 2097152; }

}  // namespace

TEST_CASE("hybrid, out: a token once to each of its nodes, from where it is forwarded to each of its ranks") {
  const Traffic t = deep_ep_v2_dispatch(work_of(Topology::hybrid, RowLayout::contiguous)).front().traffic;
  CHECK(t.record_bytes == kSent);
  CHECK(t.rdma_bytes == doctest::Approx(kTokens * kNodes * kSent));
  CHECK(t.wire_bytes == doctest::Approx(kTokens * kNodes * 3 / 4 * kSent));
  CHECK(t.nvlink_bytes == doctest::Approx(kTokens * kRanks * 7 / 8 * kSent));
  CHECK(t.read_bytes == doctest::Approx(kTokens * (1 + kNodes) * kSent));
  CHECK(t.copied_bytes == doctest::Approx(kTokens * (1 + kNodes / 4 + kRanks) * kSent));
  CHECK(t.summed_bytes == 0);
}

TEST_CASE("direct, out: a token once to each of its ranks, the own node's over NVLink") {
  const Traffic t = deep_ep_v2_dispatch(work_of(Topology::direct, RowLayout::contiguous)).front().traffic;
  CHECK(t.wire_bytes == doctest::Approx(kTokens * kRanks * 3 / 4 * kSent));
  CHECK(t.nvlink_bytes == doctest::Approx(kTokens * kRanks / 4 * 7 / 8 * kSent));
  CHECK(t.read_bytes == doctest::Approx(kTokens * kSent));
}

TEST_CASE("back: each rank sends a token's sum to the node's forwarder, which sums up again and sends one home") {
  const Traffic t = deep_ep_v2_combine(work_of(Topology::hybrid, RowLayout::contiguous)).front().traffic;
  CHECK(t.record_bytes == kReturned);
  CHECK(t.wire_bytes == doctest::Approx(kTokens * kNodes * 3 / 4 * kReturned));
  CHECK(t.read_bytes == doctest::Approx(kTokens * kRanks * kReturned));
  CHECK(t.summed_bytes == doctest::Approx(kTokens * kRanks * kReturned));
  const Traffic expanded = deep_ep_v2_combine(work_of(Topology::hybrid, RowLayout::expanded)).front().traffic;
  CHECK(expanded.read_bytes == 0);  // a row for each expert, which it sums up itself
  CHECK(expanded.summed_bytes == doctest::Approx(kTokens * (8 + kRanks) * kReturned));
  CHECK(expanded.wire_bytes == t.wire_bytes);
}

TEST_CASE("behind a dispatch tokens are copied out of the buffer, expanded ones to a row for each expert") {
  const auto epilogue = [](RowLayout layout) {
    return deep_ep_v2_dispatch(work_of(Topology::hybrid, layout)).back().bytes;
  };
  CHECK(epilogue(RowLayout::contiguous) == doctest::Approx(kTokens * 2 * kRanks * kSent));
  CHECK(epilogue(RowLayout::expanded) == doctest::Approx(kTokens * (kRanks + 8) * kSent));
  const Operator reduce = deep_ep_v2_combine(work_of(Topology::hybrid, RowLayout::contiguous)).back();
  CHECK(reduce.bytes == doctest::Approx(kTokens * (kNodes + 1) * 7168 * 2));
}

TEST_CASE("on the way back in training the host knows what comes, and waits for no counts") {
  AllToAllWork work = work_of(Topology::hybrid, RowLayout::contiguous);
  work.elastic.cpu_sync = true;
  CHECK(deep_ep_v2_dispatch(work).back().reads_counts);
  CHECK_FALSE(deep_ep_v2_dispatch_gradients(work).back().reads_counts);
}

TEST_CASE(
    "buffers are what the library asks for: of its own example, 8192 tokens of DeepSeek-V3, over NVLink and both ways "
    "between nodes") {
  // FP8 with a scale of four bytes for each 32 numbers, twelve bytes for each expert, two indices; in whole 32 bytes.
  constexpr double kOut = 8192, kBack = 14368;  // 7168 + 896 + 96 + 8 = 8168; 14336 + 32
  constexpr double t = 8192, kChannels = 1280;
  CHECK(elastic_buffer(8, t, Topology::hybrid) == whole_2_MB(8 * t * kBack));
  const double dispatch = (16 * t + t + 2 * (t + kChannels)) * kOut;
  const double combine = (8 * 2 * t + 2 * t + 2 * (t + kChannels)) * kBack;
  CHECK(combine > dispatch);
  CHECK(elastic_buffer(16, t, Topology::hybrid) == whole_2_MB(combine));
  CHECK(elastic_buffer(16, t, Topology::direct) == whole_2_MB((16 + 8) * t * kBack));
  // Many nodes: what comes out could be from anyone, and a token has no more than eight results.
  CHECK(elastic_buffer(64, t, Topology::direct) == whole_2_MB((64 + 8) * t * kBack));
}

}  // TEST_SUITE("moe/deep_ep_v2")
