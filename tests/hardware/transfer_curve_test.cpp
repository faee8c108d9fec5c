// The all-to-all's cost curves: what binds, and how they move with SMs, ranks, tokens and the machine.
#include <doctest/doctest.h>

#include "curves/curve.hpp"
#include "hardware/price.hpp"
#include "moe/all_to_all.hpp"

TEST_SUITE("hardware/transfer_curve") {

using namespace moeline;

namespace {

MachineFacts h800() {
  MachineFacts facts;
  facts.sms = 132;
  facts.fp8_tflops = 1979;
  facts.bf16_tflops = 989.5;
  facts.sm_clock_mhz = 1830;
  facts.hbm_GBps = 3350;
  facts.nvlink_GBps = 160;
  facts.nic_GBps = 50;
  facts.gpus_per_node = 8;
  return facts;
}

// Near those of H800's kernels of late 2025.
KernelSet kernel_set(bool own_node_over_nic = false) {
  KernelSet set;
  set.constants.fill(kUnknown);
  const auto know = [&](Constant constant, double value) { set.constants[static_cast<std::size_t>(constant)] = value; };
  know(Constant::all_to_all_hop, 3.7);
  know(Constant::dispatch_copy, 57);
  know(Constant::combine_copy, 73);
  know(Constant::normal_nic, 1.1);
  know(Constant::normal_own_node, own_node_over_nic ? 1.1 : 0);
  know(Constant::normal_nvlink, 1.2);
  know(Constant::low_latency_startup, 12);
  know(Constant::low_latency_reach, 18);
  know(Constant::low_latency_nic, 1.15);
  know(Constant::low_latency_own_node, own_node_over_nic ? 1.15 : 0);
  know(Constant::low_latency_waits, own_node_over_nic ? 0 : 0.3);
  know(Constant::low_latency_node_dispatch, 3);
  know(Constant::low_latency_nvlink, 1.3);
  know(Constant::low_latency_hold, 20);
  know(Constant::low_latency_hold_copy, 1.3);
  know(Constant::dispatch_stretch, 5);
  set.fitted_on = h800();
  return set;
}

AllToAllWork work_of(int ep, double tokens) {
  const double nodes = ep / 8.0;
  return {7168, 8, tokens, 256, ep, 8, {std::min(nodes, 3.9), std::min(7.4, 5.3 + nodes / 4)}};
}

Price on(const Operator& op, int sms, const MachineFacts& machine = h800(), const KernelSet& set = kernel_set()) {
  return price(op, {.sms = sms}, machine, set);
}

double low_latency_us(Stage stage, int ep, double tokens, const MachineFacts& machine = h800(),
                      const KernelSet& set = kernel_set()) {
  return on(low_latency_dispatch(work_of(ep, tokens), stage), 132, machine, set).solo_us;
}

}  // namespace

TEST_CASE("few SMs bind a transfer between nodes, then the NIC, within a node NVLink does") {
  const Operator dispatch = normal_dispatch(work_of(64, 4096)).back();
  CHECK(on(dispatch, 2).bound_by == "SMs");
  CHECK(on(dispatch, 24).bound_by == "NIC");
  CHECK(on(normal_dispatch(work_of(8, 4096)).back(), 24).bound_by == "NVLink");
}

TEST_CASE("two nodes of H800 are bound by NVLink, two of a machine with twice the NVLink by the NIC") {
  const Operator dispatch = normal_dispatch(work_of(16, 4096)).back();
  CHECK(on(dispatch, 24).bound_by == "NVLink");
  MachineFacts faster = h800();
  faster.nvlink_GBps = 450;
  CHECK(on(dispatch, 64, faster).bound_by == "NIC");
}

TEST_CASE("more SMs never make a large transfer slower, and twice the bytes take less than twice the time") {
  for (const int ep : {8, 16, 32, 64}) {
    for (int sms = 2; sms < 64; ++sms) {
      const Operator op = normal_combine(work_of(ep, 4096)).back();
      CHECK(on(op, sms + 1).solo_us <= on(op, sms).solo_us * 1.005);  // the pipeline fills a little slower
    }
    const double once = on(normal_combine(work_of(ep, 4096)).back(), 24).solo_us;
    const double twice = on(normal_combine(work_of(ep, 8192)).back(), 24).solo_us;
    CHECK(twice < 2 * once);
    CHECK(twice > 1.8 * once);
  }
}

TEST_CASE("transfers speed up with the link that binds them") {
  MachineFacts faster = h800();
  faster.nic_GBps = 100;
  const Operator normal = normal_dispatch(work_of(64, 4096)).back();
  CHECK(on(normal, 64, faster).solo_us < 0.8 * on(normal, 64).solo_us);
  CHECK(low_latency_us(Stage::whole, 64, 128, faster) < 0.6 * low_latency_us(Stage::whole, 64, 128));
}

TEST_CASE("the own node's messages load the NIC only where the library sends them there") {
  const Operator normal = normal_dispatch(work_of(32, 4096)).back();
  const Operator wire = low_latency_dispatch(work_of(32, 128), Stage::wire);
  for (const Operator& op : {normal, wire}) {
    const Price off = on(op, 24);
    const Price over = on(op, 24, h800(), kernel_set(true));
    CHECK(over.solo_us > off.solo_us);
    const double own = is_low_latency(op.family) ? op.traffic.nvlink_bytes : op.traffic.rdma_bytes / 4;
    CHECK(off.nic_GBps * off.solo_us * 1e3 == doctest::Approx(op.traffic.wire_bytes));
    CHECK(over.nic_GBps * over.solo_us * 1e3 == doctest::Approx(op.traffic.wire_bytes + own));
  }
}

TEST_CASE("issue, wire and receive add up to the whole, the wire holds no SM and takes the links alone") {
  for (const int ep : {8, 16, 64, 256}) {
    for (const double tokens : {1.0, 16.0, 64.0, 128.0, 256.0}) {
      const double issue = low_latency_us(Stage::issue, ep, tokens);
      const double receive = low_latency_us(Stage::receive, ep, tokens);
      CAPTURE(ep);
      CAPTURE(tokens);
      CHECK(issue == receive);
      CHECK(issue >= 0);
      CHECK(issue + low_latency_us(Stage::wire, ep, tokens) + receive ==
            doctest::Approx(low_latency_us(Stage::whole, ep, tokens)));
    }
  }
  const Price wire = on(low_latency_dispatch(work_of(64, 128), Stage::wire), 132);
  CHECK(wire.hold == Hold::nothing);
  CHECK(wire.sms == 0);
  CHECK(wire.nic_GBps > 0);
  const Price issue = on(low_latency_dispatch(work_of(64, 128), Stage::issue), 132);
  CHECK(issue.hold == Hold::elastic);
  CHECK(issue.nic_GBps == 0);
}

TEST_CASE("no wire is faster than its bytes at the links' peaks") {
  for (const int ep : {8, 16, 64}) {
    const Operator wire = low_latency_combine(work_of(ep, 512), Stage::wire);
    CHECK(on(wire, 132).solo_us >= links_us(wire, h800()) * (1 - 1e-12));
  }
}

TEST_CASE("low latency grows with tokens from a start-up, and hardly with ranks beyond a few nodes") {
  CHECK(low_latency_us(Stage::whole, 64, 1) > 20);
  CHECK(low_latency_us(Stage::whole, 64, 128) < 128 * low_latency_us(Stage::whole, 64, 1));
  CHECK(low_latency_us(Stage::whole, 256, 128) > low_latency_us(Stage::whole, 64, 128));
  CHECK(low_latency_us(Stage::whole, 256, 128) < 1.15 * low_latency_us(Stage::whole, 64, 128));
}

TEST_CASE("messages over NVLink keep the NIC waiting, unless the library sends them over the NIC as well") {
  MachineFacts slower = h800();
  slower.nvlink_GBps = 80;
  CHECK(on(low_latency_dispatch(work_of(16, 128), Stage::whole), 132).bound_by == "NIC");
  CHECK(low_latency_us(Stage::whole, 16, 128, slower) > low_latency_us(Stage::whole, 16, 128) + 5);
  CHECK(low_latency_us(Stage::whole, 256, 128, slower) < low_latency_us(Stage::whole, 256, 128) + 1);  // few stay
  CHECK(low_latency_us(Stage::whole, 16, 128, slower, kernel_set(true)) ==
        low_latency_us(Stage::whole, 16, 128, h800(), kernel_set(true)));
}

TEST_CASE("a low-latency transfer starts later the more of its messages leave the node") {
  const double one = low_latency_us(Stage::whole, 8, 1), two = low_latency_us(Stage::whole, 16, 1);
  const double four = low_latency_us(Stage::whole, 32, 1), many = low_latency_us(Stage::whole, 256, 1);
  CHECK(two - one > 4);
  CHECK(four - two > 3);
  CHECK(many - four > 3);
  CHECK(many < 12 + 18 + 3);  // start-up, all of the latency between nodes, and eight messages
}

TEST_CASE("beside compute kernels a normal transfer is slower, by what its copies take longer than the wire") {
  const Operator normal = normal_dispatch(work_of(64, 4096)).back();
  const auto beside_us = [&](const Operator& op, double nic_GBps) {
    MachineFacts facts = h800();
    facts.nic_GBps = nic_GBps;
    const Price p = price(op, {.sms = 24, .overlapped = true}, facts, kernel_set());
    return p.solo_us / p.disturbed_speed;
  };
  const Curve curve = transfer_curve(normal, 24, h800());
  CHECK(beside_us(normal, 50) == doctest::Approx(copying_us(curve, 5, kernel_set().constants)));
  CHECK(beside_us(normal, 100) == doctest::Approx(beside_us(normal, 50)));  // the copies bind already
  MachineFacts narrow = h800();
  narrow.nic_GBps = 5;
  CHECK(beside_us(normal, 5) == on(normal, 24, narrow).solo_us);  // the wire binds, and does not mind
  CHECK(
      price(low_latency_dispatch(work_of(64, 128), Stage::whole), {.sms = 24, .overlapped = true}, h800(), kernel_set())
          .disturbed_speed == 1);
}

TEST_CASE("without constants a transfer takes what the links need, and says so") {
  KernelSet bare;
  bare.constants.fill(kUnknown);
  const Operator dispatch = normal_dispatch(work_of(64, 4096)).back();
  const Price p = on(dispatch, 24, h800(), bare);
  CHECK(p.provenance == Provenance::roofline);
  CHECK(p.solo_us >= links_us(dispatch, h800()));
  const Price wire = on(low_latency_dispatch(work_of(64, 128), Stage::wire), 132, h800(), bare);
  CHECK(wire.provenance == Provenance::roofline);
  CHECK(wire.hold == Hold::nothing);
}

}  // TEST_SUITE("hardware/transfer_curve")
