// Our traces against the rules of their readers: Perfetto, the Chrome trace viewer, HolisticTraceAnalysis, ourselves.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "experiments/run/run.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"
#include "timeline/write_trace.hpp"

TEST_SUITE("timeline/write_trace") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const Run& chunk() {
  static const Run run = run_scenario(load_setup(chunk_scenario()), {.record_changes = true});
  return run;
}

std::string trace(TraceOptions options = {.world_size = 64, .device_name = "h800"}) {
  return trace_of_rank(chunk().program.graph, chunk().timeline, 0, options);
}

// Times of the trace in ns, exact: they have three decimals at most.
std::int64_t ns(const rapidjson::Value& us) { return std::llround(us.GetDouble() * 1000); }

std::string text(const rapidjson::Value& event, const char* key) {
  return event.HasMember(key) ? event[key].GetString() : "";
}

std::vector<const rapidjson::Value*> events(const rapidjson::Document& document, const std::string& phase,
                                            const std::string& category) {
  std::vector<const rapidjson::Value*> found;
  for (const rapidjson::Value& event : document["traceEvents"].GetArray()) {
    if (text(event, "ph") == phase && (category.empty() || text(event, "cat") == category)) found.push_back(&event);
  }
  return found;
}

}  // namespace

TEST_CASE("the rank stands first, with the space that HTA's pattern wants") {
  const std::string json = trace();
  CHECK(json.find("\"rank\": 0") != std::string::npos);  // HTA: "rank":\s+(\d+)
  CHECK(json.find("\"distributedInfo\"") < json.find("\"traceEvents\""));
  CHECK(json.find("\"distributedInfo\"") < 10);
}

TEST_CASE("slices of one track nest or are disjoint, and outer ones stand first") {
  for (const bool whole_us : {false, true}) {
    const rapidjson::Document document = parsed(trace({.world_size = 64, .device_name = "h800", .whole_us = whole_us}));
    struct Slice {
      std::int64_t start, end;
    };
    std::map<std::pair<int, int>, std::vector<Slice>> tracks;
    for (const rapidjson::Value* event : events(document, "X", "")) {
      const std::int64_t start = ns((*event)["ts"]);
      tracks[{(*event)["pid"].GetInt(), (*event)["tid"].GetInt()}].push_back({start, start + ns((*event)["dur"])});
      CHECK(ns((*event)["dur"]) >= 0);
      CHECK(start >= 0);
    }
    for (auto& [track, slices] : tracks) {
      // stable: equal slices keep their order in the file, as readers do
      std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
        return a.start != b.start ? a.start < b.start : a.end > b.end;
      });
      std::vector<std::int64_t> open;
      for (const Slice& slice : slices) {
        while (!open.empty() && open.back() <= slice.start) open.pop_back();
        if (!open.empty()) CHECK(slice.end <= open.back());
        open.push_back(slice.end);
      }
    }
  }
}

TEST_CASE("every kernel has a launch before it and a flow between the two") {
  const rapidjson::Document document = parsed(trace());
  std::map<int, std::int64_t> launches, flow_starts, flow_ends;
  for (const rapidjson::Value* launch : events(document, "X", "cuda_runtime")) {
    launches[(*launch)["args"]["correlation"].GetInt()] = ns((*launch)["ts"]);
    CHECK(!(*launch)["args"].HasMember("stream"));
  }
  for (const rapidjson::Value* flow : events(document, "s", "ac2g"))
    flow_starts[(*flow)["id"].GetInt()] = ns((*flow)["ts"]);
  for (const rapidjson::Value* flow : events(document, "f", "ac2g")) {
    flow_ends[(*flow)["id"].GetInt()] = ns((*flow)["ts"]);
    CHECK(text(*flow, "bp") == "e");
  }
  const auto kernels = events(document, "X", "kernel");
  CHECK(kernels.size() == 980);  // 245 in each of four layers
  for (const rapidjson::Value* kernel : kernels) {
    const int correlation = (*kernel)["args"]["correlation"].GetInt();
    CHECK((*kernel)["args"]["stream"].GetInt() == (*kernel)["tid"].GetInt());
    REQUIRE(launches.contains(correlation));
    CHECK(flow_starts.at(correlation) == launches.at(correlation) + 1);
    CHECK(flow_ends.at(correlation) == ns((*kernel)["ts"]) + 1);
    CHECK(launches.at(correlation) < ns((*kernel)["ts"]));
  }
}

TEST_CASE("a phase annotation has exactly the bounds of its kernels, stands before them, and names no stream") {
  const rapidjson::Document document = parsed(trace());
  const auto annotations = events(document, "X", "gpu_user_annotation");
  CHECK(annotations.size() == 44);  // ten phases in four layers, mlp(W) on two streams
  for (const rapidjson::Value* annotation : annotations) {
    CHECK(!(*annotation)["args"].HasMember("stream"));
    const std::int64_t start = ns((*annotation)["ts"]);
    const std::int64_t end = start + ns((*annotation)["dur"]);
    std::int64_t first = end;
    std::int64_t last = start;
    for (const rapidjson::Value* kernel : events(document, "X", "kernel")) {
      if ((*kernel)["tid"].GetInt() != (*annotation)["tid"].GetInt()) continue;
      const std::int64_t kernel_start = ns((*kernel)["ts"]);
      const std::int64_t kernel_end = kernel_start + ns((*kernel)["dur"]);
      if (kernel_start < start || kernel_end > end) continue;
      CHECK(annotation < kernel);  // order in the file
      first = std::min(first, kernel_start);
      last = std::max(last, kernel_end);
    }
    CHECK(first == start);
    CHECK(last == end);
  }
}

TEST_CASE("with HTA's names communication kernels match its pattern, and nothing else does") {
  const rapidjson::Document document = parsed(trace({.world_size = 64, .device_name = "h800", .hta_names = true}));
  for (const rapidjson::Value* kernel : events(document, "X", "kernel")) {
    const std::string task_class = (*kernel)["args"]["class"].GetString();
    const bool communication = task_class == "dispatch" || task_class == "combine" || task_class == "barrier";
    CHECK(text(*kernel, "name").starts_with("nccl") == communication);
  }
}

TEST_CASE("no kernel bears a name that HTA takes for something else") {
  const rapidjson::Document document = parsed(trace());
  for (const rapidjson::Value* kernel : events(document, "X", "kernel")) {
    for (const char* misread : {"dma", "Memcpy", "Memset", "Sync"}) {
      CHECK(text(*kernel, "name").find(misread) == std::string::npos);
    }
  }
}

TEST_CASE("counters stay within the machine") {
  const rapidjson::Document document = parsed(trace());
  const auto counters = events(document, "C", "");
  CHECK(counters.size() > 100);
  const std::map<std::string, double> capacity = {
      {"SMs", 132},         {"HBM GB/s", 3350}, {"NVLink out GB/s", 160}, {"NVLink in GB/s", 160},
      {"NIC out GB/s", 50}, {"NIC in GB/s", 50}};
  for (const rapidjson::Value* counter : counters) {
    const double taken = (*counter)["args"]["taken"].GetDouble();
    CHECK(taken >= 0);
    CHECK(taken <= capacity.at(text(*counter, "name")) + 0.05);  // as rounded in the file
  }
}

TEST_CASE("our own reader finds the phases that were written") {
  const auto path = std::filesystem::temp_directory_path() / "moeline_write_trace_test.json";
  std::ofstream(path) << trace();
  const std::vector<PhaseTimes> read = phase_times(read_trace(path));
  std::filesystem::remove(path);
  const std::vector<PhaseTimes>& written = chunk().phases;
  REQUIRE(read.size() == written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].phase == written[i].phase);
    CHECK(read[i].layer == written[i].layer);
    CHECK(read[i].stream == written[i].stream);
    CHECK(to_us(read[i].span()) == doctest::Approx(to_us(written[i].span())).epsilon(1e-5));
    CHECK(to_us(read[i].transfer) == doctest::Approx(to_us(written[i].transfer)).epsilon(1e-5));
  }
}

}  // TEST_SUITE("timeline/write_trace")
