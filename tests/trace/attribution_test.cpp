// Each GPU event finds its phase: by the annotation on its own stream, else by the innermost one around its launch.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/csv.hpp"
#include "tests/support/data.hpp"
#include "tests/support/trace_text.hpp"

TEST_SUITE("trace/attribution") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string phase(const Trace& trace, const GpuEvent& event) {
  return event.annotation < 0 ? "none" : trace.annotations.at(static_cast<std::size_t>(event.annotation)).name;
}

// Of a trace with one GPU event.
std::string phase_of(const std::string& events) {
  const Trace trace = read(trace_of(events));
  REQUIRE(trace.gpu_events.size() == 1);
  return phase(trace, trace.gpu_events[0]);
}

struct KnownEvent {
  std::int64_t end_us = 0;
  std::string phase;
  int layer = 0;
};

// By (stream, start in us), which is unique.
std::map<std::pair<std::uint32_t, std::int64_t>, KnownEvent> known_events() {
  const CsvTable table(training_kernels());
  std::map<std::pair<std::uint32_t, std::int64_t>, KnownEvent> known;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto number = [&](const char* column) { return std::stoll(table.text(row, column)); };
    known[{static_cast<std::uint32_t>(number("stream")), number("start_us")}] = {
        number("end_us"), table.text(row, "phase"), static_cast<int>(number("layer"))};
  }
  return known;
}

// Annotations of one name, in order of time, are the layers.
std::vector<int> layers_of(const std::vector<Annotation>& annotations) {
  std::map<std::string, int> seen;
  std::vector<int> layers;
  for (const Annotation& annotation : annotations) layers.push_back(seen[annotation.name]++);
  return layers;
}

}  // namespace

TEST_CASE("a GPU event belongs to the innermost annotation around its launch") {
  const std::string events = range("1F1B", "0", "100") + "," + range("attn(F)", "10", "20") + "," +
                             range("mlp(B)", "30", "20") + "," + kernel("200", "5") + ",";
  CHECK(phase_of(events + launch("15")) == "attn(F)");
  CHECK(phase_of(events + launch("40")) == "mlp(B)");
  CHECK(phase_of(events + launch("60")) == "1F1B");
  CHECK(phase_of(events + launch("100")) == "1F1B");
  CHECK(phase_of(events + launch("101")) == "none");
  CHECK(phase_of(events + launch("15", 2)) == "none");
}

TEST_CASE("where two annotations touch, the launch belongs to the later one") {
  CHECK(phase_of(range("attn(F)", "10", "20") + "," + range("mlp(B)", "30", "20") + "," + launch("30") + "," +
                 kernel("200", "5")) == "mlp(B)");
}

TEST_CASE("of annotations that start together the shortest is the innermost") {
  CHECK(phase_of(range("inner", "10", "5") + "," + range("outer", "10", "50") + "," + launch("12") + "," +
                 kernel("200", "5")) == "inner");
}

TEST_CASE("a short annotation that is over does not hide the longer one around it") {
  CHECK(phase_of(range("outer", "0", "50") + "," + range("inner", "10", "5") + "," + range("inner", "20", "5") + "," +
                 launch("18") + "," + kernel("200", "5")) == "outer");
}

TEST_CASE("an annotation on the GPU event's own stream wins over one around its launch") {
  const std::string cpu = range("attn(F)", "0", "50") + "," + launch("10") + "," + kernel("200", "5") + ",";
  CHECK(phase_of(cpu + gpu_range("mlp(F)", "200", "5")) == "mlp(F)");
  CHECK(phase_of(cpu + gpu_range("step", "100", "500") + "," + gpu_range("mlp(F)", "199.999", "5.002")) == "mlp(F)");
  CHECK(phase_of(cpu + gpu_range("on another stream", "200", "5", kStream27)) == "attn(F)");
  CHECK(phase_of(cpu + gpu_range("ends too early", "200", "4")) == "attn(F)");
  CHECK(phase_of(cpu + gpu_range("starts too late", "201", "4")) == "attn(F)");
}

TEST_CASE("an annotation of the GPU holds no launches, one of the CPU no kernels") {
  CHECK(phase_of(gpu_range("gpu", "0", "50") + "," + launch("10") + "," + kernel("200", "5")) == "none");
  CHECK(phase_of(range("cpu", "0", "500", kStream7) + "," + kernel("200", "5")) == "none");
}

TEST_CASE("ProfilerStep annotations are listed and never count") {
  const Trace trace = read(trace_of(range("ProfilerStep#1", "0", "50") + "," + gpu_range("ProfilerStep#1", "0", "500") +
                                    "," + launch("10") + "," + kernel("200", "5")));
  CHECK(phase(trace, trace.gpu_events[0]) == "none");
  REQUIRE(trace.annotations.size() == 2);
  CHECK(trace.annotations[0].on_gpu);
  CHECK_FALSE(trace.annotations[1].on_gpu);
  CHECK(trace.annotations[1].end_ns == 50'000);
}

TEST_CASE("an annotation on the launching thread wins, and one on any thread will do") {
  const std::string events = range("attn(B)", "10", "20") + "," + kernel("200", "5") + ",";
  CHECK(phase_of(events + launch("15", 1, kAutogradThread)) == "attn(B)");
  CHECK(phase_of(events + range("outer, own thread", "0", "90", kAutogradThread) + "," +
                 launch("15", 1, kAutogradThread)) == "outer, own thread");
  CHECK(phase_of(events + range("over", "0", "5", kAutogradThread) + "," + launch("15", 1, kAutogradThread)) ==
        "attn(B)");
}

TEST_CASE("launches of the driver count, and of two calls with one correlation the first") {
  const std::string driver =
      slice("cuda_driver", "cuLaunchKernel", kMainThread, times("15", "1"), R"("correlation": "1")");
  const std::string events =
      range("attn(F)", "10", "10") + "," + range("mlp(B)", "30", "10") + "," + kernel("200", "5") + "," + driver;
  CHECK(phase_of(events) == "attn(F)");
  CHECK(phase_of(events + "," + launch("35")) == "attn(F)");
}

TEST_CASE("a hundred thousand nested annotations are attributed in a moment") {
  constexpr int kDepth = 100'000;
  std::string events;
  for (int i = 0; i < kDepth; ++i) {
    events += range("r" + std::to_string(i), std::to_string(i), std::to_string(2 * (kDepth - i))) + ",";
    events += launch(std::to_string(2 * kDepth - i), i) + "," + kernel(std::to_string(900'000 + i), "1", i) + ",";
  }
  events.pop_back();
  const Trace trace = read(trace_of(events));
  REQUIRE(trace.gpu_events.size() == kDepth);
  // Launch i stands at the end of range i, and of every range inside it nothing is left.
  CHECK(std::all_of(trace.gpu_events.begin(), trace.gpu_events.end(),
                    [&](const GpuEvent& event) { return event.annotation == &event - trace.gpu_events.data(); }));
}

TEST_CASE("every GPU event of DeepSeek's trace finds the phase and layer that a close reading found") {
  if (!present(training_trace()) || !present(training_kernels())) return;
  const Trace trace = read_trace(training_trace());
  const auto known = known_events();
  CHECK(trace.gpus[0].rank == 0);
  CHECK(trace.time_zero_ns == 1'740'461'679'470'630'000);
  REQUIRE(known.size() == 983);
  REQUIRE(trace.gpu_events.size() == 983);
  const auto of_kind = [&](GpuEventKind kind) {
    return std::count_if(trace.gpu_events.begin(), trace.gpu_events.end(),
                         [&](const GpuEvent& event) { return event.kind == kind; });
  };
  CHECK(of_kind(GpuEventKind::kernel) == 963);
  CHECK(of_kind(GpuEventKind::memset) == 12);
  CHECK(of_kind(GpuEventKind::memcpy) == 8);
  CHECK(std::count_if(trace.annotations.begin(), trace.annotations.end(), [](const Annotation& annotation) {
          return !annotation.name.starts_with("ProfilerStep") && annotation.name != "1F1B";
        }) == 40);

  const std::vector<int> layers = layers_of(trace.annotations);
  std::map<std::string, int> events_in_phase;
  std::map<std::string, int> known_in_phase;
  for (const auto& [where, event] : known) ++known_in_phase[event.phase];
  for (const GpuEvent& event : trace.gpu_events) {
    REQUIRE(event.annotation >= 0);
    const auto match = known.find({event.stream, event.start_ns / 1000});
    REQUIRE(match != known.end());
    CHECK(event.end_ns == match->second.end_us * 1000);
    CHECK(phase(trace, event) == match->second.phase);
    CHECK(layers[static_cast<std::size_t>(event.annotation)] == match->second.layer);
    ++events_in_phase[phase(trace, event)];
  }
  CHECK(events_in_phase == known_in_phase);
}

}  // TEST_SUITE("trace/attribution")
