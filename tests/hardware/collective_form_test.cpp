// Collectives inside a node: how their forms move with bytes and ranks, and which OPs are priced by them.
#include <fmt/format.h>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "curves/form.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/profile.hpp"
#include "moe/collectives.hpp"

TEST_SUITE("hardware/collective_form") {

using namespace moeline;

namespace {

constexpr double kMiB = 1 << 20;

MachineFacts hopper() {
  MachineFacts machine;
  machine.sms = 132;
  machine.sm_clock_mhz = 1830;
  machine.fp8_tflops = 1979;
  machine.nvlink_GBps = 450;
  machine.gpus_per_node = 8;
  return machine;
}

Replicas in_node(int ranks) { return {ranks, ranks, {ranks, 0}}; }

// Near those of H100's all-reduce and SGLang's.
const std::vector<double> kNccl = {4.8, 1.65, 3.9, 13, 4.1, 1.2, 0.45, 1.06};
const std::vector<double> kCustom = {2.4, 0.14, 1.46, 4, 1.6};

Evaluation timed(const char* form, const std::vector<double>& constants, const Operator& op) {
  return evaluate(form_named(form)->curve(op, 132, hopper()), constants);
}
double nccl_us(const Operator& op, const char* form = "nccl") { return timed(form, kNccl, op).us; }

using Builder = Operator (*)(double bytes, const Replicas& replicas);

}  // namespace

TEST_CASE("a larger message never takes less time, the switch of protocols included") {
  for (const char* form : {"nccl", "nccl_sm100"}) {
    for (const Builder build : {all_reduce, all_gather, reduce_scatter, all_to_all}) {
      for (const int ranks : {2, 4, 8}) {
        double before = 0;
        for (double bytes = 256; bytes < 2e9; bytes *= 1.19) {
          const double us = nccl_us(build(bytes, in_node(ranks)), form);
          CHECK(us >= before);
          before = us;
        }
      }
    }
  }
}

TEST_CASE("more ranks never take less time for the same message") {
  for (const Builder build : {all_reduce, all_gather, reduce_scatter}) {
    for (double bytes = 256; bytes < 2e9; bytes *= 3) {
      for (const int ranks : {2, 3, 4, 6}) {
        CHECK(nccl_us(build(bytes, in_node(ranks + 1))) >= nccl_us(build(bytes, in_node(ranks))));
      }
    }
  }
}

TEST_CASE("an all-to-all's low-latency protocol goes by what each peer gets, which more ranks make less") {
  std::vector<double> by_bytes(kNccl.size(), 0);
  by_bytes[2] = 1;    // LL's bytes alone
  by_bytes[3] = 1e9;  // and never Simple
  const double two = timed("nccl", by_bytes, all_to_all(kMiB, in_node(2))).us;
  CHECK(timed("nccl", by_bytes, all_to_all(kMiB, in_node(8))).us == doctest::Approx(two / 4));
  CHECK(timed("nccl", by_bytes, all_gather(kMiB, in_node(8))).us ==
        doctest::Approx(timed("nccl", by_bytes, all_gather(kMiB, in_node(2))).us));
}

TEST_CASE("on Blackwell rings leave the low-latency protocol at 2 MiB per rank, and only rings of more than two") {
  const std::vector<double> slow_start = {4.8, 1.65, 3.9, 60, 4.1, 1.2, 0.45, 1.06};
  const auto step = [&](Builder build, int ranks) {
    const auto us = [&](double bytes) { return timed("nccl_sm100", slow_start, build(bytes, in_node(ranks))).us; };
    return us(2 * kMiB * ranks) / us(2 * kMiB * ranks - 1);
  };
  CHECK(step(all_reduce, 4) > 1.2);
  CHECK(step(all_gather, 4) > 1.2);
  CHECK(step(all_reduce, 2) < 1.001);
  CHECK(step(all_to_all, 4) < 1.001);
}

TEST_CASE("an all-reduce passes on twice what an all-gather does") {
  for (const int ranks : {2, 8}) {
    const Traffic once = all_gather(1e9, in_node(ranks)).traffic, twice = all_reduce(1e9, in_node(ranks)).traffic;
    CHECK(twice.nvlink_bytes == doctest::Approx(2 * once.nvlink_bytes));
    CHECK(twice.message_bytes == once.message_bytes);
  }
  const Traffic far = all_to_all(64e6, {16, 8, {16, 1}}).traffic;
  CHECK(far.wire_bytes == doctest::Approx(32e6));
  CHECK(far.nvlink_bytes == doctest::Approx(28e6));
}

TEST_CASE("a custom all-reduce goes in one shot until its messages are large, and with two ranks always") {
  const auto shots = [](double bytes, int ranks) {
    return timed("custom_all_reduce", kCustom, custom_all_reduce(bytes, in_node(ranks), 16 * kMiB)).alternative + 1;
  };
  for (const int ranks : {2, 4, 8}) {
    std::size_t before = 1;
    for (double bytes = 256; bytes <= 16 * kMiB; bytes *= 2) {
      CHECK(shots(bytes, ranks) >= before);
      before = shots(bytes, ranks);
    }
    CHECK(before == (ranks == 2 ? 1 : 2));
  }
  const Operator small = custom_all_reduce(4096, in_node(8), 16 * kMiB);
  CHECK(timed("one_shot_all_reduce", {2.4, 0.14, 1.46}, small).us ==
        doctest::Approx(timed("custom_all_reduce", kCustom, small).us));
}

TEST_CASE("more bytes and more ranks never make a custom all-reduce quicker") {
  const auto us = [](double bytes, int ranks) {
    return timed("custom_all_reduce", kCustom, custom_all_reduce(bytes, in_node(ranks), 16 * kMiB)).us;
  };
  for (double bytes = 256; bytes <= 8 * kMiB; bytes *= 2) {
    for (const int ranks : {2, 4, 8}) {
      CHECK(us(2 * bytes, ranks) >= us(bytes, ranks));
      CHECK(us(bytes, ranks + 1) >= us(bytes, ranks));
    }
  }
}

TEST_CASE("NCCL takes what is too large for the custom all-reduce, and what leaves the node") {
  CHECK(custom_all_reduce(1e6, in_node(8), 2e6).measured_as == "custom_all_reduce");
  CHECK(custom_all_reduce(3e6, in_node(8), 2e6).measured_as == "nccl_all_reduce");
  CHECK(custom_all_reduce(1e6, {16, 8, {16, 1}}, 2e6).measured_as.empty());
  MachineFacts ampere = hopper();
  ampere.fp8_tflops = 0;
  CHECK(most_custom_bytes(ampere) == 8 * kMiB);
  CHECK(most_custom_bytes(hopper()) == 16 * kMiB);
}

TEST_CASE("the OPs of collectives are those of the tables inside a node, and rings without a table between nodes") {
  const MachineFacts machine = load_profile("h100").facts;
  const auto op = [&](const std::string& text) { return parse_op(text, machine).kernels.front(); };
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    const Operator near = op(fmt::format("{}:ranks=4,bytes=4096", name));
    CHECK(near.measured_as == fmt::format("nccl_{}", name));
    CHECK(near.traffic.message_bytes == 4096);
    CHECK(near.traffic.members == 4);
    CHECK(near.traffic.wire_bytes == 0);
    const Operator far = op(fmt::format("{}:ranks=16,bytes=4096", name));
    CHECK(far.measured_as.empty());
    CHECK(far.traffic.wire_bytes > 0);
    CHECK_THROWS_AS(op(fmt::format("{}:ranks=12", name)), SpecError);
    CHECK_THROWS_AS(op(fmt::format("{}:ranks=1", name)), SpecError);
  }
  CHECK(op("all_reduce:bytes=4096,impl=custom").measured_as == "custom_all_reduce");
  CHECK(op("all_reduce:bytes=1e9,impl=custom").measured_as == "nccl_all_reduce");
  CHECK_THROWS_WITH_AS(op("all_gather:impl=custom"), doctest::Contains("impl"), SpecError);
  CHECK_THROWS_WITH_AS(op("all_reduce:impl=custom,ranks=16"), doctest::Contains("impl"), SpecError);
}

}  // TEST_SUITE("hardware/collective_form")
