// The network between nodes: NICs, leaf switches, rails, derated links.
#include "curves/topology.hpp"

#include <doctest/doctest.h>

#include "curves/curve.hpp"
#include "hardware/price.hpp"
#include "moe/all_to_all.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("hardware/topology") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const HardwareProfile& h800() {
  static const HardwareProfile kProfile = load_profile("h800");
  return kProfile;
}

AllToAllWork work_of(int ep, double tokens) {
  const double nodes = ep / 8.0;
  return {7168, 8, tokens, 256, ep, 8, {std::min(nodes, 3.9), std::min(7.4, 5.3 + nodes / 4)}};
}

Operator normal(int ep) { return normal_dispatch(work_of(ep, 4096)).back(); }
Operator low_latency(int ep) { return low_latency_dispatch(work_of(ep, 128), Stage::whole); }

Price priced(const Operator& op, const MachineFacts& facts, int sms = 36) {
  return price(op, {.sms = sms}, facts, h800().kernels("open-2025-late"));
}
double us(const Operator& op, const MachineFacts& facts, int sms = 36) { return priced(op, facts, sms).solo_us; }

// With one latency everywhere.
MachineFacts with_leaves(double nodes, double oversubscription, bool rails = false) {
  MachineFacts facts = h800().facts;
  facts.leaf_latency_us = facts.nic_latency_us;
  facts.leaf_nodes = nodes;
  facts.oversubscription = oversubscription;
  facts.rail_optimized = rails ? 1 : 0;
  return facts;
}

MachineFacts with_near_leaves(double nodes) {
  MachineFacts facts = with_leaves(nodes, 1);
  facts.leaf_latency_us = 2.8;
  return facts;
}

}  // namespace

TEST_CASE("an oversubscription of 4 slows EP64 when leaves have 4 nodes, and not when one leaf has all") {
  for (const Operator& op : {normal(64), low_latency(64)}) {
    const double alone = us(op, h800().facts);
    const Price four = priced(op, with_leaves(4, 4));
    CHECK(four.bound_by == "uplink");
    CHECK(four.solo_us > 1.5 * alone);
    CHECK(us(op, with_leaves(8, 4)) == alone);
    CHECK(us(op, with_leaves(0, 4)) == alone);
    CHECK(us(op, with_leaves(4, 1)) == alone);  // uplinks as wide as the NICs never bind
  }
}

TEST_CASE("of 8 nodes in leaves of 4, four of the seven others are across: 4 x 4 / 7 of the NIC's time") {
  CHECK(cross_leaf_share(normal(64), with_leaves(4, 4)) == doctest::Approx(4.0 / 7));
  const Price far = priced(normal(64), with_leaves(4, 4));
  CHECK(far.nic_GBps == doctest::Approx(priced(normal(64), h800().facts).nic_GBps * 7 / 16).epsilon(0.05));
}

TEST_CASE("rails keep normal transfers inside the leaf, and low-latency messages to other indexes cross") {
  const MachineFacts rails = with_leaves(8, 4, true);
  CHECK(cross_leaf_share(normal(64), rails) == 0);
  CHECK(us(normal(64), rails) == us(normal(64), h800().facts));
  CHECK(cross_leaf_share(low_latency(64), rails) == doctest::Approx(7.0 / 8));  // seven indexes of eight
  CHECK(priced(low_latency(64), rails).bound_by == "uplink");
  CHECK(cross_leaf_share(low_latency(64), with_leaves(4, 4, true)) == doctest::Approx(1 - 3.0 / 56));
}

TEST_CASE("doubling nics_per_gpu halves a NIC-bound transfer, and each NIC carries what one did") {
  MachineFacts twice = h800().facts;
  twice.nics_per_gpu = 2;
  twice.nvlink_GBps = 900;  // else NVLink binds next
  MachineFacts once = h800().facts;
  once.nvlink_GBps = 900;
  const Operator op = normal_dispatch(work_of(64, 65536)).back();
  REQUIRE(priced(op, once, 132).bound_by == "NIC");
  CHECK(us(op, twice, 132) == doctest::Approx(us(op, once, 132) / 2).epsilon(0.02));  // a start-up remains
  CHECK(priced(op, twice, 132).nic_GBps == doctest::Approx(priced(op, once, 132).nic_GBps).epsilon(0.02));
  MachineFacts faster = once;
  faster.nic_GBps = 100;
  CHECK(us(op, twice, 132) == us(op, faster, 132));
}

TEST_CASE("all ranks go at the pace of the slowest link, where that link binds") {
  MachineFacts slow_nic = h800().facts;
  slow_nic.slowest_nic = 0.5;
  MachineFacts slow_nvlink = h800().facts;
  slow_nvlink.slowest_nvlink = 0.5;
  CHECK(us(normal(64), slow_nic) == doctest::Approx(2 * us(normal(64), h800().facts)).epsilon(0.1));
  CHECK(us(low_latency(8), slow_nic) == us(low_latency(8), h800().facts));  // nothing leaves the node
  CHECK(us(low_latency(8), slow_nvlink) > 1.5 * us(low_latency(8), h800().facts));
}

TEST_CASE("a barrier under one leaf is a message there and back at that leaf's latency") {
  const Operator barrier = normal_combine(work_of(64, 4096)).front();
  CHECK(us(barrier, h800().facts) == 2 * 3.7);  // leaves not described
  CHECK(us(barrier, with_near_leaves(8)) == 2 * 2.8);
  CHECK(us(barrier, with_near_leaves(4)) == 2 * 3.7);
}

TEST_CASE("a barrier inside a node knows nothing of the NIC") {
  const Operator barrier = normal_combine(work_of(8, 4096)).front();
  MachineFacts far = h800().facts;
  far.nic_latency_us = far.leaf_latency_us = 370;
  CHECK(us(barrier, far) == us(barrier, h800().facts));
  CHECK(us(barrier, far) == 2 * 3.33);
}

TEST_CASE("a transfer takes a message's latency of the network that it is in, beside what was measured in another") {
  for (const Operator& op : {normal(64), low_latency(64)}) {
    MachineFacts far = h800().facts;
    far.nic_latency_us += 100;
    CHECK(us(op, far) - us(op, h800().facts) == doctest::Approx(100));
    CHECK(us(op, with_near_leaves(64)) - us(op, h800().facts) == doctest::Approx(2.8 - 3.7));  // all under one leaf
  }
  MachineFacts far = h800().facts;
  far.nic_latency_us += 100;
  CHECK(us(low_latency(8), far) == us(low_latency(8), h800().facts));
}

TEST_CASE("no transfer is faster than what crosses leaves takes on the uplinks") {
  const MachineFacts narrow = with_leaves(1, 8);
  CHECK(links_us(normal(64), narrow) == doctest::Approx(8 * links_us(normal(64), with_leaves(1, 1))));
}

TEST_CASE("a network other than the measured one is said in the price") {
  CHECK(priced(normal(64), h800().facts, 24).provenance == Provenance::interpolated);
  CHECK(priced(normal(64), with_leaves(4, 4), 24).note.text().find("other machine") != std::string::npos);
}

TEST_CASE("an EP that fits into an NVLink domain of 72 leaves the NIC idle, in both modes") {
  const MachineFacts nvl72 = load_profile("gb200-nvl72").facts;
  AllToAllWork work = work_of(72, 128);
  work.gpus_per_node = 72;
  work.experts = 288;
  for (const Operator& op : {normal_dispatch(work).back(), low_latency_combine(work, Stage::whole)}) {
    const Price p = priced(op, nvl72);
    CHECK(op.traffic.wire_bytes == 0);
    CHECK(p.nic_GBps == 0);
    CHECK(p.nvlink_GBps > 0);
    if (is_low_latency(op.family)) CHECK(p.bound_by == "NVLink");
  }
}

TEST_CASE("bad values of the network exit 3 with their key") {
  const auto refused = [](const std::string& assignment, const std::string& key) {
    const Outcome outcome = run_moeline({"price", "h800", "dispatch", "--set", "hardware." + assignment});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.err.find(key) != std::string::npos);
  };
  refused("oversubscription=0.5", "oversubscription");
  refused("nics_per_gpu=0", "nics_per_gpu");
  refused("nics_per_gpu=1.5", "nics_per_gpu");
  refused("leaf_nodes=-1", "leaf_nodes");
  refused("rail_optimized=2", "rail_optimized");
  refused("slowest_nic=1.1", "slowest_nic");
  refused("slowest_nvlink=0", "slowest_nvlink");
  refused("leaf_node=4", "leaf_nodes");  // the nearest name
}

TEST_CASE("a profile that says nothing of the network keeps the defaults, and one that does is read back") {
  HardwareProfile profile = h800();
  CHECK(to_yaml(profile).find("oversubscription") == std::string::npos);
  profile = load_profile("h800", {"oversubscription=2", "leaf_nodes=4"});
  const TemporaryFolder folder;
  const HardwareProfile again = load_profile(folder.write("copy.yaml", to_yaml(profile)));
  CHECK(again.facts.oversubscription == 2);
  CHECK(again.facts.leaf_nodes == 4);
  CHECK(again.sources.at("slowest_nic") == h800().sources.at("slowest_nic"));
}

TEST_CASE("trends: a faster NIC, a larger NVLink domain and more SMs help until another resource binds") {
  MachineFacts facts = h800().facts;
  const auto nic_us = [&](const Operator& op, double GBps, int sms) {
    facts.nic_GBps = GBps;
    return us(op, facts, sms);
  };
  CHECK(nic_us(normal(64), 25, 24) > 1.7 * nic_us(normal(64), 50, 24));  // 200 to 400 Gb/s
  CHECK(nic_us(normal(64), 100, 24) < 0.9 * nic_us(normal(64), 50, 24));
  facts.nic_GBps = 100;  // 800 Gb/s
  CHECK(priced(normal(64), facts, 24).bound_by != "NIC");
  CHECK(nic_us(normal(64), 200, 24) == nic_us(normal(64), 100, 24));
  CHECK(nic_us(low_latency(64), 25, 132) > nic_us(low_latency(64), 50, 132));
  CHECK(nic_us(low_latency(64), 50, 132) > nic_us(low_latency(64), 100, 132));
  facts = h800().facts;
  for (int sms = 4; sms < 36; sms += 4) CHECK(us(normal(64), facts, sms + 4) <= us(normal(64), facts, sms) * 1.005);
  CHECK(us(normal(64), facts, 4) > 1.9 * us(normal(64), facts, 8));
  CHECK(us(normal(64), facts, 36) > 0.98 * us(normal(64), facts, 24));  // the NIC binds
  AllToAllWork work = work_of(72, 128);
  double before = 1e9;
  for (const int domain : {8, 18, 36, 72}) {
    facts.gpus_per_node = work.gpus_per_node = domain;
    const double now = us(low_latency_dispatch(work, Stage::whole), facts);
    CHECK(now < before);
    before = now;
  }
}

}  // TEST_SUITE("hardware/topology")
