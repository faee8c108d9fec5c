// Which kernels of a trace make one phase, and how phases of several micro-batches are compared.
#include <doctest/doctest.h>

#include "tests/support/trace_text.hpp"
#include "timeline/comparison.hpp"

TEST_SUITE("timeline/phases") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// An annotation around one kernel.
std::string annotated(const std::string& name, int start_us, const std::string& place, const std::string& kernel,
                      const std::string& track = kStream7) {
  const std::string when = times(std::to_string(start_us), "10");
  const std::string stream = track == kStream7 ? "7" : "27";
  return slice("gpu_user_annotation", name, track, when, place) + "," +
         slice("kernel", kernel, track, when, R"("stream": )" + stream) + ",";
}

std::string place(int layer, int micro_batch) {
  return R"("layer": )" + std::to_string(layer) + R"(, "micro_batch": )" + std::to_string(micro_batch);
}

std::vector<PhaseTimes> phases_of(std::string events) {
  events.pop_back();
  return phase_times(read(trace_of(events)));
}

PhaseTimes phase(const std::string& name, std::uint32_t micro_batch, int start_us, int end_us) {
  PhaseTimes times;
  times.phase = name;
  times.micro_batch = micro_batch;
  times.start = from_us(start_us);
  times.end = from_us(end_us);
  return times;
}

}  // namespace

TEST_CASE("annotations that name their layer and micro-batch are one phase, issue to receive") {
  const auto phases = phases_of(annotated("dispatch", 0, place(3, 1), "deep_ep::internode_ll::dispatch issue") +
                                annotated("mlp", 10, place(3, 0), "gemm") +
                                annotated("dispatch", 10, place(3, 1), "deep_ep::internode_ll::dispatch", kStream27) +
                                annotated("dispatch", 20, place(3, 1), "deep_ep::internode_ll::dispatch receive") +
                                annotated("dispatch", 30, place(3, 0), "deep_ep::internode_ll::dispatch issue"));
  REQUIRE(phases.size() == 3);
  CHECK(phases[0].phase == "dispatch");
  CHECK(phases[0].layer == 3);
  CHECK(phases[0].micro_batch == 1);
  CHECK(phases[0].stream == 7);
  CHECK(phases[0].span() == from_us(30));
  CHECK(phases[0].transfer == from_us(30));
  CHECK(phases[1].phase == "mlp");
  CHECK_FALSE(phases[1].is_communication());
  CHECK(phases[2].micro_batch == 0);
}

TEST_CASE("annotations of others are counted by name, whatever their args say") {
  const auto phases =
      phases_of(annotated("mlp", 0, "", "gemm") + annotated("mlp", 10, R"("layer": "decoder.1")", "gemm") +
                annotated("mlp", 20, R"("layer": 9)", "gemm") + annotated("attn", 30, "", "gemm"));
  REQUIRE(phases.size() == 4);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(phases[i].layer == i);
  CHECK(phases[3].layer == 0);
  CHECK(phases[3].micro_batch == 0);
}

TEST_CASE("a phase communicates when barriers and transfers are most of its busy time") {
  const auto communicates = [](int busy_us, int barrier_us, int transfer_us) {
    PhaseTimes times;
    times.busy = from_us(busy_us);
    times.barrier = from_us(barrier_us);
    times.transfer = from_us(transfer_us);
    return times.is_communication();
  };
  CHECK_FALSE(communicates(100, 0, 20));  // an attention that ends with an all-reduce
  CHECK(communicates(4924, 1315, 3575));  // combine(B) of the training trace, which holds a cast
  CHECK(communicates(100, 60, 0));
  CHECK_FALSE(communicates(100, 25, 25));
  CHECK_FALSE(communicates(0, 0, 0));
}

TEST_CASE("phases that communicate are scored where there are no others") {
  PhaseTimes transfer = phase("dispatch", 0, 0, 10);
  transfer.busy = transfer.transfer = from_us(10);
  const Score alone = score({transfer}, {transfer}, {0});
  CHECK(alone.phases.size() == 1);
  CHECK(alone.communication.empty());
  const Score beside = score({transfer, phase("mlp", 0, 0, 9)}, {transfer, phase("mlp", 0, 0, 9)}, {0});
  REQUIRE(beside.phases.size() == 1);
  CHECK(beside.phases[0].a.phase == "mlp");
  CHECK(beside.communication.size() == 1);
}

TEST_CASE("micro-batches are paired one by one") {
  const std::vector<PhaseTimes> a = {phase("mlp", 0, 0, 10), phase("mlp", 1, 10, 40)};
  const std::vector<PhaseTimes> b = {phase("mlp", 0, 0, 10), phase("mlp", 1, 10, 30)};
  const Score result = score(a, b, {0});
  CHECK(result.by_micro_batch);
  REQUIRE(result.phases.size() == 2);
  CHECK(result.phases[0].error() == 0);
  CHECK(result.phases[1].error() == doctest::Approx(0.5));
  CHECK(result.span_error == doctest::Approx(1.0 / 3));
}

TEST_CASE("copied mean takes the mean of the layers held out, or of all but its own, and leaves out what none has") {
  const auto of_layer = [](std::uint32_t layer, const char* name, int start_us, int end_us) {
    PhaseTimes times = phase(name, 0, start_us, end_us);
    times.layer = layer;
    return times;
  };
  const std::vector<PhaseTimes> measured = {of_layer(0, "mlp", 0, 10), of_layer(0, "head", 10, 90),
                                            of_layer(1, "mlp", 100, 130), of_layer(2, "mlp", 200, 250)};
  const std::vector<PhaseTimes> held_out = copied_mean(measured, {0});
  REQUIRE(held_out.size() == 1);
  CHECK(held_out[0].span() == from_us(40));
  const std::vector<PhaseTimes> all = copied_mean(measured, {0, 1, 2});
  REQUIRE(all.size() == 3);
  CHECK(all[0].span() == from_us(40));
  CHECK(all[1].span() == from_us(30));
  CHECK(all[2].span() == from_us(20));
}

TEST_CASE("two micro-batches against one of everything: their times are summed, and both count in the span") {
  const std::vector<PhaseTimes> halves = {phase("mlp", 0, 0, 10), phase("mlp", 1, 50, 60), phase("attn", 1, 60, 70)};
  const std::vector<PhaseTimes> whole = {phase("mlp", 0, 0, 16)};
  const Score result = score(halves, whole, {0});
  CHECK_FALSE(result.by_micro_batch);
  REQUIRE(result.phases.size() == 1);
  CHECK(result.phases[0].error() == doctest::Approx(0.25));
  CHECK(result.a_span == from_us(20));
  CHECK(result.b_span == from_us(16));
}

}  // TEST_SUITE("timeline/phases")
