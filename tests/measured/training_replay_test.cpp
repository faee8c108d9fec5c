// DeepSeek's training trace as a task graph. Edges and slacks: the close reading of the trace (its cross-stream
// dependencies, by position of the wait calls and by start times). Spans after a change: the same eight edges and two
// FIFOs replayed by hand with the phases' measured lengths.
#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "measured/replay_text.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("measured/training_replay") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct CrossEdge {
  std::string before, after;
  std::int64_t layers = 0;  // from one to the other
  bool operator<(const CrossEdge& other) const {
    return std::tie(before, after, layers) < std::tie(other.before, other.after, other.layers);
  }
};

std::string with_stream(const Measured& m, Node node) {
  return shown(m, node) + "@" + std::to_string(m.trace.gpu_events[node.index].stream);
}

// Of all event waits, in how many layers each stands.
std::map<CrossEdge, int> cross_edges(const Measured& m) {
  std::map<CrossEdge, int> found;
  for (const Dependency& edge : m.dependencies) {
    if (edge.reason != Reason::event_wait && edge.reason != Reason::start_time) continue;
    const std::int64_t from = phase_of(m, edge.before)->place.layer;
    const std::int64_t to = phase_of(m, edge.after)->place.layer;
    ++found[{with_stream(m, edge.before), with_stream(m, edge.after), to - from}];
  }
  return found;
}

bool is_first(const Measured& m, std::uint32_t event) {
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const bool same_stream = m.trace.gpu_events[i].stream == m.trace.gpu_events[event].stream;
    if (same_stream && m.meaning.places[i].phase == m.meaning.places[event].phase) return i == event;
  }
  return false;
}

bool is_last(const Measured& m, std::uint32_t event) {
  for (auto i = static_cast<std::uint32_t>(m.trace.gpu_events.size()); i-- > 0;) {
    const bool same_stream = m.trace.gpu_events[i].stream == m.trace.gpu_events[event].stream;
    if (same_stream && m.meaning.places[i].phase == m.meaning.places[event].phase) return i == event;
  }
  return false;
}

// By name and layer: when a phase started.
using Starts = std::map<std::pair<std::string, std::uint32_t>, Time>;

Starts starts(const Measured& m, const std::function<Time(std::uint32_t)>& start_of) {
  Starts first;
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const TracePhase& phase = *phase_of(m, {i, false});
    const auto [found, added] = first.try_emplace({phase.name, phase.place.layer}, start_of(i));
    if (!added) found->second = std::min(found->second, start_of(i));
  }
  return first;
}

Starts measured_starts(const Measured& m) {
  return starts(m, [&](std::uint32_t i) -> Time { return std::chrono::nanoseconds(m.trace.gpu_events[i].start_ns); });
}

Starts replayed_starts(const Measured& m, const WhatIf& what_if = {}) {
  const ReplayGraph replay = replay_graph(m, what_if);
  const Timeline timeline = simulate(replay.graph);
  return starts(m, [&](std::uint32_t i) { return timeline.spans[replay.of_event[i]].start; });
}

WhatIf scaled(const std::vector<WhatIf::Scale>& scales) { return {scales, {}}; }

}  // namespace

TEST_CASE("DeepSeek's training trace has the eight cross-stream edges of a close reading, and no other") {
  if (!present(training_trace())) return;
  const std::map<CrossEdge, int> known = {
      {{"attn(B)@7", "combine(B)@27", 1}, 3},  {{"mlp(F)@7", "combine(F)@27", 0}, 4},
      {{"attn(F)@7", "dispatch(F)@27", 0}, 4}, {{"combine(B)@27", "mlp(B)@7", 0}, 4},
      {{"dispatch(B)@27", "attn(B)@7", 0}, 4}, {{"dispatch(F)@27", "mlp(F)@7", 0}, 4},
      {{"combine(F)@27", "attn(F)@7", 1}, 3},  {{"mlp(B)@7", "dispatch(B)@27", 0}, 4},
      {{"mlp(W)@7", "mlp(W)@23", 0}, 8},  // forks after the two casts, joins after the two groups of four products
      {{"mlp(W)@23", "mlp(W)@7", 0}, 8},
  };
  const std::map<CrossEdge, int> found = cross_edges(training());
  for (const auto& each : found) {
    const auto& edge = each.first;
    CAPTURE(edge.before);
    CAPTURE(edge.after);
    CAPTURE(edge.layers);
    REQUIRE(known.contains(edge));
    CHECK(known.at(edge) == each.second);
  }
  CHECK(found.size() == known.size());
}

TEST_CASE("the training trace's edges between phases lead from the last kernel of one to the first of the other") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  for (const Dependency& edge : m.dependencies) {
    if (edge.reason != Reason::event_wait || shown(m, edge.before) == "mlp(W)") continue;
    CAPTURE(shown(m, edge.before));
    CAPTURE(shown(m, edge.after));
    CHECK(is_last(m, edge.before.index));
    CHECK(is_first(m, edge.after.index));
  }
}

TEST_CASE("the training trace's side stream forks after each cast of mlp(W) and joins after each group of four") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  // Positions in mlp(W): cast 1, products 2-5, cast 6, products 7-10, product 11; odd ones of a group run aside.
  const std::set<std::pair<std::uint32_t, std::uint32_t>> known = {{1, 3}, {5, 6}, {6, 8}, {10, 11}};
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> found;
  for (const Dependency& edge : m.dependencies) {
    if (edge.reason != Reason::event_wait || shown(m, edge.before) != "mlp(W)") continue;
    ++found[{m.meaning.places[edge.before.index].index, m.meaning.places[edge.after.index].index}];
  }
  CHECK(found.size() == known.size());
  for (const auto& [edge, layers] : found) {
    CHECK(known.contains(edge));
    CHECK(layers == 4);
  }
}

TEST_CASE("the training trace's host waits for the received counts in every layer, and for nothing else") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  int waits = 0;
  for (const Dependency& edge : m.dependencies) {
    if (edge.reason != Reason::host_wait) continue;
    ++waits;
    CHECK(shown(m, edge.before) == "dispatch(F)");
    CHECK(m.meaning.classes[edge.before.index] == KernelClass::barrier);
    // The first launch after the wait is that of the dispatch itself; mlp(W) and the rest follow in the host's order.
    const auto launched = std::find_if(m.trace.gpu_events.begin(), m.trace.gpu_events.end(), [&](const GpuEvent& e) {
      return e.call == static_cast<std::int32_t>(edge.after.index);
    });
    REQUIRE(launched != m.trace.gpu_events.end());
    CHECK(m.meaning.classes[static_cast<std::size_t>(launched - m.trace.gpu_events.begin())] == KernelClass::dispatch);
  }
  CHECK(waits == 4);
}

TEST_CASE("the training trace replays to its own span, with every phase where it was") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  CHECK(measured_span(m.trace) == from_us(129'012));
  CHECK(std::abs(change(replayed_span(m), measured_span(m.trace))) < 0.005);
  const Starts measured = measured_starts(m);
  const Starts replayed = replayed_starts(m);
  REQUIRE(measured.size() == 40);
  // dispatch(B) of layer 3 waited 339 us for SMs that a weight-gradient product had taken by chance; replays leave
  // that out, so what follows it comes that much early.
  const Time chance = measured.at({"dispatch(B)", 3});
  for (const auto& each : measured) {
    const auto& phase = each.first;
    CAPTURE(phase.first);
    CAPTURE(phase.second);
    const double early_us = to_us(each.second) - to_us(replayed.at(phase));
    CHECK(early_us >= -50);
    CHECK(early_us <= (each.second < chance || phase.first == "mlp(F)" ? 50 : 339 + 50));
  }
}

TEST_CASE("replays of the training trace leave out the two waits for SMs that a weight-gradient product had taken") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  std::map<std::pair<std::string, std::uint32_t>, std::int64_t> for_sms;
  for (const Unexplained& wait : unexplained_waits(m, release_times(m))) {
    const TracePhase& phase = *phase_of(m, {wait.event, false});
    if (wait.for_sms) for_sms[{phase.name, phase.place.layer}] += wait.wait_ns;
  }
  CHECK(for_sms.size() == 2);
  CHECK(for_sms[{"dispatch(B)", 3}] == 339'000);  // its barrier
  CHECK(for_sms[{"dispatch(B)", 2}] == 246'000);  // its combine
}

TEST_CASE("the training trace's proven non-edges do not bind: a successor starts before its predecessor ends") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  const Starts before = replayed_starts(m);
  const auto moved_us = [&](const std::string& longer, const std::string& phase, std::uint32_t layer) {
    return to_us(replayed_starts(m, scaled({{longer, 1.5}})).at({phase, layer})) - to_us(before.at({phase, layer}));
  };
  CHECK(moved_us("attn(W)", "combine(B)", 1) == 0);
  CHECK(moved_us("mlp(B)", "dispatch(F)", 0) == 0);
  CHECK(moved_us("attn(B)", "combine(F)", 0) == 0);
  CHECK(moved_us("mlp(W)", "dispatch(B)", 0) == 0);
  // And the edges do.
  CHECK(moved_us("attn(F)", "dispatch(F)", 0) > 1'000);
  CHECK(moved_us("mlp(F)", "combine(F)", 0) > 1'000);
}

TEST_CASE("free communication would shorten the training chunk by 1.3 %") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  const Time free = replayed_span(m, scaled({{"barrier", 0}, {"transfer", 0}}));
  CHECK(std::abs(100 * change(free, replayed_span(m)) - -1.3) < 0.4);
}

TEST_CASE("without barriers the training chunk hides transfers up to 1.3 times as long, and not those of 1.4 times") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  const Time no_barriers = replayed_span(m, scaled({{"barrier", 0}}));
  const auto growth = [&](double factor) {
    return 100 * change(replayed_span(m, scaled({{"barrier", 0}, {"transfer", factor}})), no_barriers);
  };
  CHECK(growth(1.2) == 0);
  CHECK(growth(1.3) < 0.5);  // the knee lies between
  CHECK(std::abs(growth(1.4) - 1.3) < 0.5);
  CHECK(std::abs(growth(1.6) - 7) < 1.5);
  CHECK(std::abs(growth(2) - 29) < 1.5);
}

TEST_CASE("the training trace's graph as JSON has the nodes and edges it states, and no circle") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  rapidjson::Document graph;
  graph.Parse(to_graph_json(m).c_str());
  REQUIRE_FALSE(graph.HasParseError());
  std::set<std::uint32_t> calls;
  for (const Dependency& edge : m.dependencies) {
    for (const Node& node : {edge.before, edge.after}) {
      if (node.is_call) calls.insert(node.index);
    }
  }
  CHECK(graph["nodes"].Size() == m.trace.gpu_events.size() + calls.size());
  CHECK(graph["edges"].Size() == m.dependencies.size());
  std::set<std::string> ids;
  for (const auto& node : graph["nodes"].GetArray()) ids.insert(node["id"].GetString());
  CHECK(ids.size() == graph["nodes"].Size());
  for (const auto& edge : graph["edges"].GetArray()) {
    REQUIRE(ids.contains(edge["from"].GetString()));
    REQUIRE(ids.contains(edge["to"].GetString()));
  }
}

}  // TEST_SUITE("measured/training_replay")
