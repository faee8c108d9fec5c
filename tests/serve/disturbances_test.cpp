// What happens to replicas while they serve: failures and drains, loads of experts that change, draws, replicas
// switched on and off with the load.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/serve/measures.hpp"
#include "tests/support/given_steps.hpp"

TEST_SUITE("serve/disturbances") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("a replica that fails: its requests begin anew elsewhere, one that drains loses none") {
  ServeWorkload w = workload(2000, 32);
  w.replicas = 2;
  w.output.spread = 10;
  const ServeLog whole = served(w);
  for (const bool drains : {false, true}) {
    w.outages = {{.replica = 1, .at_ms = 1000, .until_ms = 3000, .drains = drains}};
    const ServeLog log = served(w);
    const ServeMeasures m = measure(log, w);
    CHECK(log.requests.size() == 2000);
    CHECK((m.retries > 0) == !drains);
    CHECK(m.retries <= 16);
    for (const ServedStep& step : log.steps) {
      const bool away = step.replica == 1 && step.start_ms > 1000 && step.start_ms < 3000;
      CHECK((!away || drains));
    }
    for (const ServedRequest& each : log.requests) {
      CHECK(each.arrival_ms <= each.begin_ms);
      CHECK(each.begin_ms < each.first_token_ms);
      CHECK(each.first_token_ms <= each.end_ms);
    }
    if (!drains) CHECK(answered(log) > answered(whole));  // what was lost is computed once more
  }
}

TEST_CASE("a request that begins anew elsewhere finds there what is cached there, and no more") {
  ServeWorkload w = workload(400, 8);
  w.prefixes = {.count = 1, .len = 192, .zipf = 0};
  w.replicas = 2;
  w.router = RouterRule::cache_aware;  // all to the first
  w.outages = {{.replica = 0, .at_ms = 1000, .until_ms = 1e9}};
  const ServeLog log = served(w);
  double prompts = 0, computed = 0;
  for (const ServedStep& step : log.steps) prompts += step.busiest.prompts;
  for (const ServedRequest& each : log.requests) computed += each.new_tokens();
  CHECK(prompts >= computed);  // and more for those that began twice
  const auto anew = std::count_if(log.requests.begin(), log.requests.end(),
                                  [](const ServedRequest& r) { return r.retries > 0 && r.cached_len == 0; });
  CHECK(anew > 0);
}

TEST_CASE("where all replicas are gone requests wait for the first that comes back") {
  ServeWorkload w = workload(100, 8);
  w.outages = {{.replica = 0, .at_ms = 100, .until_ms = 5000}};
  const ServeLog log = served(w);
  CHECK(log.requests.size() == 100);
  for (const ServedStep& step : log.steps) CHECK((step.start_ms <= 100 || step.start_ms >= 5000));
}

namespace {

// A step of two milliseconds, and of one more in the third time step of loads while experts are where the second found
// them; 100 MB move beside a step.
StepTime by_loads(const StepLoad& /*busiest*/, const StepLoad& mean, const StepState& state) {
  constexpr double kMovesInStep_MB = 100;
  return {state.loads == 30 && state.placed_before == 20 ? 3.0 : 2.0, std::max(0.0, mean.moved_MB - kMovesInStep_MB)};
}

// 500 MB over the busiest NIC, 40 ms alone.
ServeLog served_while_loads_change(ServeWorkload w, bool beside) {
  w.loads = {.step_ms = 1000, .steps = {10, 20, 30, 40}, .places = true, .rebalance_every = 2, .moves_beside = beside};
  const auto place_anew = [](int /*from*/, int /*to*/) { return PlacementCost{40, 500}; };
  return serve_requests(
      w, {.answers = {.replicas = w.replicas, .shape = kRoomy, .step = by_loads, .place_anew = place_anew}}, 1);
}

}  // namespace

TEST_CASE("loads change with time, and experts are placed before the second time step and every so often") {
  const ServeLog log = served_while_loads_change(workload(4000, 32), false);
  REQUIRE(log.end_ms > 4000);
  std::vector<double> placed_ms;
  for (const ServedStep& step : log.steps) {
    const int position = std::min(3, static_cast<int>(step.start_ms / 1000));
    CHECK(step.state.loads == 10 * (position + 1));
    CHECK(step.state.placed_before == (position == 0 ? 10 : position < 3 ? 20 : 40));
    if (step.placed_anew) placed_ms.push_back(step.start_ms);
    CHECK(step.paused_ms == (step.placed_anew ? 40 : 0));
  }
  REQUIRE(placed_ms.size() == 2);
  CHECK(placed_ms[0] == doctest::Approx(1000).epsilon(0.005));
  CHECK(placed_ms[1] == doctest::Approx(3000).epsilon(0.005));
  const ServeMeasures m = measure(log, workload(4000, 32));
  CHECK(m.rebalancings == 2);
  CHECK(m.paused_ms == 80);
}

TEST_CASE("experts that move beside steps are in their old places until all have come, and nothing stops") {
  const ServeLog log = served_while_loads_change(workload(4000, 32), true);
  const auto start =
      std::find_if(log.steps.begin(), log.steps.end(), [](const auto& step) { return step.placed_anew; });
  REQUIRE(start != log.steps.end());
  for (int step = 0; step < 5; ++step) {  // of 100 MB each
    CHECK((start + step)->state.placed_before == 10);
    CHECK((start + step)->mean.moved_MB == doctest::Approx(500 - 100 * step));
  }
  CHECK((start + 5)->state.placed_before == 20);
  CHECK((start + 5)->mean.moved_MB == 0);
  for (const ServedStep& step : log.steps) CHECK(step.paused_ms == 0);
  CHECK(log.end_ms < served_while_loads_change(workload(4000, 32), false).end_ms);
}

TEST_CASE("each step is one of the draws, all as likely, and replicas draw for themselves") {
  ServeWorkload w = workload(4000, 32);
  w.replicas = 2;
  const auto by_draw = [](const StepLoad&, const StepLoad&, const StepState& state) {
    return StepTime(10.0 + state.draw);
  };
  const ServeLog log = serve_requests(w, {.answers = {.replicas = 2, .shape = kRoomy, .step = by_draw, .draws = 4}}, 1);
  std::map<std::pair<int, int>, double> counts;
  for (const ServedStep& step : log.steps) ++counts[{step.replica, step.state.draw}];
  CHECK(counts.size() == 8);
  for (const auto& [draw, count] : counts)
    CHECK(count == doctest::Approx(static_cast<double>(log.steps.size()) / 8).epsilon(0.1));
}

TEST_CASE(
    "prefill apart: whichever pool a replica fails in, every request is served, and the cache holds what it held") {
  ServeWorkload w = workload(3000, 64);
  w.output.spread = 10;
  w.replicas = w.prefill.replicas = 2;
  // Room for a few requests: what a lost one kept for ever would soon stop everything.
  const ReplicaShape small{.groups = 1, .kv_tokens = 12 * 288};
  for (const bool of_prefill : {false, true}) {
    for (const bool drains : {false, true}) {
      w.outages.clear();
      for (int i = 0; i < 12; ++i) {
        const double at_ms = 200 + 500.0 * i;
        w.outages.push_back({i % 2, of_prefill, at_ms, at_ms + 300, drains});
      }
      const ServeLog log = served_apart(w, 25, small, small);
      CHECK(log.requests.size() == 3000);
      CHECK((measure(log, w).retries > 0) == !drains);
      for (const ServedRequest& each : log.requests) {
        CHECK(each.arrival_ms <= each.begin_ms);
        CHECK(each.begin_ms < each.first_token_ms);
        CHECK(each.transfer_ms >= 25 - 1e-9);
        CHECK(each.first_token_ms <= each.end_ms);
      }
      for (const ServedStep& step : log.steps) {
        for (const Outage& outage : w.outages) {
          const bool is_out = step.replica == outage.replica + (of_prefill ? 2 : 0) && step.start_ms > outage.at_ms &&
                              step.start_ms < outage.until_ms;
          CHECK((!is_out || drains));
        }
      }
    }
  }
}

TEST_CASE("where all that decode, or all that prefill, are gone, what is there waits for them") {
  for (const bool of_prefill : {false, true}) {
    ServeWorkload w = workload(200, 16);
    w.prefill.replicas = 1;
    w.outages = {{.replica = 0, .of_prefill = of_prefill, .at_ms = 100, .until_ms = 5000}};
    const ServeLog log = served_apart(w, 5);
    CHECK(log.requests.size() == 200);
    CHECK(log.end_ms > 5000);
    for (const ServedRequest& each : log.requests) CHECK(each.retries <= 1);
  }
}

namespace {

ServeWorkload day(double start_ms) {
  ServeWorkload w = workload(60'000, 0);
  w.rates = {2, 20};  // requests that stay for 0.33 s: 0.66 and 6.6 of them, were there no step to wait for
  w.rate_ms = 6e5;
  w.replicas = 8;
  w.scaling = {.least = 1, .on_above = 2, .off_below = 1, .start_ms = start_ms};
  return w;
}

}  // namespace

TEST_CASE("replicas are switched on and off with the load: few at night, no more than are needed by day") {
  const ServeWorkload w = day(0);
  const ServeLog log = served(w);
  const std::vector<ServeSlice> hours = time_series(log, static_cast<int>(std::lround(log.end_ms / w.rate_ms)));
  for (std::size_t hour = 0; hour + 1 < hours.size(); ++hour) {
    CHECK(hours[hour].replicas_on > (hour % 2 == 0 ? 0.99 : 3));
    CHECK(hours[hour].replicas_on < (hour % 2 == 0 ? 3 : 8));
  }
  for (const ReplicasOn& each : log.replicas_on) {
    CHECK(each.replicas >= 1);
    CHECK(each.replicas <= 8);
  }
  CHECK(log.requests.size() == 60'000);
}

TEST_CASE("a replica that takes long to start: the first wave of the day waits for it") {
  ServeWorkload at_once = day(0), later = day(60'000);
  at_once.batch_size = later.batch_size = 4;
  const ServeMeasures soon = measure(served(at_once), at_once), late = measure(served(later), later);
  CHECK(late.steady.ttft_ms.p99 > 2 * soon.steady.ttft_ms.p99);
}

}  // TEST_SUITE("serve/disturbances")
