// On how many SMs NCCL runs, against what its logs say.
#include "curves/nccl_channels.hpp"

#include <doctest/doctest.h>

#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("hardware/nccl_channels") {

using namespace moeline;
using namespace moeline::testing;

namespace {

int sms_of(const char* machine, const std::string& text) {
  const HardwareProfile profile = load_profile(machine);
  const RequestedOp op = parse_op(text, profile.facts);
  return price(op.kernels.front(), op.conditions, profile.facts, profile.kernels("")).sms;
}

}  // namespace

TEST_CASE("large collectives use all channels: 24 in an H100 node, 32 in a GB300 domain, 16 between H100 nodes") {
  CHECK(sms_of("h100", "all_reduce:ranks=8,bytes=100000000") == 24);
  CHECK(sms_of("h800", "all_reduce:ranks=8,bytes=100000000") == 16);
  CHECK(sms_of("gb300-nvl72", "all_gather:ranks=8,bytes=100000000") == 32);
  CHECK(sms_of("h100", "reduce_scatter:ranks=32,bytes=100000000") == 16);
  CHECK(sms_of("a100", "reduce_scatter:ranks=16,bytes=100000000") == 8);
}

TEST_CASE("small ones use fewer, one for each 32 KiB") {
  CHECK(sms_of("h100", "all_reduce:ranks=8,bytes=10000") == 1);
  CHECK(sms_of("h100", "all_reduce:ranks=8,bytes=131072") == 4);
}

TEST_CASE("an all-to-all has channels for each peer: 32 in a node of eight, between nodes two or one for eight peers") {
  CHECK(sms_of("h100", "all_to_all:ranks=8,bytes=10000000") == 32);
  CHECK(sms_of("h100", "all_to_all:ranks=8,bytes=32768") == 8);
  CHECK(sms_of("h100", "all_to_all:ranks=16,bytes=100000000") == 4);
  CHECK(sms_of("h100", "all_to_all:ranks=64,bytes=1000000000") == 16);
  CHECK(sms_of("h100", "send:bytes=100000,to=node") == 1);
}

TEST_CASE("where a machine's channels are not known none are charged") {
  CHECK(sms_of("mi300x", "all_reduce:ranks=8,bytes=100000000") == 0);
}

TEST_CASE("in Megatron's steps NCCL takes SMs from what computes beside it") {
  const auto ms = [](const std::string& set) {
    return step_ms(run_scenario(read_setup(
        Spec::parse("s.yaml",
                    "schema: 1\nmodel: qwen3-30b-a3b\nhardware: h100\nschedule: 1f1b\noverlap: combined\nlayers: 4\n"
                    "parallelism: {pp: 1, ep: 8, dp: 8}\nlaunch: graph\ncomm: {mode: all_to_all}\n"
                    "workload: {phase: train, seq_len: 4096, global_batch_size: 64}\n"
                    "training: {operators: megatron}\n"),
        {set})));
  };
  CHECK(ms("hardware.nccl_channels=24") > ms("hardware.nccl_channels=0"));
}

}  // TEST_SUITE("hardware/nccl_channels")
