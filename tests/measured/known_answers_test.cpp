// Small traces whose right answers follow from how they were made, and what explain and replay say of real ones.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/explain/explanation.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("measured/known_answers") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::filesystem::path small_trace(const std::string& name) {
  return data_folder() / "traces" / "small" / (name + ".json");
}

// Change of the span by one factor, in percent.
double percent(const Measured& m, const std::string& what, double factor) {
  return 100 * change(replayed_span(m, {{{what, factor}}, {}}), replayed_span(m));
}

Time sum_of_gaps(const Measured& m, GapCause cause) { return sum_of(analyze(m).ranks.at(0), cause).sum; }

// What explain says would be saved, by item: replay's name for it, what is left of its time, and the share.
void agrees_with_replay(const Measured& m) {
  const ReplayGraph replay = replay_graph(m);
  const Explanation e = explain(replay, simulate(replay.graph, {.record_changes = true}));
  for (const SpanSensitivity& item : e.sensitivities) {
    if (!item.gains || item.what.starts_with("kernel:") || item.what.starts_with("phase:")) continue;
    CAPTURE(item.what);
    const std::string name = item.what.starts_with("class:") ? "kernel:" + item.what.substr(6) : item.what;
    CHECK(std::abs(percent(m, name, 0.9) + 100 * item.gains->tenth) < 0.1);
    CHECK(std::abs(percent(m, name, 0.5) + 100 * item.gains->half) < 0.1);
    CHECK(std::abs(percent(m, name, 0) + 100 * item.gains->all) < 0.1);
  }
}

}  // namespace

TEST_CASE("a third kernel waits for the longer of two that overlap, though the second of them ended first") {
  if (!present(small_trace("r01_nested_order"))) return;
  const Measured m = understand(read_trace(small_trace("r01_nested_order")));
  CHECK(to_us(replayed_span(m)) == 115);
  CHECK(to_us(replayed_span(m, {{{"kernel:gemm", 0.5}}, {}})) == 65);
  CHECK(to_us(replayed_span(m, {{{"kernel:gemm", 2}}, {}})) == 215);
}

TEST_CASE("a copy of pageable memory holds the host as a synchronising call does") {
  if (!present(small_trace("r02_pageable"))) return;
  const Measured pageable = understand(read_trace(small_trace("r02_pageable")));
  const Measured pinned = understand(read_trace(small_trace("r03_pinned")));
  for (const Measured* m : {&pageable, &pinned})
    CHECK(percent(*m, "kernel:gemm", 0.5) == doctest::Approx(-46.0).epsilon(0.001));
  for (const GapCause cause : {GapCause::launch, GapCause::host_wait, GapCause::between, GapCause::unexplained}) {
    CHECK(sum_of_gaps(pageable, cause) == sum_of_gaps(pinned, cause));
  }
}

TEST_CASE("kernels that each start before the one ahead has ended are what takes the time, not the host") {
  if (!present(small_trace("r05_pdl"))) return;
  const Measured m = understand(read_trace(small_trace("r05_pdl")));
  const ReplayGraph replay = replay_graph(m);
  const Explanation e = explain(replay, simulate(replay.graph, {.record_changes = true}));
  REQUIRE(e.blame.size() == 1);
  CHECK(e.blame[0].task_class == "gemm");
  CHECK(e.alternatives.size() == 0);
}

TEST_CASE("a gap before a kernel that was launched long before is not the launch's") {
  if (!present(small_trace("r06_launched_long_before"))) return;
  const Measured m = understand(read_trace(small_trace("r06_launched_long_before")));
  CHECK(to_us(sum_of_gaps(m, GapCause::launch)) == 12);
  CHECK(to_us(sum_of_gaps(m, GapCause::unexplained)) == 978);
  CHECK(most_gained(counterfactuals(m))->what == "gaps");
}

TEST_CASE("what the first layer waited for hides nothing that the others did") {
  for (const char* name : {"r11_first_layer_same", "r13_one_gather"}) {
    if (!present(small_trace(name))) return;
    const Measured m = understand(read_trace(small_trace(name)));
    CHECK(percent(m, "transfer", 0) == doctest::Approx(-75.7).epsilon(0.001));
  }
}

TEST_CASE("two threads with a stream each do not wait for each other's copies") {
  SmallTrace trace;
  int correlation = 1000;
  const auto on_thread = [&](const char* thread, const char* name, int stream, int launched, int returned, int start,
                             int end) {
    const std::string id = R"("correlation": )" + std::to_string(++correlation);
    const bool copies = std::string(name).starts_with("Memcpy");
    trace.add(slice("cuda_runtime", copies ? "cudaMemcpyAsync" : "cudaLaunchKernel", thread,
                    times(std::to_string(launched), std::to_string(returned - launched)), id));
    trace.on_gpu(copies ? "gpu_memcpy" : "kernel", name, stream, start, end, id);
  };
  const char* copy = "Memcpy DtoH (Device -> Pageable)";
  for (int i = 0; i < 10; ++i) {
    const int zero = 100 * i;
    on_thread(R"("pid": 1, "tid": 1)", "sm90_xmma_gemm", 7, zero, zero + 2, zero + 5, zero + 105);
    if (i < 5) on_thread(R"("pid": 1, "tid": 2)", copy, 20, zero + 1, zero + 50, zero + 10, zero + 50);
  }
  const Measured m = trace.understood();
  CHECK(percent(m, "kernel:copy", 2) == 0);
  CHECK(percent(m, "kernel:copy", 4) > 0);  // then the copies take longer than all kernels
}

TEST_CASE("where two things hide behind each other the verdict names both") {
  SmallTrace trace;  // the host launches every 100 us what takes 99 us
  for (int i = 0; i < 50; ++i) trace.kernel("sm90_xmma_gemm", 7, 100 * i, 100 * i + 5, 100 * i + 104);
  const Counterfactuals c = counterfactuals(trace.understood());
  CHECK(most_gained(c)->span > 0.9 * c.replay);
  REQUIRE(c.without_two);
  CHECK(c.without_two->what == "compute and host");
  CHECK(c.without_two->span < 0.1 * c.replay);
}

TEST_CASE("explain's gains are what replay saves, on real traces and on small ones") {
  for (const char* name : {"real/b300_sglang_qwen3_30b_decode.json.gz", "real/mi300x_vllm_gpt_oss_20b_decode.json.gz",
                           "real/b200_vllm_gpt_oss_120b_tp8_prefill_eager.json.gz", "small/d1_ddp.json",
                           "small/d4_fork.json", "small/d5_stated.json", "small/r13_one_gather.json"}) {
    CAPTURE(name);
    const std::filesystem::path file = data_folder() / "traces" / name;
    if (present(file)) agrees_with_replay(understand(read_trace(file)));
  }
}

}  // TEST_SUITE("measured/known_answers")
