// Programs unlike DeepSeek's, with answers that follow from how they were made.
#include <doctest/doctest.h>

#include "tests/support/measured.hpp"

TEST_SUITE("measured/other_programs") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Time us(int value) { return std::chrono::microseconds(value); }

std::size_t gaps_of(const Measured& m, GapCause cause, std::size_t rank = 0) {
  return sum_of(analyze(m).ranks[rank], cause).count;
}

// A second process: other pids, correlations from 1 as in the first.
std::string of_rank_1(std::string event) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = event.find(from); at != std::string::npos; at = event.find(from, at + to.size())) {
      event.replace(at, from.size(), to);
    }
  };
  replace(R"("pid": 0,)", R"("pid": 1,)");
  replace(R"("pid": 1166,)", R"("pid": 2266,)");
  return event;
}

}  // namespace

TEST_CASE(
    "kernels that each start when nine tenths of the one before are done take half the time at half their times") {
  SmallTrace trace;
  for (int i = 0; i < 100; ++i) trace.on_gpu("kernel", "gemm", 7, 9 * i, 9 * i + 10);
  const Measured m = trace.understood();
  CHECK(replayed_span(m) == us(901));
  CHECK(change(replayed_span(m, {{{"kernel:gemm", 0.5}}, {}}), us(901)) == doctest::Approx(-0.5));
  CHECK(change(replayed_span(m, {{{"kernel:gemm", 2}}, {}}), us(901)) == doctest::Approx(1));
  CHECK(replayed_span(m, {{{"gaps", 0}}, {}}) == us(901));
}

TEST_CASE("a host that synchronises after each short kernel follows its length") {
  SmallTrace trace;
  for (int i = 0; i < 50; ++i) {
    trace.kernel("gemm", 7, 70 * i, 70 * i + 5, 70 * i + 55).call("cudaStreamSynchronize", 70 * i + 3, 57);
  }
  const Measured m = trace.understood();
  CHECK(gaps_of(m, GapCause::host_wait) == 49);
  // Each period is 25 us shorter.
  CHECK(replayed_span(m, {{{"kernel:gemm", 0.5}}, {}}) == us(49 * 45 + 25));
}

TEST_CASE("a thread that launches while another one synchronises waits for nothing") {
  SmallTrace trace;
  trace.kernel("gemm", 7, 0, 10, 400).call("cudaDeviceSynchronize", 5, 400);
  trace.kernel("gemm", 23, 205, 210, 220).kernel("gemm", 7, 410, 420, 430);
  const Measured m = trace.understood();
  CHECK(edges(m, Reason::host_wait).size() == 1);  // of the launch after it
  CHECK(replayed_span(m) == us(420));
  CHECK(replayed_span(m, {{{"kernel:gemm", 0.5}}, {}}) == us(220));
}

TEST_CASE("a host that is merely slow waits for nothing: its pauses are longer than the kernel between them") {
  SmallTrace trace;
  for (int i = 0; i < 50; ++i) {
    trace.annotation("step", 110 * i, 110 * i + 9).kernel("gemm", 7, 110 * i + 1, 110 * i + 9, 110 * i + 29);
  }
  const Measured m = trace.understood();
  CHECK(edges(m, Reason::host_wait).empty());
  CHECK(gaps_of(m, GapCause::launch) == 49);
  CHECK(replayed_span(m, {{{"kernel:gemm", 0.5}}, {}}) == us(110 * 49 + 10));
}

TEST_CASE("kernels that start late behind their launches are launch-bound, whatever the quickest launch took") {
  SmallTrace trace;
  trace.kernel("gemm", 7, 0, 3, 13);
  for (int i = 1; i < 200; ++i) trace.kernel("gemm", 7, 200 * i, 200 * i + 30, 200 * i + 40);
  const Measured m = trace.understood();
  CHECK(gaps_of(m, GapCause::launch) == 199);
  CHECK(gaps_of(m, GapCause::unexplained) == 0);
}

TEST_CASE("two processes of a file are two programs: each finds its own launches and waits") {
  SmallTrace first;
  SmallTrace second;
  for (int i = 0; i < 40; ++i) {
    first.kernel("gemm", 7, 100 * i, 100 * i + 5, 100 * i + 65).call("cudaStreamSynchronize", 100 * i + 3, 70);
    second.kernel("slow_gemm", 7, 90 * i + 4, 90 * i + 10, 90 * i + 30);
  }
  const auto events = [](const SmallTrace& trace) {
    const std::string text = trace.text();
    const std::size_t from = text.find('[', text.find("traceEvents")) + 1;
    return text.substr(from, text.rfind(']') - from);
  };
  const Measured m = understand(read(trace_of(events(first) + "," + of_rank_1(events(second)))));
  REQUIRE(m.trace.gpus.size() == 2);
  CHECK(edges(m, Reason::host_wait).size() == 39);
  CHECK(gaps_of(m, GapCause::host_wait, 0) == 39);
  CHECK(gaps_of(m, GapCause::launch, 1) == 39);
  CHECK(replayed_span(m, {{{"kernel:gemm", 2}}, {}}) > us(100 * 40 + 39 * 60));
}

TEST_CASE("one layer in which the clock is a little off does not refute a hundred others") {
  SmallTrace trace;
  for (int i = 0; i < 100; ++i) {
    const int zero = 300 * i;
    const int jitter = i == 50 ? 1 : 0;
    trace.annotation("dispatch", zero, zero + 9).annotation("mlp", zero + 10, zero + 19);
    trace.kernel(kDispatch, 27, zero + 1, zero + 100, zero + 150 + jitter);
    trace.kernel("gemm", 7, zero + 11, zero + 152 - 2 * jitter, zero + 290);
  }
  const Measured m = trace.understood();
  CHECK(edges(m, Reason::start_time).size() >= 99);
  CHECK(gaps_of(m, GapCause::communication) >= 98);
}

TEST_CASE("ranges of the host and their twins on the GPU are the same layers") {
  std::string events;
  for (int i = 0; i < 4; ++i) {
    const std::string cpu = std::to_string(100 * i);
    const std::string gpu = std::to_string(1000 + 100 * i);
    events += (i == 0 ? "" : ",") + range("attn", cpu, "50") + "," + launch(cpu + ".5", i + 1) + "," +
              gpu_range("attn", gpu, "60") + "," + kernel(gpu, "60", i + 1);
  }
  std::vector<std::uint32_t> layers;
  for (const PhaseTimes& phase : phase_times(read(trace_of(events)))) layers.push_back(phase.layer);
  CHECK(layers == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("what frameworks annotate on their own is no phase") {
  for (const char* name : {"nccl:_all_gather_base", "Optimizer.step#AdamW.step", "ProfilerStep#3",
                           "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"}) {
    CAPTURE(name);
    const Trace trace = read(trace_of(range(name, "0", "50") + "," + launch("10") + "," + kernel("200", "5")));
    CHECK(interpret(trace).phases.empty());
  }
}

TEST_CASE("a stream that computes and communicates has gaps too") {
  SmallTrace trace;
  for (int i = 0; i < 10; ++i) {
    trace.kernel("gemm", 7, 0, 1000 * i + 10, 1000 * i + 300);
    trace.kernel("ncclDevKernel_SendRecv", 7, 0, 1000 * i + 301, 1000 * i + 900);
  }
  const Measured m = trace.understood();
  CHECK(analyze(m).ranks[0].gaps.size() == 19);
}

}  // TEST_SUITE("measured/other_programs")
