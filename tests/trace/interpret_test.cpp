// What the events of a trace are: their phase and layer, by annotation or by mapping file, and their order of launch.
#include "trace/interpret.hpp"

#include "tests/support/measured.hpp"

TEST_SUITE("trace/interpret") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// "attn 0" per GPU event, in order of start; "-" without a phase.
std::vector<std::string> places(const Measured& m) {
  std::vector<std::string> found;
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const TracePhase* phase = phase_of(m, {i, false});
    found.push_back(phase == nullptr ? "-" : phase->name + " " + std::to_string(phase->place.layer));
  }
  return found;
}

using Places = std::vector<std::string>;

KernelMap phases(const std::vector<std::pair<std::string, std::string>>& pattern_and_phase) {
  KernelMap map;
  for (const auto& [pattern, phase] : pattern_and_phase) map.phases.push_back({pattern, phase});
  return map;
}

std::string on_track(const std::string& name, int pid, int stream, int start) {
  return slice("kernel", name, R"("pid": )" + std::to_string(pid) + R"(, "tid": )" + std::to_string(stream),
               times(std::to_string(start), "5"), R"("stream": )" + std::to_string(stream));
}

}  // namespace

TEST_CASE("annotations of one name are its layers, in order of time") {
  SmallTrace trace;
  for (int layer = 0; layer < 3; ++layer) {
    const int zero = 100 * layer;
    trace.annotation("attn", zero, zero + 9).kernel("a", 7, zero + 1, zero + 20, zero + 30);
    trace.annotation("mlp", zero + 10, zero + 19).kernel("b", 7, zero + 11, zero + 40, zero + 50);
  }
  trace.kernel("outside", 7, 290, 295, 296);
  const Measured m = trace.understood();
  CHECK(places(m) == Places{"attn 0", "mlp 0", "attn 1", "mlp 1", "attn 2", "mlp 2", "-"});
}

TEST_CASE("annotations of one name that overlap in time are one layer") {
  // On the host and on the GPU, or on two threads.
  SmallTrace trace;
  trace.annotation("attn", 0, 50).kernel("a", 7, 1, 60, 70);
  trace.add(range("attn", "30", "40", kAutogradThread)).add(launch("60", 90, kAutogradThread));
  trace.add(slice("kernel", "b", kStream7, times("80", "5"), R"("stream": 7, "correlation": 90)"));
  trace.annotation("attn", 100, 150).kernel("c", 7, 101, 160, 170);
  CHECK(places(trace.understood()) == Places{"attn 0", "attn 0", "attn 1"});
}

TEST_CASE("positions in a phase count in order of launch, not of start") {
  SmallTrace trace;
  trace.annotation("mlp", 0, 50);
  trace.kernel("first", 7, 1, 60, 70).kernel("second", 23, 5, 40, 55).kernel("third", 7, 9, 75, 80);
  const Measured m = trace.understood();
  CHECK(m.meaning.order == std::vector<std::uint32_t>{1, 0, 2});
  CHECK(m.meaning.places[1].index == 0);
  CHECK(m.meaning.places[0].index == 1);
  CHECK(m.meaning.places[2].index == 2);
}

TEST_CASE("without launches events count as launched in the order in which they start") {
  const Measured m = SmallTrace().on_gpu("kernel", "b", 23, 5, 9).on_gpu("kernel", "a", 7, 1, 9).understood();
  CHECK(m.meaning.order == std::vector<std::uint32_t>{0, 1});
  CHECK(m.trace.name(m.trace.gpu_events[0]) == "a");
}

TEST_CASE("with a mapping file, events in a row on one stream that mean the same phase are one") {
  SmallTrace trace;
  int at = 0;
  for (const char* name : {"qkv_gemm", "flash", "moe_gemm", "act", "moe_gemm", "qkv_gemm", "flash", "moe_gemm"}) {
    trace.on_gpu("kernel", name, 7, at, at + 5);
    at += 10;
  }
  CHECK(places(trace.understood(phases({{"qkv|flash", "attn"}, {"moe", "mlp"}}))) ==
        Places{"attn 0", "attn 0", "mlp 0", "mlp 0", "mlp 0", "attn 1", "attn 1", "mlp 1"});
}

TEST_CASE("with a mapping file, what comes before the first phase has none, and copies belong to what is before them") {
  SmallTrace trace;
  trace.on_gpu("kernel", "start", 7, 0, 5).on_gpu("kernel", "flash", 7, 10, 15);
  trace.on_gpu("gpu_memcpy", "flash copy", 7, 20, 25).on_gpu("kernel", "moe", 7, 30, 35);
  CHECK(places(trace.understood(phases({{"flash", "attn"}, {"moe", "mlp"}}))) ==
        Places{"-", "attn 0", "attn 0", "mlp 0"});
}

TEST_CASE("with a mapping file, streams and GPUs count their phases apart") {
  SmallTrace trace;
  trace.on_gpu("kernel", "flash", 7, 0, 5).on_gpu("kernel", kDispatch, 27, 2, 9).on_gpu("kernel", "flash", 7, 10, 15);
  trace.add(on_track("flash", 1, 7, 20));
  const Measured m = trace.understood(phases({{"flash", "attn"}, {"dispatch", "dispatch"}}));
  CHECK(places(m) == Places{"attn 0", "dispatch 0", "attn 0", "attn 0"});
  CHECK(m.meaning.phases.size() == 3);
}

TEST_CASE("with a mapping file, the first pattern that matches wins") {
  const SmallTrace trace = SmallTrace().on_gpu("kernel", "flash_moe", 7, 0, 5);
  CHECK(places(trace.understood(phases({{"moe", "mlp"}, {"flash", "attn"}}))) == Places{"mlp 0"});
  CHECK(places(trace.understood(phases({{"flash", "attn"}, {"moe", "mlp"}}))) == Places{"attn 0"});
}

TEST_CASE("the class that a trace of ours states counts, unless it is none") {
  SmallTrace trace;
  trace.on_gpu("kernel", "tiny", 7, 0, 5, R"("class": "small")");
  trace.on_gpu("kernel", "sm90_xmma_gemm", 7, 6, 9, R"("class": "huge")");
  trace.on_gpu("gpu_memset", "Memset", 7, 10, 11, R"("class": "gemm")");
  const Measured m = trace.understood();
  CHECK(m.meaning.classes == std::vector<KernelClass>{KernelClass::small, KernelClass::gemm, KernelClass::copy});
}

TEST_CASE("the same step of another layer has the same name and position") {
  SmallTrace trace;
  for (int layer = 0; layer < 2; ++layer) {
    const int zero = 100 * layer;
    trace.annotation("attn", zero, zero + 9);
    trace.kernel("a", 7, zero + 1, zero + 20, zero + 30).kernel("b", 7, zero + 3, zero + 32, zero + 40);
  }
  const Measured m = trace.understood();
  CHECK(step_of(m.meaning, 1) == step_of(m.meaning, 3));
  CHECK(step_of(m.meaning, 0) != step_of(m.meaning, 1));
  CHECK(layers_with(m.meaning, {{step_of(m.meaning, 0), 0}}).at(step_of(m.meaning, 0)) == 2);
}

}  // TEST_SUITE("trace/interpret")
