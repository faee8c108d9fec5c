// Traces of prefill and decode: two micro-batches, transfers whose data travel beside other work, CUDA graphs, a host
// that launches kernel by kernel.
#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/simulate.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/trace_text.hpp"
#include "timeline/comparison.hpp"
#include "timeline/write_trace.hpp"

TEST_SUITE("timeline/inference_trace") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Event = const rapidjson::Value*;

Run recorded(const std::filesystem::path& scenario, std::vector<std::string> assignments = {}) {
  assignments.emplace_back("layers=4");
  return run_scenario(load_setup(scenario, assignments), {.record_changes = true});
}

std::string trace_of(const Run& run) {
  return trace_of_rank(run.program.graph, run.timeline, 0,
                       {.device_name = "h800", .graph_launch = run.setup.scenario.launch == Launch::graph});
}

struct Parsed {
  rapidjson::Document document;
  explicit Parsed(const std::string& json) {
    document.Parse(json.c_str());
    REQUIRE(!document.HasParseError());
  }
  [[nodiscard]] std::vector<Event> events(const std::string& phase, const std::string& category) const {
    std::vector<Event> found;
    for (const rapidjson::Value& event : document["traceEvents"].GetArray()) {
      if (event["ph"] == phase.c_str() && event.HasMember("cat") && event["cat"] == category.c_str()) {
        found.push_back(&event);
      }
    }
    return found;
  }
};

std::string name_of(Event event) { return (*event)["name"].GetString(); }
bool on_the_wire(Event event) { return name_of(event).ends_with("on the wire"); }
int correlation_of(Event event) { return (*event)["args"]["correlation"].GetInt(); }
std::int64_t start_ns(Event event) { return std::llround((*event)["ts"].GetDouble() * 1000); }
std::int64_t end_ns(Event event) {
  return start_ns(event) + (event->HasMember("dur") ? std::llround((*event)["dur"].GetDouble() * 1000) : 0);
}
std::pair<int, int> track_of(Event event) { return {(*event)["pid"].GetInt(), (*event)["tid"].GetInt()}; }
bool inside(Event inner, Event outer) {
  return track_of(inner) == track_of(outer) && start_ns(inner) >= start_ns(outer) && end_ns(inner) <= end_ns(outer);
}

// Issues and receives of both micro-batches stand as close as they can: nothing hides the wire.
const char* const kEarlyIssues =
    "compute: [issue dispatch 0, issue dispatch 1, shared 0, receive dispatch 0, shared 1, receive dispatch 1,\n"
    "  mlp 0, issue combine 0, mlp 1, issue combine 1, receive combine 0, next attn-0 0, receive combine 1,\n"
    "  next attn-1 0, next attn-0 1, next attn-1 1]\n";

void check_read_back(const Run& run) {
  const std::vector<PhaseTimes> read_back = phase_times(read(trace_of(run)));
  REQUIRE(read_back.size() == run.phases.size());
  for (const PhaseTimes& phase : read_back) {
    const PhaseTimes& written =
        testing::phase(run, phase.phase, static_cast<int>(phase.micro_batch), static_cast<int>(phase.layer));
    CAPTURE(phase.phase);
    CHECK(phase.stream == written.stream);
    const double rounding_us = 0.001;
    CHECK(std::abs(to_us(phase.span() - written.span())) <= rounding_us);
    CHECK(std::abs(to_us(phase.transfer - written.transfer)) <= 3 * rounding_us);
    CHECK(std::abs(to_us(phase.barrier - written.barrier)) <= rounding_us);
  }
  const Score zero = score(run.phases, read_back, common_layers(run.phases, read_back, {}));
  CHECK(zero.worst_abs_error < 1e-3);
  CHECK(std::abs(zero.span_error) < 1e-5);
  CHECK(zero.same_order);
  CHECK(zero.phases.size() + zero.communication.size() == run.phases.size());
}

}  // namespace

TEST_CASE("a prediction compared with its own trace differs by nothing, in every micro-batch") {
  check_read_back(recorded(decode_scenario()));
  check_read_back(recorded(decode_scenario(), {"workload.query_len=2"}));
  check_read_back(recorded(decode_scenario(), {"launch=stream"}));
  check_read_back(recorded(decode_scenario(), {"schedule=sequential"}));
  check_read_back(recorded(prefill_scenario()));
  check_read_back(recorded(prefill_scenario(), {"schedule=sequential"}));
  const TemporaryFolder folder;
  check_read_back(recorded(decode_scenario(), {"overlap=" + folder.write("plan.yaml", kEarlyIssues)}));
}

TEST_CASE("no slice lies across another, whatever runs between issue and receive") {
  const TemporaryFolder folder;
  const std::string plan = "overlap=" + folder.write("plan.yaml", kEarlyIssues);
  for (const std::string& assignment : {std::string("launch=graph"), std::string("launch=stream"), plan}) {
    const Parsed trace(trace_of(recorded(decode_scenario(), {assignment})));
    std::map<std::pair<int, int>, std::vector<Event>> tracks;
    for (const char* category : {"gpu_user_annotation", "kernel", "cpu_op", "cuda_runtime"}) {
      for (Event event : trace.events("X", category)) tracks[track_of(event)].push_back(event);
    }
    for (auto& [track, slices] : tracks) {
      std::stable_sort(slices.begin(), slices.end(), [](Event a, Event b) {
        return std::pair(start_ns(a), -end_ns(a)) < std::pair(start_ns(b), -end_ns(b));
      });
      std::vector<Event> open;
      for (Event slice : slices) {
        while (!open.empty() && end_ns(open.back()) <= start_ns(slice)) open.pop_back();
        if (!open.empty()) CHECK(inside(slice, open.back()));
        open.push_back(slice);
      }
    }
  }
}

TEST_CASE("a CUDA graph has one launch, whose correlation all its kernels share") {
  const Parsed trace(trace_of(recorded(decode_scenario())));
  const auto launches = trace.events("X", "cuda_runtime");
  REQUIRE(launches.size() == 1);
  CHECK(name_of(launches[0]) == "cudaGraphLaunch");
  CHECK(trace.events("s", "ac2g").size() == 1);
  CHECK(trace.events("f", "ac2g").size() == 1);
  std::set<int> nodes;
  for (Event kernel : trace.events("X", "kernel")) {
    CHECK(correlation_of(kernel) == correlation_of(launches[0]));
    CHECK(end_ns(launches[0]) <= start_ns(kernel));
    CHECK((*kernel)["args"].HasMember("graph node id") != on_the_wire(kernel));
    if (!on_the_wire(kernel)) CHECK(nodes.insert((*kernel)["args"]["graph node id"].GetInt()).second);
  }
}

TEST_CASE("where the host launches kernel by kernel, launches are its own work, and late ones delay kernels") {
  for (const auto& scenario : {decode_scenario(), prefill_scenario()}) {
    const Parsed trace(trace_of(recorded(scenario, {"launch=stream"})));
    std::map<int, Event> launches;
    for (Event launch : trace.events("X", "cuda_runtime")) launches[correlation_of(launch)] = launch;
    std::vector<Event> host = trace.events("X", "cpu_op");
    std::size_t waited = 0;
    for (Event kernel : trace.events("X", "kernel")) {
      const auto launch = launches.find(correlation_of(kernel));
      REQUIRE(launch != launches.end());
      CHECK(end_ns(launch->second) <= start_ns(kernel));
      const auto task =
          std::find_if(host.begin(), host.end(), [&](Event other) { return inside(launch->second, other); });
      REQUIRE(task != host.end());
      const bool counts = name_of(kernel) == "deep_ep::internode::dispatch";
      CHECK(name_of(*task) == (counts ? "read counts, launch dispatch" : "launch"));
      if (start_ns(kernel) - end_ns(launch->second) < 2500) ++waited;
    }
    CHECK(waited > 0);
  }
}

TEST_CASE("data on the wire belong to the kernel that sends them, take links and no SMs") {
  const Parsed trace(trace_of(recorded(decode_scenario(), {"launch=stream"})));
  std::map<int, Event> issues;
  for (Event kernel : trace.events("X", "kernel")) {
    if (name_of(kernel).ends_with(" issue")) issues[correlation_of(kernel)] = kernel;
  }
  int wires = 0;
  for (Event kernel : trace.events("X", "kernel")) {
    if (!on_the_wire(kernel)) continue;
    ++wires;
    CHECK((*kernel)["tid"].GetInt() == 27);
    CHECK((*kernel)["args"]["NIC out GB/s"].GetDouble() > 0);
    CHECK(!(*kernel)["args"].HasMember("SMs wanted"));
    const auto issue = issues.find(correlation_of(kernel));
    REQUIRE(issue != issues.end());
    CHECK(end_ns(issue->second) <= start_ns(kernel));
    CHECK(name_of(issue->second).substr(0, name_of(issue->second).rfind(' ')) ==
          name_of(kernel).substr(0, name_of(kernel).find(" on the wire")));
  }
  CHECK(wires == 16);  // dispatch and combine of two micro-batches in four layers
}

TEST_CASE("what a transfer waits for is drawn, with an arrow to it") {
  for (const auto& scenario : {decode_scenario(), prefill_scenario()}) {
    const Parsed trace(trace_of(recorded(scenario)));
    const auto arrows = trace.events("f", "wait");
    CHECK(trace.events("s", "wait").size() == arrows.size());
    std::size_t slowest = 0;
    for (Event task : trace.events("X", "cpu_op")) {
      if (name_of(task) != "the slowest rank") continue;
      ++slowest;
      CHECK((*task)["args"].HasMember("layer"));
      CHECK((*task)["args"].HasMember("micro_batch"));
      const auto arrow = std::find_if(arrows.begin(), arrows.end(), [&](Event end) {
        const auto starts = trace.events("s", "wait");
        return std::any_of(starts.begin(), starts.end(),
                           [&](Event from) { return (*from)["id"] == (*end)["id"] && inside(from, task); });
      });
      REQUIRE(arrow != arrows.end());
      CHECK((**arrow)["tid"].GetInt() == 27);
      CHECK(start_ns(*arrow) > start_ns(task));
    }
    CHECK(slowest == 16);
  }
}

TEST_CASE("host work of one kind that overlaps stands on two threads") {
  TaskGraphDraft draft;
  Label wait{.name = draft.intern("the slowest rank")};
  wait.task_class = draft.add_class("host", Role::host);
  wait.stream = draft.add_stream({0, 0, "host", Role::host});
  wait.phase = draft.add_phase({"dispatch", 0, 0, 0});
  Label kernel = wait;
  kernel.task_class = draft.add_class("dispatch", Role::communication);
  kernel.stream = draft.add_stream({0, 27, "communication", Role::communication});
  const TaskId after = draft.add({.solo = from_us(10)}, kernel);
  for (const int delay_us : {0, 5, 10}) {
    draft.start_after_end(draft.add({.solo = from_us(10), .delay = from_us(delay_us)}, wait), after);
  }
  const TaskGraph graph(std::move(draft));
  const Parsed trace(trace_of_rank(graph, simulate(graph, {.record_changes = true}), 0, {}));
  const auto waits = trace.events("X", "cpu_op");
  REQUIRE(waits.size() == 3);
  CHECK(track_of(waits[0]) != track_of(waits[1]));
  CHECK(track_of(waits[0]) == track_of(waits[2]));
  CHECK(trace.events("s", "wait").size() == 3);
}

}  // TEST_SUITE("timeline/inference_trace")
