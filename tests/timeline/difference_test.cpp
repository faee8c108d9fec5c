// compare says why two timelines differ: the parts add up, and each kind of difference is called by its name.
#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include <map>

#include "engine/simulate.hpp"
#include "experiments/run/run.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"
#include "tests/support/trace_text.hpp"
#include "timeline/difference.hpp"
#include "timeline/merge_traces.hpp"

TEST_SUITE("timeline/difference") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Side {
  std::vector<PhaseTimes> phases;
  std::vector<KernelSpan> kernels;
};

Side side_of(const Trace& trace) {
  const Interpretation meaning = interpret(trace);
  return {phase_times(trace, meaning), kernel_spans(trace, meaning)};
}

Side side_of(const Run& run) { return {run.phases, kernel_spans(run.program.graph, run.timeline)}; }

struct Compared {
  Score result;
  std::vector<PhaseDifference> found;
};

Compared compared(const Side& a, const Side& b) {
  Compared c{score(a.phases, b.phases, common_layers(a.phases, b.phases, {})), {}};
  c.found = differences(c.result, a.kernels, b.kernels);
  return c;
}

// One phase of GEMMs on stream 7, in us: starts and durations.
Side phase_of(const std::vector<std::pair<int, int>>& kernels) {
  std::string events = gpu_range("attn", "0", "1000");
  for (const auto& [start, duration] : kernels) {
    events += "," + kernel(std::to_string(start), std::to_string(duration));
  }
  return side_of(read(trace_of(events)));
}

Causes causes_of(const Side& a, const Side& b) {
  const Compared c = compared(a, b);
  REQUIRE(c.found.size() == 1);
  CHECK(c.found[0].causes.total() == c.result.phases[0].a.span() - c.result.phases[0].b.span());
  return c.found[0].causes;
}

Time us(int value) { return std::chrono::microseconds(value); }

}  // namespace

TEST_CASE("a slower kernel is a difference in speed") {
  const Causes causes = causes_of(phase_of({{0, 30}, {32, 10}}), phase_of({{0, 20}, {22, 10}}));
  CHECK(causes.speed == us(10));
  CHECK(causes.work == Time::zero());
  CHECK(causes.gaps == Time::zero());
}

TEST_CASE("a kernel that only one side has is work, at the mean time of its family there") {
  const Causes causes = causes_of(phase_of({{0, 10}, {10, 10}, {20, 10}}), phase_of({{0, 10}, {10, 10}}));
  CHECK(causes.work == us(10));
  CHECK(causes.speed == Time::zero());
  const Causes reversed = causes_of(phase_of({{0, 10}, {10, 10}}), phase_of({{0, 10}, {10, 10}, {20, 10}}));
  CHECK(reversed.work == us(-10));
}

TEST_CASE("short pauses are gaps, long ones waiting") {
  const Causes causes = causes_of(phase_of({{0, 10}, {13, 10}, {63, 10}}), phase_of({{0, 10}, {11, 10}, {22, 10}}));
  CHECK(causes.gaps == us(3 - 2));
  CHECK(causes.waiting == us(40));
  CHECK(causes.speed == Time::zero());
}

TEST_CASE("a barrier is waiting") {
  const auto transfer = [](int barrier) {
    const std::string notify = slice("kernel", "deep_ep::internode::notify_dispatch", kStream27,
                                     times("0", std::to_string(barrier)), R"("stream": 27)");
    const std::string dispatch = slice("kernel", "deep_ep::internode::dispatch", kStream27,
                                       times(std::to_string(barrier), "20"), R"("stream": 27)");
    return side_of(read(trace_of(gpu_range("attn", "900", "50") + "," + kernel("900", "50") + "," +
                                 gpu_range("dispatch", "0", "800", kStream27) + "," + notify + "," + dispatch)));
  };
  const Compared c = compared(transfer(100), transfer(30));
  REQUIRE(c.found.size() == 2);
  CHECK(c.found[0].pair->a.phase == "dispatch");
  CHECK(c.found[0].causes.waiting == us(70));
  CHECK(c.found[0].causes.speed == Time::zero());
}

TEST_CASE(
    "a trace's memory-bound kernel beside a transfer on 20 of 132 SMs loses 20 / 132 of that time to contention") {
  const auto beside = [](const std::string& blocks) {
    const std::string copy =
        slice("kernel", "copy_kernel", kStream7, times("0", "132"), R"("stream": 7, "grid": [)" + blocks + ", 1, 1]");
    const std::string dispatch = slice("kernel", "deep_ep::internode::dispatch", kStream27, times("0", "132"),
                                       R"("stream": 27, "grid": [20, 1, 1])");
    return R"({"deviceProperties": [{"name": "NVIDIA H800", "numSms": 132}], "traceEvents": [)" + copy + "," +
           dispatch + "]}";
  };
  const auto contention = [&](const std::string& blocks) {
    const Trace trace = read(beside(blocks));
    return kernel_spans(trace, interpret(trace))[0].contention;
  };
  CHECK(contention("4096") == us(20));
  CHECK(contention("112") == Time::zero());  // persistent: it holds its SMs
}

TEST_CASE("what transfers cost by their SMs adds up over all that run beside, however long they are") {
  const auto on = [](const char* name, int stream, int start, int end, int blocks) {
    const std::string s = std::to_string(stream);
    return slice("kernel", name, R"("pid": 0, "tid": )" + s, times(std::to_string(start), std::to_string(end - start)),
                 R"("stream": )" + s + R"(, "grid": [)" + std::to_string(blocks) + ", 1, 1]");
  };
  const Trace trace =
      read(R"({"deviceProperties": [{"name": "NVIDIA H800", "numSms": 132}], "traceEvents": [)" +
           on("nvshmem_put", 30, 0, 1000, 11) + "," + on("copy_kernel", 7, 100, 232, 4096) + "," +
           on("deep_ep::internode::dispatch", 27, 166, 300, 22) + "," + on("flash_fwd_kernel", 7, 300, 432, 4096) +
           "," + on("deep_ep::internode::notify_dispatch", 27, 300, 366, 22) + "," +
           on("copy_kernel", 7, 1000, 1100, 4096) + "]}");
  std::map<Time, Time> lost;  // by start
  for (const KernelSpan& kernel : kernel_spans(trace, interpret(trace))) {
    if (kernel.stream == 7) lost[kernel.start] = kernel.contention;
  }
  CHECK(lost.at(us(100)) == us(11 + 11));  // 132 us beside 11 SMs, 66 us beside 22
  CHECK(lost.at(us(300)) == us(11 + 11));  // a barrier spins
  CHECK(lost.at(us(1000)) == Time::zero());
}

TEST_CASE("of every phase of a prediction and its measurement the parts add up to the difference") {
  if (!present(training_trace())) return;
  const Side predicted = side_of(run_scenario(load_setup(chunk_scenario())));
  const Side measured = side_of(read_trace(training_trace()));
  const Compared c = compared(predicted, measured);
  CHECK(c.found.size() == 40);
  for (const PhaseDifference& d : c.found) {
    CAPTURE(d.pair->a.phase);
    CHECK(d.causes.total() == d.pair->a.span() - d.pair->b.span());
  }
  for (std::size_t i = 1; i < c.found.size(); ++i) {
    const auto size = [](const PhaseDifference& d) { return std::abs(d.causes.total().count()); };
    CHECK(size(c.found[i - 1]) >= size(c.found[i]));
  }
}

TEST_CASE("a trace compared with itself differs in nothing") {
  if (!present(training_trace())) return;
  const Side measured = side_of(read_trace(training_trace()));
  for (const PhaseDifference& d : compared(measured, measured).found) {
    for (const Time part :
         {d.causes.speed, d.causes.contention, d.causes.waiting, d.causes.gaps, d.causes.work, d.causes.parallel}) {
      CHECK(part == Time::zero());
    }
  }
}

TEST_CASE("contention of the predicted cast beside a GEMM is most of its time: 52 us alone, 334 to 349 measured") {
  const Run run = run_scenario(load_setup(chunk_scenario()));
  for (const KernelSpan& kernel : kernel_spans(run.program.graph, run.timeline)) {
    if (kernel.phase != "combine(B)" || kernel.place.layer == 0 || kernel.kernel_class != KernelClass::memory) continue;
    CHECK(to_us(kernel.contention) > 200);
    CHECK(kernel.contention < kernel.end - kernel.start);
  }
}

TEST_CASE("--fail-above: exit code 1 where the span or a phase differs by more, 0 otherwise, 2 for no percentage") {
  const TemporaryFolder folder;
  const auto trace = [&](const char* name, const std::string& duration) {
    return folder.write(name, trace_of(gpu_range("attn", "0", "1000") + "," + kernel("0", duration)));
  };
  const std::string a = trace("a.json", "103");
  const std::string b = trace("b.json", "100");
  CHECK(run_moeline({"compare", a, b}).exit_code == 0);
  CHECK(run_moeline({"compare", a, b, "--fail-above", "3.1%"}).exit_code == 0);
  const Outcome failed = run_moeline({"compare", a, b, "--fail-above", "2"});
  CHECK(failed.exit_code == 1);
  CHECK(failed.err == "moeline: --fail-above 2: the span by +3.00 %, attn of layer 0 by +3.00 %\n");
  CHECK(failed.out == run_moeline({"compare", a, b}).out);
  CHECK(run_moeline({"compare", b, b, "--fail-above", "0"}).exit_code == 0);
  for (const char* bad : {"much", "-1", "5%%", ""}) {
    check_wrong_usage({"compare", a, b, "--fail-above", bad},
                      *bad == '\0' ? "must not be empty" : "write a percentage");
  }
}

TEST_CASE("a trace without phases is compared by kernel family") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a.json", trace_of(kernel("0", "10") + "," + kernel("20", "10")));
  const Outcome outcome = run_moeline({"compare", a, a, "--format", "json"});
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document json;
  json.Parse(outcome.out.c_str());
  REQUIRE(json["phases"].Size() == 1);
  CHECK(std::string(json["phases"][0]["phase"].GetString()) == "all");
  CHECK(std::string(json["families"][0]["family"].GetString()) == "gemm");
  CHECK(json["families"][0]["a_count"].GetInt() == 2);
}

TEST_CASE("copied mean is a null model where b has another layer to copy from, and absent where it has none") {
  const TemporaryFolder folder;
  const std::string layer0 = gpu_range("attn", "0", "50") + "," + kernel("0", "10");
  const std::string layer1 = gpu_range("attn", "100", "50") + "," + kernel("100", "20");
  const std::string once = gpu_range("head", "200", "50") + "," + kernel("200", "30");
  const auto nulls = [&](const std::string& events) {
    const std::string file = folder.write("t.json", trace_of(events));
    rapidjson::Document json;
    json.Parse(run_moeline({"compare", file, file, "--format", "json"}).out.c_str());
    REQUIRE_FALSE(json.HasParseError());
    return json["nulls"].HasMember("copied_mean") ? json["nulls"]["copied_mean"]["mean_abs_error"].GetDouble() : -1;
  };
  CHECK(nulls(layer0) == -1);
  CHECK(nulls(layer0 + "," + layer1) == doctest::Approx((1.0 + 0.5) / 2));
  CHECK(nulls(layer0 + "," + layer1 + "," + once) == doctest::Approx((1.0 + 0.5) / 2));  // nothing to copy for head
}

TEST_CASE("a layer named twice counts once") {
  const TemporaryFolder folder;
  const std::string file = folder.write("t.json", trace_of(gpu_range("attn", "0", "50") + "," + kernel("0", "10")));
  CHECK(run_moeline({"compare", file, file, "--layers", "0,0,0"}).out ==
        run_moeline({"compare", file, file, "--layers", "0"}).out);
}

TEST_CASE("of communication the errors are of transfers, and the causes add up to the difference of the spans") {
  const TemporaryFolder folder;
  const auto trace = [&](const std::string& name, int barrier, int transfer) {
    const auto on27 = [](const char* kernel, int start, int duration) {
      return slice("kernel", kernel, kStream27, times(std::to_string(start), std::to_string(duration)));
    };
    return folder.write(name, trace_of(gpu_range("attn", "900", "50") + "," + kernel("900", "50") + "," +
                                       gpu_range("dispatch", "0", "800", kStream27) + "," +
                                       on27("deep_ep::internode::notify_dispatch", 0, barrier) + "," +
                                       on27("deep_ep::internode::dispatch", barrier, transfer)));
  };
  const std::string a = trace("a.json", 100, 30);
  const std::string b = trace("b.json", 30, 20);
  rapidjson::Document json;
  json.Parse(run_moeline({"compare", a, b, "--format", "json"}).out.c_str());
  REQUIRE(json["phases"].Size() == 2);
  const auto& dispatch = json["phases"][1];
  CHECK(dispatch["error"].GetDouble() == 0.5);
  double sum = 0;
  for (const auto& cause : dispatch["causes"].GetObject()) sum += cause.value.GetDouble();
  CHECK(sum == dispatch["a_span_us"].GetDouble() - dispatch["b_span_us"].GetDouble());
  CHECK(run_moeline({"compare", a, b}).out.find("the causes below are of whole spans") != std::string::npos);
}

TEST_CASE("a trace without phases is compared whatever its kernels do: compute, both, or communicate alone") {
  const TemporaryFolder folder;
  const std::string gemms = kernel("0", "10") + "," + kernel("20", "30");
  const auto all_reduce = [](const char* duration) {
    return slice("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", kStream27, times("0", duration));
  };
  for (const std::string& events :
       {gemms, gemms + "," + all_reduce("10"), gemms + "," + all_reduce("90"), all_reduce("90")}) {
    const std::string a = folder.write("a.json", trace_of(events));
    const Outcome outcome = run_moeline({"compare", a, a, "--format", "json"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    rapidjson::Document json;
    json.Parse(outcome.out.c_str());
    REQUIRE(json["phases"].Size() == 1);
    CHECK(json["phases"][0]["scored"].GetBool());
    CHECK(json["mean_abs_error"].GetDouble() == 0);
  }
}

TEST_CASE("a merged trace holds every kernel of both, as neighbouring processes, and no slices that cross") {
  if (!present(training_trace())) return;
  const Side predicted = side_of(run_scenario(load_setup(chunk_scenario())));
  const Side measured = side_of(read_trace(training_trace()));
  const std::string text = merged_trace({{"a", predicted.kernels}, {"b", measured.kernels}});
  const Trace trace = read(text);
  REQUIRE(trace.gpus.size() == 2);
  CHECK(trace.gpu_events.size() == predicted.kernels.size() + measured.kernels.size());
  CHECK(trace.notes.empty());  // it would say that events overlap
  const auto of = [&](std::uint16_t gpu) {
    std::pair<std::size_t, std::int64_t> sum;  // kernels, ns
    for (const GpuEvent& event : trace.gpu_events) {
      if (event.gpu != gpu) continue;
      ++sum.first;
      sum.second += event.end_ns - event.start_ns;
    }
    return sum;
  };
  std::int64_t measured_ns = 0;
  for (const KernelSpan& kernel : measured.kernels) measured_ns += (kernel.end - kernel.start).count() / 1000;
  CHECK(of(1).first == measured.kernels.size());
  CHECK(of(1).second == measured_ns);
  CHECK(of(0).first == predicted.kernels.size());
  const std::vector<PhaseTimes> phases = phase_times(trace);
  CHECK(phases.size() == predicted.phases.size() + measured.phases.size());
}

TEST_CASE("kernels that overlap on one stream stand on a second thread of it") {
  const Trace trace = read(trace_of(kernel("0", "10") + "," + kernel("5", "10") + "," + kernel("20", "10")));
  CHECK(trace.notes.size() == 1);
  const Trace merged = read(merged_trace({{"a", kernel_spans(trace, interpret(trace))}}));
  CHECK(merged.gpu_events.size() == 3);
  CHECK(merged.notes.empty());
}

TEST_CASE("a pause between phases makes a run longer, and is told, though every phase is the same") {
  const TemporaryFolder folder;
  const auto trace = [&](const char* name, const std::string& second) {
    return folder.write(name, trace_of(gpu_range("attn", "0", "100") + "," + kernel("0", "100") + "," +
                                       gpu_range("mlp", second, "200") + "," + kernel(second, "200")));
  };
  const std::string before = trace("before.json", "110"), after = trace("after.json", "265");
  const rapidjson::Document json = in_json({"compare", after, before});
  CHECK(json["worst_abs_error"].GetDouble() == 0);
  CHECK(json["span_error"].GetDouble() == 0);
  CHECK(json["a_between_us"].GetDouble() == 165);
  CHECK(json["b_between_us"].GetDouble() == 10);
  CHECK(json["elapsed_error"].GetDouble() == 0.5);
  const Outcome failed = run_moeline({"compare", after, before, "--fail-above", "1%"});
  CHECK(failed.exit_code == 1);
  CHECK(failed.err == "moeline: --fail-above 1%: the time from first to last by +50.00 %\n");
  CHECK(run_moeline({"compare", before, after}).out.find("b takes 50.0 % longer than a\n") != std::string::npos);
  // Nobody knows what the run waited for, and no launch is blamed.
  CHECK(run_moeline({"explain", after}).out.find("unexplained") != std::string::npos);
  CHECK(run_moeline({"explain", before}).out.find("unexplained") == std::string::npos);
}

}  // TEST_SUITE("timeline/difference")
