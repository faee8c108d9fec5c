// What a run's span answers to: against simulating it with the item slower and faster.
#include "experiments/explain/sensitivity.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/simulate.hpp"
#include "experiments/explain/explanation.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/data.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/small_graph.hpp"

TEST_SUITE("explain/sensitivity") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// A run and what its span answers to.
struct Explained {
  Run run;
  History history;
  Gradient gradient;
  std::vector<Item> items;

  explicit Explained(const std::string& scenario, const std::vector<std::string>& assignments)
      : run(run_scenario(load_setup(source("experiments/studies/" + scenario + "/scenario.yaml"), assignments),
                         {.record_changes = true})),
        history(run.program.graph, run.timeline),
        gradient(span_gradient(run.program.graph, run.timeline, history, since())),
        items(items_of(run.program.graph, gradient, run.metrics.span, {})) {
    std::erase_if(items, [](const Item& item) { return item.what == "launch_gap"; });  // delays cannot be set
  }
  [[nodiscard]] Time since() const { return run.timeline.makespan - run.metrics.span; }

  /// The span where `left` of the item's time is left, simulated.
  [[nodiscard]] Time simulated(const Item& item, double left) const {
    TaskGraph graph = run.program.graph;
    Factors factors{std::vector<float>(graph.size(), 1), std::vector<float>(graph.size(), 1)};
    item.shorten(left, factors);
    for (TaskId id = 0; id < graph.size(); ++id) {
      if (factors.run[id] != 1) graph.set_solo(id, from_us(left * to_us(graph.task(id).solo)));
    }
    return simulate(graph).makespan - since();
  }
};

const std::vector<Explained>& runs() {
  static const std::vector<Explained> all = [] {
    std::vector<Explained> list;
    list.reserve(6);
    list.emplace_back("decode_deepseek_v3_h800_ep128", std::vector<std::string>{});
    list.emplace_back("decode_deepseek_v3_h800_ep128", std::vector<std::string>{"hardware.nic_GBps=25", "layers=8"});
    list.emplace_back("prefill_deepseek_v3_h800_ep32", std::vector<std::string>{"layers=8"});
    list.emplace_back("prefill_deepseek_v3_h800_ep32", std::vector<std::string>{"schedule=sequential", "layers=8"});
    list.emplace_back("train_chunk_deepseek_v3_h800", std::vector<std::string>{"ranks=folded", "samples=1"});
    list.emplace_back("train_deepseek_v3_2048_h800", std::vector<std::string>{"workload.global_batch_size=4096"});
    return list;
  }();
  return all;
}

// By how much the span moves, relative to its own, for so much more of an item's time, and for so much less.
struct Moves {
  double slower, faster;
  [[nodiscard]] double both() const { return (slower + faster) / 2; }
  [[nodiscard]] double allowed() const { return std::max(0.02, 0.02 * std::abs(both())); }
};

Moves moves_of(const Explained& explained, const Item& item, double step) {
  const auto simulated = [&](double by) {
    return ratio(explained.simulated(item, 1 + by) - explained.run.metrics.span, explained.run.metrics.span) / by;
  };
  return {simulated(step), simulated(-step)};
}

}  // namespace

TEST_CASE("of 200 random items of six runs a little more and less time moves the span as the elasticity says" *
          doctest::skip(kSanitized)) {  // 400 simulations
  constexpr int kPairs = kSanitized ? 60 : 200;
  constexpr double kLittle = 1e-4, kMuch = 1e-2;
  Dice dice(20);
  int alike = 0, moved = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const Explained& explained = runs()[dice.below(runs().size())];
    const Item& item = explained.items[dice.below(explained.items.size())];
    CAPTURE(explained.run.setup.scenario.file);
    CAPTURE(item.what);
    // Where something else binds within the step, the two differ, and the elasticity is one of them or between.
    const Moves little = moves_of(explained, item, kLittle);
    CHECK(item.elasticity >= std::min(little.slower, little.faster) - little.allowed());
    CHECK(item.elasticity <= std::max(little.slower, little.faster) + little.allowed());
    const Moves much = moves_of(explained, item, kMuch);
    alike += std::abs(much.both() - item.elasticity) <= much.allowed();
    moved += std::abs(much.both()) > 0.02;
  }
  MESSAGE(alike, " of ", kPairs, " as the mean of 1 % more and less; ", moved, " above 0.02");
  CHECK(alike >= 0.96 * kPairs);  // a whole training step has other paths that are as long within 1 %
  CHECK(moved > (kSanitized ? 9 : 30));
}

TEST_CASE("what half of an item's time would save is what simulating it saves: exactly where nobody is slowed down") {
  double sum = 0, worst = 0;
  int items = 0;
  for (const Explained& explained : runs()) {
    CAPTURE(explained.run.setup.scenario.file);
    const bool is_decode = explained.run.setup.scenario.phase() == WorkloadPhase::decode;
    for (const SpanSensitivity& s : explain(explained.run).sensitivities) {
      const auto item = std::find_if(explained.items.begin(), explained.items.end(),
                                     [&](const Item& other) { return other.what == s.what; });
      if (!s.gains || item == explained.items.end()) continue;
      CAPTURE(s.what);
      const double saved = 1 - ratio(explained.simulated(*item, 0.5), explained.run.metrics.span);
      const double difference = std::abs(s.gains->half - saved);
      if (is_decode) CHECK(difference < 1e-4);
      sum += difference;
      worst = std::max(worst, difference);
      ++items;
    }
  }
  MESSAGE("share of the span that halving ", items, " items saves, against simulating it: mean difference ",
          sum / items, ", worst ", worst);
  CHECK(sum / items < 0.005);
  CHECK(worst < 0.05);
}

TEST_CASE("a link's elasticity is what --set of 1 % more of it gives, waits and all") {
  const auto span_of = [](const std::string& scenario, std::vector<std::string> assignments) {
    assignments.insert(assignments.end(), {"layers=8", "clock=burst"});
    return run_scenario(load_setup(source("experiments/studies/" + scenario + "/scenario.yaml"), assignments),
                        {.record_changes = true});
  };
  for (const char* scenario : {"decode_deepseek_v3_h800_ep128", "prefill_deepseek_v3_h800_ep32"}) {
    const Run usual = span_of(scenario, {});
    const Explanation explanation = explain(usual);
    for (const auto& [what, assignment] : {std::pair{"link:nic", "hardware.nic_GBps=50.5"},
                                           {"link:hbm", "hardware.hbm_GBps=3383.5"},
                                           {"link:nvlink", "hardware.nvlink_GBps=161.6"}}) {
      CAPTURE(scenario);
      MOELINE_CAPTURE_BINDING(what);
      const Run more = span_of(scenario, {assignment});
      const double simulated = std::log(ratio(more.metrics.span, usual.metrics.span)) / std::log(1.01);
      const auto found = std::find_if(explanation.sensitivities.begin(), explanation.sensitivities.end(),
                                      [name = what](const SpanSensitivity& s) { return s.what == name; });
      const double elasticity = found == explanation.sensitivities.end() ? 0 : found->elasticity;
      CHECK(std::abs(elasticity - simulated) < 0.02);
    }
  }
}

TEST_CASE("a fork of 30 and 20 us: a third of the longer arm is all that can be gained, and then the other binds") {
  SmallGraph small;
  const std::uint16_t fast = small.edges().add_class("fast", Role::compute),
                      slow = small.edges().add_class("slow", Role::compute);
  Task twenty, thirty;
  twenty.solo = from_us(20);
  thirty.solo = from_us(30);
  const TaskId arm = small.edges().add(twenty, Label{.name = small.edges().intern("arm"), .task_class = fast});
  const TaskId longer = small.edges().add(thirty, Label{.name = small.edges().intern("longer"), .task_class = slow});
  const TaskGraph graph = small.freeze();
  const Timeline timeline = simulate(graph, {.record_changes = true});
  const History history(graph, timeline);
  const Gradient gradient = span_gradient(graph, timeline, history);
  const std::vector<SpanSensitivity> list =
      span_sensitivities(graph, items_of(graph, gradient, timeline.makespan, {}), Shortened(graph, timeline, history));
  REQUIRE(list.size() == 2);  // the class and the kernel
  CHECK(list[0].what == "class:slow");
  CHECK(list[0].elasticity == doctest::Approx(1));
  CHECK(list[0].gains->tenth == doctest::Approx(0.1));
  CHECK(list[0].gains->half == doctest::Approx(1.0 / 3));
  CHECK(list[0].gains->all == doctest::Approx(1.0 / 3));
  CHECK(*list[0].knee() == doctest::Approx(1.0 / 3));
  CHECK(list[0].gains->then == "fast");
  CHECK(gradient.solo[arm] == 0);
  CHECK(gradient.solo[longer] == 1);
}

}  // TEST_SUITE("explain/sensitivity")
