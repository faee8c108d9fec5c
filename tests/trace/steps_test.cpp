// Steps of servers and training loops are no phases: they have their own times, and layers inside.
#include "trace/steps.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/data.hpp"
#include "tests/support/server_trace.hpp"
#include "trace/step_windows.hpp"

TEST_SUITE("trace/steps") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::vector<StepWindow> windows_of(const Trace& trace) { return step_windows(trace, interpret(trace)); }

std::vector<std::string> names_of(const Trace& trace) {
  std::vector<std::string> names;
  for (const TraceStep& step : trace.steps) names.push_back(step.name);
  return names;
}

std::vector<std::size_t> layers_of(const Trace& trace) {
  std::vector<std::size_t> layers;
  for (const StepWindow& window : windows_of(trace)) layers.push_back(window.layers.size());
  return layers;
}

// By event: the name of its step.
std::vector<std::string> steps_of_events(const Trace& trace) {
  std::vector<std::string> names;
  for (const GpuEvent& event : trace.gpu_events) {
    names.push_back(event.step < 0 ? "none" : trace.steps[static_cast<std::size_t>(event.step)].name);
  }
  return names;
}

using Names = std::vector<std::string>;
using Layers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a server's annotations are steps with the model's layers in them, however much of its trace is there") {
  const Names steps = {"step[EXTEND bs=1 toks=888]", "step[DECODE bs=32]", "step[DECODE bs=32]"};
  for (const bool graphs : {true, false}) {
    for (const bool on_gpu : {true, false}) {
      CAPTURE(graphs);
      CAPTURE(on_gpu);
      const Trace trace = read(server_trace({.steps = steps, .graphs = graphs, .on_gpu = on_gpu}));
      CHECK(names_of(trace) == steps);
      CHECK(layers_of(trace) == Layers{36, 36, 36});
      CHECK(interpret(trace).phases.empty());
      // Steps do not overlap, and what is between them is in none: the kernel that samples.
      const std::vector<StepWindow> windows = windows_of(trace);
      CHECK(windows[0].time.end_ns < windows[1].time.start_ns);
      const Names of_events = steps_of_events(trace);
      CHECK(std::count(of_events.begin(), of_events.end(), "none") == 3);
    }
  }
  const Trace twins_alone = read(server_trace({.steps = steps, .on_host = false}));
  CHECK(names_of(twins_alone) == steps);
  CHECK(layers_of(twins_alone) == Layers{36, 36, 36});
}

TEST_CASE("kernels without a recorded launch belong to the step whose twin is around them") {
  const Trace trace = read(server_trace(
      {.steps = steps_named("execute_new_0_cached_32", 2), .layers = 8, .graphs = false, .unrecorded = 4}));
  CHECK(trace.steps.size() == 2);
  CHECK(layers_of(trace) == Layers{8, 8});
  const Names of_events = steps_of_events(trace);
  CHECK(std::count(of_events.begin(), of_events.end(), "none") == 2);
}

TEST_CASE("a launch by a thread that is in the next step does not make two steps one") {
  const auto step = [](int start) { return range("step[DECODE bs=1]", std::to_string(start), "90"); };
  const auto twin = [](int start) { return gpu_range("step[DECODE bs=1]", std::to_string(start), "80"); };
  // The first kernel of the first twin was launched in the second step.
  const Trace trace =
      read(trace_of(step(0) + "," + step(100) + "," + twin(500) + "," + twin(600) + "," + launch("110", 1) + "," +
                    launch("20", 2) + "," + launch("30", 3) + "," + launch("120", 4) + "," + kernel("500", "20", 1) +
                    "," + kernel("530", "20", 2) + "," + kernel("560", "20", 3) + "," + kernel("600", "80", 4)));
  REQUIRE(trace.steps.size() == 2);
  std::vector<std::int32_t> of_events;
  for (const GpuEvent& event : trace.gpu_events) of_events.push_back(event.step);
  CHECK(of_events == std::vector<std::int32_t>{0, 0, 0, 1});
}

TEST_CASE("an annotation around the same layers over and over is a step, whatever its name") {
  const Trace trace = read(server_trace({.steps = {"my run 1", "my run 2", "my run 3"}, .layers = 8}));
  CHECK(names_of(trace) == Names{"my run 1", "my run 2", "my run 3"});
  CHECK(trace.steps[2].kind == "my run");
  CHECK(layers_of(trace) == Layers{8, 8, 8});
  CHECK(interpret(trace).phases.empty());
}

TEST_CASE("annotations with numbers in their names are steps of one name, however many there are") {
  std::vector<std::string> names;
  for (int i = 0; i < 25; ++i) names.push_back("call-" + std::to_string(i) + "-decode");
  const Trace trace = read(server_trace({.steps = names, .layers = 7}));
  CHECK(names_of(trace) == names);
  CHECK(layers_of(trace) == Layers(25, 7));
}

TEST_CASE("annotations that alternate in every layer stay phases") {
  std::string events;
  int correlation = 0;
  for (int layer = 0; layer < 12; ++layer) {
    for (const char* phase : {"attn", "mlp"}) {
      const int start = 100 * ++correlation;
      events += (events.empty() ? "" : ",") + gpu_range(phase, std::to_string(start), "80") + "," +
                kernel(std::to_string(start), "30", correlation) + "," +
                kernel(std::to_string(start + 40), "40", correlation);
    }
  }
  const Trace trace = read(trace_of(events));
  CHECK(trace.steps.empty());
  CHECK(interpret(trace).phases.size() == 24);
}

TEST_CASE("the profiler's steps count where nothing finer is known, by their numbers") {
  const ServerTrace within_profiler_steps = {
      .steps = steps_named("step[DECODE bs=32]", 3), .layers = 8, .profiler = true};
  const Trace server = read(server_trace(within_profiler_steps));
  CHECK(server.steps[0].kind == "DECODE bs=32");
  CHECK(server.steps.size() == 3);
  const Trace unknown = read(server_trace({.steps = steps_named("my own", 3), .layers = 8, .profiler = true}));
  CHECK(unknown.steps[0].kind == "my own");
  const Trace profiler = read(replace_all(server_trace(within_profiler_steps), "step[DECODE bs=32]", "nccl:x"));
  REQUIRE(profiler.steps.size() == 3);
  CHECK(profiler.steps[0].kind == "ProfilerStep");
  CHECK(profiler.steps[0].number == 1);
  CHECK(profiler.steps[2].number == 3);
  CHECK(layers_of(profiler) == Layers{8, 8, 8});
}

TEST_CASE("what encloses a step is no phase, even where it encloses none") {
  const auto around = [](const std::string& name, int start, int length) {
    return range(name, std::to_string(start), std::to_string(length));
  };
  const Trace trace =
      read(trace_of(around("scheduler.run", 0, 100) + "," + around("step[DECODE bs=1]", 10, 50) + "," +
                    around("scheduler.run", 200, 50) + "," + around("sample", 300, 50) + "," + launch("20", 1) + "," +
                    launch("70", 2) + "," + launch("210", 3) + "," + launch("310", 4) + "," + kernel("400", "5", 1) +
                    "," + kernel("410", "5", 2) + "," + kernel("420", "5", 3) + "," + kernel("430", "5", 4)));
  CHECK(steps_of_events(trace) == Names{"step[DECODE bs=1]", "none", "none", "none"});
  const Interpretation meaning = interpret(trace);
  REQUIRE(meaning.phases.size() == 1);
  CHECK(meaning.phases[0].name == "sample");
}

TEST_CASE("phases inside a step are phases of its events, too") {
  const Trace trace =
      read(trace_of(range("step[DECODE bs=1]", "0", "100") + "," + range("attn", "10", "20") + "," + launch("15", 1) +
                    "," + launch("50", 2) + "," + kernel("200", "5", 1) + "," + kernel("210", "5", 2)));
  CHECK(steps_of_events(trace) == Names{"step[DECODE bs=1]", "step[DECODE bs=1]"});
  CHECK(trace.gpu_events[0].annotation >= 0);
  CHECK(trace.gpu_events[1].annotation < 0);
}

TEST_CASE("each step's layers are found on the stream that computes most in it") {
  // The decode graph was captured on a stream of its own.
  const std::string prefill = server_trace({.steps = {"step[EXTEND bs=1 toks=8]"}, .layers = 8});
  std::string decode = server_trace({.steps = {"step[DECODE bs=4]"}, .layers = 8, .lead_us = 100'000});
  decode = replace_all(replace_all(decode, R"("tid": 7)", R"("tid": 99)"), R"("stream": 7)", R"("stream": 99)");
  decode = change_numbers(decode, R"("correlation": )", [](std::int64_t n) { return std::to_string(n + 1000); });
  const auto events = [](const std::string& text) {
    const std::size_t from = text.find("[\n", text.find("traceEvents")) + 2;
    return text.substr(from, text.rfind(']') - from);
  };
  const Trace trace = read(trace_of(events(prefill) + "," + events(decode)));
  CHECK(names_of(trace) == Names{"step[EXTEND bs=1 toks=8]", "step[DECODE bs=4]"});
  CHECK(layers_of(trace) == Layers{8, 8});
}

TEST_CASE("steps are numbered on each GPU alone") {
  std::string events;
  for (int i = 0; i < 4; ++i) {
    const std::string pid = i % 2 == 0 ? "0" : "1";
    const std::string track = R"("pid": )" + pid + R"(, "tid": 7)";
    const std::string start = std::to_string(100 * i);
    events += (i > 0 ? "," : "") + gpu_range("step[DECODE bs=1]", start, "50", track) + "," +
              slice("kernel", "gemm", track, times(start, "50"), R"("stream": 7)");
  }
  std::vector<std::uint32_t> numbers;
  for (const TraceStep& step : read(trace_of(events)).steps) numbers.push_back(step.number);
  CHECK(numbers == std::vector<std::uint32_t>{0, 0, 1, 1});
}

TEST_CASE("the median of a kind is the step of median length, and kinds with most time come first") {
  const Trace trace = read(server_trace(
      {.steps = {"step[EXTEND bs=1 toks=8]", "step[DECODE bs=4]", "step[DECODE bs=4]", "step[DECODE bs=4]"},
       .layers = 5}));
  const std::vector<StepWindow> windows = windows_of(trace);
  const std::vector<StepKind> kinds = step_kinds(trace, windows);
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].kind == "DECODE bs=4");
  CHECK(kinds[0].steps == std::vector<std::size_t>{1, 2, 3});
  std::vector<std::int64_t> lengths;
  for (const std::size_t i : kinds[0].steps) lengths.push_back(windows[i].time.length_ns());
  std::sort(lengths.begin(), lengths.end());
  CHECK(windows[kinds[0].median].time.length_ns() == lengths[1]);
}

TEST_CASE("real models have the layers that their configurations say") {
  // shared/data/traces/real/README.md: 48 of Qwen3-30B-A3B, 36 of Qwen3-8B and gpt-oss-120b, 24 of gpt-oss-20b, whose
  // attention slides in every second layer, and of Qwen1.5-0.5B, 40 of a GPT of Megatron's with unfused attention.
  const std::vector<std::pair<std::string, std::size_t>> known = {{"b300_sglang_qwen3_30b_decode", 48},
                                                                  {"mi300x_sglang_qwen3_30b_decode", 48},
                                                                  {"mi300x_sglang_qwen3_8b_decode", 36},
                                                                  {"mi300x_vllm_gpt_oss_20b_decode", 24},
                                                                  {"b200_vllm_gpt_oss_120b_tp8_prefill_eager", 36},
                                                                  {"h100_transformers_qwen1.5_0.5b_prefill", 24},
                                                                  {"mi300x_transformers_qwen1.5_0.5b_prefill", 24},
                                                                  {"a100_megatron_gpt_tp8_rank0", 40}};
  for (const auto& each : known) {
    const std::string& name = each.first;
    const std::filesystem::path file = data_folder() / ("traces/real/" + name + ".json.gz");
    if (!present(file)) continue;
    CAPTURE(name);
    CHECK(layers_of(read_trace(file)) == Layers{each.second});
  }
}

TEST_CASE("what stands between two repetitions belongs to neither") {
  std::string events;
  int start = 0;
  const auto add = [&](const std::string& name) {
    events += (events.empty() ? "" : ",") +
              slice("kernel", name, kStream7, times(std::to_string(start), "9"), R"("stream": 7)");
    start += 10;
  };
  for (int layer = 0; layer < 24; ++layer) {
    for (const char* name : {"norm", "qkv", "attention", "proj", "mlp"}) add(name);
    if (layer != 11) continue;
    for (int i = 0; i < 40; ++i) add("backward" + std::to_string(i));
  }
  const Trace trace = read(trace_of(events));
  std::vector<std::uint32_t> all(trace.gpu_events.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<Stretch> layers = repeated_layers(trace, interpret(trace), all);
  REQUIRE(layers.size() == 24);
  CHECK(layers[10].length_ns() == 50'000);
  CHECK(layers[11].length_ns() == 49'000);  // to the end of its own last kernel
  CHECK(layers[12].start_ns == layers[11].start_ns + 450'000);
}

}  // TEST_SUITE("trace/steps")
