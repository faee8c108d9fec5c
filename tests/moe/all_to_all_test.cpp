// Bytes of the all-to-all, and where redundant experts send tokens.
#include "moe/all_to_all.hpp"

#include <doctest/doctest.h>

#include "architecture/architecture.hpp"

TEST_SUITE("moe/all_to_all") {

using namespace moeline;

namespace {

AllToAllWork work_of(int ep, double tokens) { return {7168, 8, tokens, 256, ep, 8, {}}; }

}  // namespace

TEST_CASE("low-latency messages are DeepEP's: 7408 bytes out, 14336 back, one per token and expert") {
  const Traffic out = low_latency_dispatch(work_of(64, 128), Stage::whole).traffic;
  CHECK(out.record_bytes == 7408);
  CHECK(out.copied_bytes == 128 * 8 * 7408);
  CHECK(low_latency_combine(work_of(64, 128), Stage::whole).traffic.copied_bytes == 128 * 8 * 14336);
}

TEST_CASE("low-latency bytes are the NIC's, NVLink's, and the own rank's") {
  for (const int ep : {4, 8, 16, 64, 256}) {
    const Traffic t = low_latency_dispatch(work_of(ep, 128), Stage::whole).traffic;
    CHECK(t.wire_bytes + t.nvlink_bytes + t.copied_bytes / ep == doctest::Approx(t.copied_bytes));
    if (ep <= 8) CHECK(t.wire_bytes == 0);
  }
}

TEST_CASE("the stages of a low-latency transfer move the same bytes over the links") {
  const Traffic whole = low_latency_dispatch(work_of(64, 128), Stage::whole).traffic;
  const Traffic wire = low_latency_dispatch(work_of(64, 128), Stage::wire).traffic;
  CHECK(wire.wire_bytes == whole.wire_bytes);
  CHECK(wire.stage == Stage::wire);
}

TEST_CASE("normal copies count the own node's, links do not") {
  AllToAllWork work = work_of(32, 4096);
  work.spread = {3.6, 7.2};
  const Traffic t = normal_dispatch(work).back().traffic;
  CHECK(t.record_bytes == 7472);
  CHECK(t.rdma_bytes == doctest::Approx(4096 * 3.6 * 7472));
  CHECK(t.wire_bytes == doctest::Approx(t.rdma_bytes * 3 / 4));
  CHECK(t.nvlink_bytes == doctest::Approx(4096 * 7.2 * 7472 * 7 / 8));
  CHECK(t.copied_bytes == doctest::Approx(4096 * (3.6 + 7.2) * 7472));
}

TEST_CASE("redundant experts spread tokens over the nodes of their deployment") {
  const Architecture model = load_architecture("deepseek-v3");
  const Spread decode = expected_spread(model, 144, 8, 1, 32);  // 18 nodes, two experts per GPU
  CHECK(decode.nodes_per_token > 5.5);
  CHECK(decode.nodes_per_token < 8);
  CHECK(decode.ranks_per_token > decode.nodes_per_token);
  CHECK(decode.ranks_per_token <= 8);
  const Spread prefill = expected_spread(model, 32, 8, 1, 32);  // nine experts per GPU, groups stay together
  CHECK(prefill.nodes_per_token == doctest::Approx(expected_spread(model, 32, 8).nodes_per_token).epsilon(0.02));
}

TEST_CASE("exactly balanced loads add up to all token-expert pairs, redundant experts share them") {
  const Architecture model = load_architecture("deepseek-v3");
  const Spread spread = expected_spread(model, 144, 8, 1, 32);
  const ExpertLoad load = exact_load(model, 128, 144, spread, 32);
  CHECK(load.valid == doctest::Approx(128 * 8));  // of every rank: what one rank sends, one receives
  CHECK(load.rows == 2 * 512);                    // 2 experts, 512 rows each
  CHECK(load.received == doctest::Approx(128 * spread.ranks_per_token));
  const ExpertLoad padded = exact_load(model, 100, 144, spread, 32);
  CHECK(padded.rows == 2 * 512);
  CHECK(padded.valid == doctest::Approx(800));
}

}  // TEST_SUITE("moe/all_to_all")
