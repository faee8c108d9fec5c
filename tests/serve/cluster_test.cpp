// Several replicas, on step times that are given: routers, prefill apart, caches that overflow, drafts, prefixes,
// traces.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/serve/measures.hpp"
#include "tests/support/given_steps.hpp"

TEST_SUITE("serve/cluster") {

using namespace moeline;
using namespace moeline::testing;

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
  CHECK(m.where.slot > 100);                             // for room
  CHECK(m.steady.queue_ms.mean > 0);                     // for those that wait
  const auto both = [](const ServeLog& of, double at) {  // computed, and not yet where they decode
    return std::count_if(of.requests.begin(), of.requests.end(),
                         [&](const ServedRequest& r) { return r.begin_ms <= at && at < r.first_token_ms; });
  };
  for (const ServedStep& step : log.steps) CHECK(both(log, step.start_ms) <= 6);
}

TEST_CASE("where answers alone are, 512 tokens are kept for each, and what made room comes back as it was") {
  ServeWorkload w = workload(300, 64);
  w.output.mean = 1500;
  w.prefill.replicas = 1;
  const ReplicaShape small{.groups = 1, .kv_tokens = 16 * 1024};
  w.room = KvRoom::whole;
  const ServeLog whole = served_apart(w, 1, small);
  w.room = KvRoom::reserve;
  const ServeLog log = served_apart(w, 1, small);
  const ServeMeasures m = measure(log, w);
  CHECK(measure(whole, w).restarts == 0);
  CHECK(m.restarts > 0);
  CHECK(log.end_ms < 0.9 * whole.end_ms);  // more of them run at a time
  CHECK(answered(log) == 300 * 1499);  // none is computed anew
  for (const ServedStep& step : log.steps) CHECK(step.busiest.answers * step.busiest.keys <= 16 * 1024 + 1e-6);
  for (const ServedRequest& each : log.requests) {
    CHECK((each.stalled_ms > 0) == (each.restarts > 0));
    CHECK(each.end_ms - each.first_token_ms - each.stalled_ms >= 1498 * kStepMs - 1e-6);
  }
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

}  // TEST_SUITE("serve/cluster")
