// The kernels and barriers that were measured, run through the engine: does it place contention where it was seen?
//
// Every GPU event of DeepSeek's training profile becomes a task with its measured time; what the engine itself will
// add (elastic kernels beside communication) is taken out first. Phases are tied by the eight edges of the published
// schedule, streams are in order, and the expert GEMMs of mlp(W) alternate between two streams.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/csv.hpp"
#include "engine/simulate.hpp"
#include "moe/training.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("engine/measured_kernels") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr int kSms = 132;
constexpr int kCommunication = 27;
constexpr double kLongestGapUs = 5;

struct Event {
  std::string name, phase;
  int stream = 0, layer = 0, index = 0, ctas = 0;
  double start = 0, end = 0;

  [[nodiscard]] bool is(const char* part) const { return name.find(part) != std::string::npos; }
  [[nodiscard]] bool persistent() const { return is("ptp128c") || is("dptp128c"); }
  [[nodiscard]] bool communication() const { return is("notify") || is("internode::"); }
  [[nodiscard]] bool expert_weight_gradient() const {
    return phase == "mlp(W)" && ((index >= 2 && index <= 5) || (index >= 7 && index <= 10));
  }
};

using Place = std::tuple<std::string, int, int>;  // phase, layer, index

std::map<Place, Event> read_events() {
  const CsvTable table(training_kernels());
  std::map<Place, Event> events;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Event e;
    e.name = table.text(row, "name");
    e.phase = table.text(row, "phase");
    e.stream = static_cast<int>(table.number(row, "stream"));
    e.layer = static_cast<int>(table.number(row, "layer"));
    e.index = static_cast<int>(table.number(row, "idx"));
    e.ctas = table.text(row, "ctas").empty() ? 1 : std::max(1, static_cast<int>(table.number(row, "ctas")));
    e.start = table.number(row, "start_us");
    e.end = table.number(row, "end_us");
    events[{e.phase, e.layer, e.index}] = e;
  }
  return events;
}

class MeasuredChunk {
 public:
  MeasuredChunk() : events_(read_events()), sms_(draft_.add_pool("SMs", kSms)) {
    std::vector<const Event*> by_start;
    for (const auto& [place, event] : events_) by_start.push_back(&event);
    std::sort(by_start.begin(), by_start.end(), [](auto* a, auto* b) { return a->start < b->start; });
    std::map<int, const Event*> previous;
    for (const Event* event : by_start) {
      add(*event, previous[event->stream]);
      previous[event->stream] = event;
    }
    for (int layer = 0; layer < 4; ++layer) tie(layer);
  }

  Timeline run() { return simulate(TaskGraph(std::move(draft_))); }
  [[nodiscard]] const std::map<Place, TaskId>& tasks() const { return tasks_; }
  [[nodiscard]] const Event& event(const Place& place) const { return events_.at(place); }

 private:
  void add(const Event& event, const Event* previous) {
    Task task;
    task.solo = from_us(solo_us(event));
    task.delay = from_us(delay_us(event, previous));
    task.pool = sms_;
    task.sms = static_cast<std::uint16_t>(std::min(kSms, event.ctas));
    task.hold = event.persistent() || event.communication() ? Hold::resident : Hold::elastic;
    const Place place{event.phase, event.layer, event.index};
    tasks_[place] = draft_.add(task, event.phase + " " + std::to_string(event.index));
    if (previous != nullptr) {
      draft_.start_after_end(tasks_.at({previous->phase, previous->layer, previous->index}), tasks_[place]);
    }
  }

  // Measured gaps where nothing is waited for; a launch gap where something is.
  [[nodiscard]] static double delay_us(const Event& event, const Event* previous) {
    if (previous == nullptr) return event.layer == 0 && event.index == 0 ? event.start : 2;  // the side stream forks
    const double gap = event.start - previous->end;
    const bool host_bound = (event.phase == "attn(F)" && event.layer == 0) || event.is("internode::dispatch");
    if (gap >= 0 && (gap <= kLongestGapUs || (host_bound && event.index > 0))) return gap;
    return 2;
  }

  [[nodiscard]] double solo_us(const Event& event) const {
    if (event.phase == "combine(B)" && event.index == 0) return events_.at({"combine(B)", 0, 0}).end - 716;  // alone
    if (event.expert_weight_gradient()) {
      const int first = event.index <= 5 ? 2 : 7;
      return (events_.at({"mlp(W)", event.layer, first + 3}).end - events_.at({"mlp(W)", event.layer, first}).start) /
             4;
    }
    const double us = event.end - event.start;
    if (event.persistent() || event.communication() || event.ctas <= kSms - 20) return us;
    double lost = 0;
    for (const auto& [place, other] : events_) {
      if (!other.communication()) continue;
      const double together = std::min(event.end, other.end) - std::max(event.start, other.start);
      if (together > 0) lost += together * other.ctas / kSms;
    }
    return us - lost;
  }

  [[nodiscard]] TaskId first(const std::string& phase, int layer) const { return tasks_.at({phase, layer, 0}); }
  [[nodiscard]] TaskId last(const std::string& phase, int layer) const {
    int index = 0;
    while (tasks_.contains({phase, layer, index + 1})) ++index;
    return tasks_.at({phase, layer, index});
  }

  void tie(int layer) {
    for (const auto& path : {forward_phases(BlockKind::moe_layer), backward_phases(BlockKind::moe_layer)}) {
      for (std::size_t i = 1; i < path.size(); ++i) {
        draft_.start_after_end(last(path[i - 1], layer), first(path[i], layer));
      }
      if (layer < 3) draft_.start_after_end(last(path.back(), layer), first(path.front(), layer + 1));
    }
    for (const char* part : {"mlp", "attn"}) {
      draft_.start_after_end(last(fmt::format("{}(B)", part), layer), first(fmt::format("{}(W)", part), layer));
    }
    const auto weight = [&](int index) { return tasks_.at({"mlp(W)", layer, index}); };
    draft_.start_after_end(weight(1), weight(3));    // fork
    draft_.start_after_end(weight(5), weight(6));    // join
    draft_.start_after_end(weight(6), weight(8));    // fork
    draft_.start_after_end(weight(10), weight(11));  // join
  }

  std::map<Place, Event> events_;
  TaskGraphDraft draft_;
  ResourceId sms_;
  std::map<Place, TaskId> tasks_;
};

}  // namespace

TEST_CASE("a pending GEMM delays communication kernels in the two places measured, and in no other") {
  if (!present(training_kernels())) return;
  constexpr double kSteal = 100;  // us; elsewhere at most 36 were measured
  MeasuredChunk chunk;
  const Timeline timeline = chunk.run();
  std::vector<Place> stolen;
  for (const auto& [place, task] : chunk.tasks()) {
    const Event& event = chunk.event(place);
    const double waited = to_us(timeline.spans[task].start - timeline.spans[task].ready);
    if (event.stream != kCommunication || !event.communication()) continue;
    if (waited > 10)
      MESSAGE(event.phase << " " << event.index << " of layer " << event.layer << " waited " << waited << " us");
    if (waited > kSteal) stolen.push_back(place);
  }
  CHECK(stolen == std::vector<Place>{{"dispatch(B)", 2, 1}, {"dispatch(B)", 3, 0}});
}

TEST_CASE("the measured kernels replay to the measured span within 1 %") {
  if (!present(training_kernels())) return;
  MeasuredChunk chunk;
  CHECK(to_us(chunk.run().makespan) == doctest::Approx(129728).epsilon(0.01));
}

}  // TEST_SUITE("engine/measured_kernels")
