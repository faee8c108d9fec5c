// Several replicas, on step times that are given: routers, prefill apart, caches that overflow, drafts, prefixes,
// traces.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/serve/cluster.hpp"
#include "experiments/serve/measures.hpp"
#include "experiments/serve/time_series.hpp"

TEST_SUITE("serve/cluster") {

using namespace moeline;

namespace {

constexpr double kStepMs = 10;
double constant(const StepLoad& /*busiest*/, const StepLoad& /*mean*/, const StepState& /*state*/) { return kStepMs; }
// A millisecond, and one for each 64 tokens of prompts of the busiest group.
double by_prompts(const StepLoad& busiest, const StepLoad& /*mean*/, const StepState& /*state*/) {
  return 1 + busiest.prompts / 64;
}

constexpr ReplicaShape kRoomy{.groups = 1, .kv_tokens = 1e9};

ServeWorkload workload(int requests, int concurrency) {
  ServeWorkload w;
  w.requests = requests;
  w.concurrency = concurrency;
  w.input.mean = 256;
  w.output.mean = 32;
  w.tokens = 1024;
  return w;
}

ServeLog served(const ServeWorkload& w, const ReplicaShape& shape = kRoomy, const StepCost& step = constant) {
  return serve_requests(w, {.answers = {w.replicas, shape, step}}, 1);
}

ServeLog served_apart(const ServeWorkload& w, double transfer_ms, const ReplicaShape& answers = kRoomy,
                      const ReplicaShape& prompts = kRoomy) {
  return serve_requests(
      w,
      {.answers = {w.replicas, answers, constant},
       .prompts = ReplicaPool{w.prefill.replicas, prompts, constant},
       .transfer_ms = [=](double /*tokens*/, const StepLoad& /*from*/, const StepLoad& /*to*/) { return transfer_ms; }},
      1);
}

std::map<int, int> by_replica(const ServeLog& log) {
  std::map<int, int> counts;
  for (const ServedRequest& each : log.requests) ++counts[each.replica];
  return counts;
}

// Every token of every answer was got in some step.
double answered(const ServeLog& log) {
  double sum = 0;
  for (const ServedStep& step : log.steps) sum += step.busiest.answers;
  return sum;
}

}  // namespace

TEST_CASE("replicas are as many alone, of as many requests each") {
  ServeWorkload w = workload(400, 32);
  w.output.spread = 10;
  for (const RouterRule rule : {RouterRule::least_loaded, RouterRule::round_robin}) {
    w.router = rule;
    w.replicas = 4;
    const ServeLog log = served(w);
    for (const auto& [replica, requests] : by_replica(log)) CHECK(requests == doctest::Approx(100).epsilon(0.1));
    CHECK(by_replica(log).size() == 4);
  }
  w.output.spread = 0;
  w.replicas = 1;
  const ServeLog one = served(w);
  w.replicas = 4;
  w.requests *= 4;
  w.concurrency *= 4;
  CHECK(served(w).end_ms == doctest::Approx(one.end_ms).epsilon(0.01));
}

TEST_CASE("the least loaded replica waits less than each in turn, where answers differ") {
  ServeWorkload w = workload(20'000, 0);
  w.replicas = 8;
  w.batch_size = 1;
  w.output.spread = 60;
  w.rates = {0.7 * 8 / (33 * kStepMs) * 1e3};
  const auto waits = [&](RouterRule rule) {
    w.router = rule;
    return measure(served(w), w).steady.queue_ms.mean;
  };
  CHECK(waits(RouterRule::least_loaded) < 0.3 * waits(RouterRule::round_robin));
}

TEST_CASE("prefill apart: a request is computed, moves, and decodes, and answers never wait for prompts") {
  ServeWorkload w = workload(200, 16);
  w.prefill.replicas = 2;
  const ServeLog log = served_apart(w, 3);
  for (const ServedRequest& each : log.requests) {
    CHECK(each.transfer_ms >= 3);
    CHECK(each.transfer_ms < 3 + 1e-6);
    CHECK(each.beside_ms == 0);
    // To the next step, then one for each token.
    CHECK(each.end_ms - each.first_token_ms <= 32 * kStepMs + 1e-6);
    CHECK(each.end_ms - each.first_token_ms >= 31 * kStepMs - 1e-6);
  }
  for (const ServedStep& step : log.steps) CHECK((step.replica > 0) == (step.busiest.prompts > 0));
  CHECK(answered(log) == 200 * 31);
}

TEST_CASE("where answers have no room, caches wait where prompts were computed, and these stop") {
  ServeWorkload w = workload(200, 32);
  w.prefill.replicas = 1;
  const ReplicaShape four{.groups = 1, .kv_tokens = 4 * 288}, six{.groups = 1, .kv_tokens = 6 * 256};
  const ServeLog log = served_apart(w, 1, four, six);
  for (const ServedStep& step : log.steps) CHECK(step.busiest.answers <= 4);
  const ServeMeasures m = measure(log, w);
  CHECK(m.where.transfer > 100);                         // for room
  CHECK(m.steady.queue_ms.mean > 0);                     // for those that wait
  const auto both = [](const ServeLog& of, double at) {  // computed, and not yet where they decode
    return std::count_if(of.requests.begin(), of.requests.end(),
                         [&](const ServedRequest& r) { return r.begin_ms <= at && at < r.first_token_ms; });
  };
  for (const ServedStep& step : log.steps) CHECK(both(log, step.start_ms) <= 6);
}

TEST_CASE("a cache for prompts alone holds more requests, and those that came last begin anew") {
  ServeWorkload w = workload(300, 32);
  w.output.mean = 256;
  const ReplicaShape small{.groups = 1, .kv_tokens = 4096};
  const ServeMeasures whole = measure(served(w, small), w);
  w.room = KvRoom::prompt;
  const ServeLog log = served(w, small);
  const ServeMeasures m = measure(log, w);
  CHECK(whole.restarts == 0);
  CHECK(m.restarts > 0);
  CHECK(m.mean_running > 1.2 * whole.mean_running);
  CHECK(m.where.stalled > 0);
  for (const ServedStep& step : log.steps) CHECK(step.busiest.answers * step.busiest.keys <= 4096 + 1e-6);
  // A token that follows a restart comes with its prompt.
  CHECK(answered(log) >= 300 * 255 - m.restarts);
  CHECK(answered(log) < 300 * 255);
  for (const ServedRequest& each : log.requests) {
    CHECK(each.stalled_ms >= 0);
    CHECK(each.end_ms - each.first_token_ms - each.stalled_ms >= (255 - each.restarts) * kStepMs - 1e-6);
  }
}

TEST_CASE("drafted tokens: so many fewer steps as are accepted") {
  ServeWorkload w = workload(500, 16);
  w.output.mean = 1001;
  w.query_len = 3;
  w.acceptance = {0.8, 0.5};
  const double tokens = 1 + 0.8 + 0.8 * 0.5;
  CHECK(answered(served(w)) == doctest::Approx(500 * 1000 / tokens).epsilon(0.01));
  w.acceptance = {1, 1};
  CHECK(answered(served(w)) == 500 * 334);  // 1000 tokens in threes
}

TEST_CASE("prompts that begin alike are computed once for each cache, while it has room") {
  ServeWorkload w = workload(2000, 16);
  w.prefixes = {.count = 10, .len = 192, .zipf = 0};
  const double all = measure(served(w), w).cached_share;
  CHECK(all > 0.7);  // but for the first of each
  CHECK(all < 192.0 / 256);
  const ReplicaShape small{.groups = 1, .kv_tokens = 16 * 96 + 4 * 192};
  const double some = measure(served(w, small), w).cached_share;
  CHECK(some < 0.7 * all);
  w.prefixes.zipf = 2;  // most ask for the same
  CHECK(measure(served(w, small), w).cached_share > some);
  w.prefixes.zipf = 0;
  w.replicas = 4;
  w.concurrency = 32;
  const auto share = [&](RouterRule rule) {
    w.router = rule;
    return measure(served(w, {.groups = 1, .kv_tokens = 8 * 96 + 3 * 192}), w).cached_share;
  };
  CHECK(share(RouterRule::cache_aware) > 1.3 * share(RouterRule::least_loaded));
}

TEST_CASE("a step of prompts makes answers wait, and by how much is told") {
  ServeWorkload w = workload(400, 16);
  w.output.spread = 10;
  const ServeMeasures beside = measure(served(w, kRoomy, by_prompts), w);
  CHECK(beside.where.beside > 0);
  CHECK(beside.where.decode == doctest::Approx(31).epsilon(0.05));  // a millisecond for each token but the first
  w.order = PromptOrder::first;
  const ServeMeasures first = measure(served(w, kRoomy, by_prompts), w);
  CHECK(first.where.beside > beside.where.beside);
  CHECK(first.where.decode == doctest::Approx(31).epsilon(0.05));
}

TEST_CASE("steps that are made up while others run: a request that follows another waits for two of them") {
  ServeWorkload w = workload(40, 4);
  w.overlapped = true;
  const ServeLog log = served(w);
  for (std::size_t i = 4; i < log.requests.size(); ++i) CHECK(log.requests[i].ttft_ms() <= 3 * kStepMs + 1e-6);
  const auto followed = std::count_if(log.requests.begin() + 4, log.requests.end(),
                                      [](const ServedRequest& r) { return r.ttft_ms() > 3 * kStepMs - 1e-6; });
  CHECK(followed == 0);  // all end at once, so that nothing runs
  w.output.spread = 10;
  const ServeLog spread = served(w);
  double longest = 0;
  for (const ServedRequest& each : spread.requests) longest = std::max(longest, each.ttft_ms());
  CHECK(longest == doctest::Approx(3 * kStepMs));
  CHECK(answered(spread) > answered(served([&] {
          ServeWorkload immediate = w;
          immediate.overlapped = false;
          return immediate;
        }())));
}

TEST_CASE("a trace is served when and as it says, and again where more are asked for") {
  ServeWorkload w = workload(5, 0);
  w.trace_has_times = true;
  w.trace = {{5, {.input_len = 10, .output_len = 2}}, {105, {.input_len = 20, .cached_len = 10, .output_len = 3}}};
  const ServeLog log = served(w);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(log.requests[i].arrival_ms == 5 + 100.0 * static_cast<double>(i));
    CHECK(log.requests[i].input_len == (i % 2 == 0 ? 10 : 20));
    CHECK(log.requests[i].new_tokens() == 10);
  }
}

TEST_CASE("a load that comes in bursts waits longer, at the same rate") {
  ServeWorkload w = workload(50'000, 0);
  w.output.mean = 1;
  w.input.mean = w.tokens = 256;
  w.rates = {0.5 / kStepMs * 1e3};
  std::map<double, double> waits;
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    w.burstiness = burstiness;
    const ServeLog log = served(w);
    waits[burstiness] = measure(log, w).steady.queue_ms.mean;
    CHECK(log.requests.back().arrival_ms == doctest::Approx(50'000 / w.rates.front() * 1e3).epsilon(0.03));
  }
  CHECK(waits[0.25] > 2 * waits[1]);
  CHECK(waits[1] > 2 * waits[4]);
}

TEST_CASE("rates that change by the hour: as many come in each as it says") {
  ServeWorkload w = workload(30'000, 0);
  w.rates = {1, 0, 5};
  w.rate_ms = 1e6;
  const ServeLog log = served(w);
  std::vector<double> counts(12, 0);
  for (const ServedRequest& each : log.requests) {
    const auto slot = static_cast<std::size_t>(each.arrival_ms / w.rate_ms);
    if (slot < counts.size()) ++counts[slot];
  }
  for (std::size_t slot = 0; slot < 12; slot += 3) {
    CHECK(counts[slot] == doctest::Approx(1000).epsilon(0.1));
    CHECK(counts[slot + 1] == 0);
    CHECK(counts[slot + 2] == doctest::Approx(5000).epsilon(0.05));
  }
}

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

TEST_CASE("good requests are those within both limits, and their tokens are the good ones") {
  ServeWorkload w = workload(400, 16);
  w.output.spread = 10;
  const ServeLog log = served(w);
  CHECK(measure(log, w).good_share == 1);
  w.limits.tpot_ms = kStepMs / 2;
  CHECK(measure(log, w).good_share == 0);
  w.limits = {.ttft_ms = kStepMs * 1.5, .tpot_ms = kStepMs * 1.5};
  const ServeMeasures m = measure(log, w);
  CHECK(m.good_share > 0);
  CHECK(m.good_output_tokens_per_s <= m.output_tokens_per_s);
  CHECK(m.good_output_tokens_per_s / m.output_tokens_per_s == doctest::Approx(m.good_share).epsilon(0.1));
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

}  // TEST_SUITE("serve/cluster")
