// HolisticTraceAnalysis leaves out, where there are several profiler steps, the last of them and what has no launch.
#include "measured/hta.hpp"

#include <rapidjson/document.h>

#include <doctest/doctest.h>

#include "tests/support/cli.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("measured/hta") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Three steps of 100 us, with a GEMM of 50 us in each, and a copy of 10 us in the second whose launch was not recorded.
SmallTrace three_steps() {
  SmallTrace trace;
  for (int i = 0; i < 3; ++i) {
    trace.annotation("ProfilerStep#" + std::to_string(5 + i), 100 * i, 100 * i + 99);
    trace.kernel("sm90_xmma_gemm", 7, 100 * i + 1, 100 * i + 10, 100 * i + 60);
  }
  return trace.on_gpu("kernel", "nccl_but_not_launched", 27, 170, 180);
}

HtaBreakdown hta_of(const Measured& m) { return analyze(m).ranks.at(0).hta; }

}  // namespace

TEST_CASE("of several profiler steps HTA leaves out the last, and what has no launch") {
  const HtaBreakdown hta = hta_of(three_steps().understood());
  CHECK(hta.profiler_steps == 3);
  CHECK(hta.events == 2);
  CHECK(hta.in_last_step == 1);
  CHECK(hta.without_launch == 1);
  CHECK(hta.times.span == from_us(150));  // of 250
  CHECK(hta.times.compute == from_us(100));
  CHECK(hta.times.communication == from_us(0));
  CHECK(hta.times.idle == from_us(50));
}

TEST_CASE("with one profiler step or none HTA counts everything") {
  for (const std::string name : {"ProfilerStep#5", "my own step"}) {
    SmallTrace trace;
    trace.annotation(name, 0, 99).kernel("sm90_xmma_gemm", 7, 1, 10, 60).on_gpu("kernel", "ncclDevKernel", 27, 70, 80);
    const HtaBreakdown hta = hta_of(trace.understood());
    CHECK(hta.left_out() == 0);
    CHECK(hta.times.span == from_us(70));
    CHECK(hta.times.communication == from_us(10));
  }
}

TEST_CASE("the last profiler step begins for HTA where its twin on the GPU does, if that is later") {
  SmallTrace trace;
  for (int i = 0; i < 2; ++i) {
    const std::string name = "ProfilerStep#" + std::to_string(i);
    trace.annotation(name, 100 * i, 100 * i + 99);
    trace.kernel("sm90_xmma_gemm", 7, 100 * i + 1, 100 * i + 40, 100 * i + 60);
    trace.kernel("sm90_xmma_gemm", 7, 100 * i + 50, 100 * i + 70, 100 * i + 90);
    trace.add(gpu_range(name, std::to_string(100 * i + 40), "50"));
  }
  const HtaBreakdown hta = hta_of(trace.understood());
  CHECK(hta.in_last_step == 1);  // the kernel launched at 101 counts, that at 150 does not
  CHECK(hta.times.span == from_us(120));
}

TEST_CASE("HTA's communication begins with nccl or has ncclKernel in its name, and copies are neither") {
  SmallTrace trace;
  trace.on_gpu("kernel", "ncclDevKernel_AllReduce", 27, 0, 10).on_gpu("kernel", "my_ncclKernel_x", 27, 20, 30);
  trace.on_gpu("kernel", kDispatch, 27, 40, 50).on_gpu("gpu_memcpy", "Memcpy DtoD", 7, 60, 70);
  const HtaBreakdown hta = hta_of(trace.understood());
  CHECK(hta.times.communication == from_us(20));
  CHECK(hta.times.compute == from_us(10));
  CHECK(hta.times.non_compute() == from_us(30));
}

TEST_CASE("HTA counts stream 0 as any other stream, also where there are several profiler steps") {
  SmallTrace trace;
  for (int i = 0; i < 3; ++i) {
    trace.annotation("ProfilerStep#" + std::to_string(5 + i), 100 * i, 100 * i + 99);
    trace.kernel("sm90_xmma_gemm", 0, 100 * i + 1, 100 * i + 10, 100 * i + 60);
  }
  const HtaBreakdown hta = hta_of(trace.understood());
  CHECK(hta.events == 2);
  CHECK(hta.left_out() == 1);  // that of the last step
  CHECK(hta.times.compute == from_us(100));
}

TEST_CASE("where HTA leaves nothing over its times are zero") {
  SmallTrace trace;
  trace.annotation("ProfilerStep#1", 0, 9).annotation("ProfilerStep#2", 10, 19);
  const HtaBreakdown hta = hta_of(trace.on_gpu("kernel", "gemm", 7, 0, 10).understood());
  CHECK(hta.events == 0);
  CHECK(hta.times.span == from_us(0));
}

TEST_CASE("analyze says what HTA leaves out") {
  const TemporaryFolder folder;
  const std::string file = folder.write("t.json", three_steps().text());
  CHECK(run_moeline({"analyze", file})
            .out.find("HTA, by default, leaves out 2 of 4 GPU events where there are several profiler steps (here 3):\n"
                      "1 launched in the last step, 1 without a launch in the trace.\n") != std::string::npos);
  rapidjson::Document json;
  json.Parse(run_moeline({"analyze", file, "--format", "json"}).out.c_str());
  const auto& hta = json["ranks"][0]["hta"];
  CHECK(hta["span_us"].GetDouble() == 150);
  CHECK(hta["left_out_gpu_events"].GetInt() == 2);
}

}  // TEST_SUITE("measured/hta")
