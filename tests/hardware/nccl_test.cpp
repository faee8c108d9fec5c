// Collectives between nodes by NCCL's cost model.
#include "curves/nccl_tuning.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("hardware/nccl") {

using namespace moeline;

namespace {

const HardwareProfile& h100() {
  static const HardwareProfile kProfile = load_profile("h100");
  return kProfile;
}

Operator op_of(const std::string& text) { return parse_op(text, h100().facts).kernels.front(); }
NcclChoice choice_of(const std::string& text) { return nccl_choice(op_of(text), h100().facts); }
Price priced(const std::string& text, const MachineFacts& facts = h100().facts) {
  const RequestedOp op = parse_op(text, facts);
  return price(op.kernels.front(), op.conditions, facts, h100().kernels("open-2025-late"));
}
double us(const std::string& text, const MachineFacts& facts = h100().facts) { return priced(text, facts).solo_us; }

const std::vector<std::string> kKinds = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};

}  // namespace

TEST_CASE("of 128 bytes on three nodes NCCL printed a tree by LL and 25.2 us, NVIDIA/nccl issue 1453") {
  const NcclChoice choice = choice_of("all_reduce:ranks=24,bytes=128");
  CHECK(std::string(choice.algorithm) == "tree");
  CHECK(std::string(choice.protocol) == "LL");
  CHECK(choice.latency_us - h100().facts.nccl_call_us == doctest::Approx(25.2).epsilon(0.001));
}

TEST_CASE("of 512 MiB on three nodes it printed a ring by Simple") {
  const NcclChoice choice = choice_of("all_reduce:ranks=24,bytes=536870912");
  CHECK(std::string(choice.algorithm) == "ring");
  CHECK(std::string(choice.protocol) == "Simple");
}

TEST_CASE("no collective between nodes gets quicker with more bytes or more ranks") {
  for (const std::string& kind : kKinds) {
    double before = 0;
    for (double bytes = 64; bytes < 1e10; bytes *= 1.1) {
      const double now = us(fmt::format("{}:ranks=16,bytes={}", kind, bytes));
      CHECK_MESSAGE(now >= before, kind << " " << bytes);
      before = now;
    }
    for (const char* bytes : {"1024", "1048576", "1073741824"}) {
      double fewer = 0;
      for (int ranks = 16; ranks <= 2048; ranks *= 2) {
        const double more = us(fmt::format("{}:ranks={},bytes={}", kind, ranks, bytes));
        CHECK_MESSAGE(more >= fewer * 0.999, kind << " " << bytes << " " << ranks);
        fewer = more;
      }
    }
  }
}

TEST_CASE("none sends more than its NIC carries") {
  for (const std::string& kind : kKinds) {
    for (const int ranks : {16, 24, 64, 512}) {
      const Price price = priced(fmt::format("{}:ranks={},bytes=1e9", kind, ranks));
      CHECK_MESSAGE(price.nic_GBps <= h100().facts.nic_GBps, kind << " " << ranks);
      CHECK_MESSAGE(price.nvlink_GBps <= h100().facts.nvlink_GBps, kind << " " << ranks);
    }
  }
  CHECK(priced("send:to=node,bytes=1e9").nic_GBps <= h100().facts.nic_GBps);
}

TEST_CASE("on two nodes the two trees of an all-reduce send half of what a ring does") {
  const Operator op = op_of("all_reduce:ranks=16,bytes=1e9");
  const NcclChoice choice = nccl_choice(op, h100().facts);
  CHECK(std::string(choice.algorithm) == "tree");
  CHECK(choice.nic_bytes == doctest::Approx(op.traffic.wire_bytes * 8 / 15));
}

TEST_CASE("a small one takes a call, base and hops, whatever the NIC; a large one goes by the NIC's rate") {
  MachineFacts slow = h100().facts;
  slow.nic_GBps /= 2;
  CHECK(us("all_reduce:ranks=16,bytes=1024", slow) ==
        doctest::Approx(us("all_reduce:ranks=16,bytes=1024")).epsilon(0.01));
  CHECK(us("all_gather:ranks=16,bytes=1e10", slow) > 1.9 * us("all_gather:ranks=16,bytes=1e10"));
  CHECK(priced("all_reduce:ranks=16,bytes=1024").bound_by == "latency");
  CHECK(priced("all_reduce:ranks=64,bytes=1e10").bound_by == "NIC");
  CHECK(priced("all_reduce:ranks=16,bytes=1e10").bound_by == "NVLink");  // trees of two nodes spare the NIC
}

TEST_CASE("ranks alone on their nodes have a NIC each and no NVLink between them") {
  CHECK(us("all_reduce:ranks=8,gpus_per_node=1,bytes=1e9") > 4 * us("all_reduce:ranks=16,gpus_per_node=8,bytes=1e9"));
  const NcclChoice choice = choice_of("all_gather:ranks=8,gpus_per_node=1,bytes=1e9");
  CHECK(choice.nic_bytes == doctest::Approx(1e9 * 7 / 8));
}

TEST_CASE("a message to the next node waits for a call, one beside it does not") {
  CHECK(us("send:to=node,bytes=1024") > h100().facts.nccl_call_us);
  CHECK(us("send:to=gpu,bytes=1e9") < us("send:to=node,bytes=1e9") / 5);
}

TEST_CASE("what the model leaves out is a fact of the machine") {
  MachineFacts efa = h100().facts;
  efa.nccl_call_us = 80;
  CHECK(us("all_reduce:ranks=16,bytes=1024", efa) ==
        doctest::Approx(us("all_reduce:ranks=16,bytes=1024") + 80 - h100().facts.nccl_call_us));
}

}  // TEST_SUITE("hardware/nccl")
