// A replica, step by step, on step times that are given: queues of known answer, nothing lost, nothing above a limit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "experiments/serve/cluster.hpp"
#include "experiments/serve/measures.hpp"

TEST_SUITE("serve/replica") {

using namespace moeline;

namespace {

constexpr double kStepMs = 10;
double constant(const StepLoad& /*busiest*/, const StepLoad& /*mean*/, const StepState& /*state*/) { return kStepMs; }

ServeWorkload workload(int requests) {
  ServeWorkload w;
  w.requests = requests;
  w.input.mean = 256;
  w.output.mean = 32;
  w.tokens = 256;
  w.overlapped = false;
  return w;
}

const ReplicaShape kRoomy{.groups = 1, .kv_tokens = 1e9};

ServeLog served(const ServeWorkload& w, const ReplicaShape& shape = kRoomy, int seed = 1) {
  ServeDeployment deployment;
  deployment.answers = {w.replicas, shape, constant};
  return serve_requests(w, deployment, seed);
}

double mean(const std::vector<ServedRequest>& requests, double (*value)(const ServedRequest&)) {
  double sum = 0;
  for (const ServedRequest& each : requests) sum += value(each);
  return sum / static_cast<double>(requests.size());
}

// What is kept for requests of a group at most, of each so much.
double most_kept(const ServeLog& log, int group, const std::function<double(const ServedRequest&)>& of) {
  std::vector<std::pair<double, double>> changes;
  for (const ServedRequest& each : log.requests) {
    if (each.group != group) continue;
    changes.emplace_back(each.begin_ms, of(each));
    changes.emplace_back(each.end_ms, -of(each));
  }
  std::sort(changes.begin(), changes.end());  // what ends at an instant first
  double kept = 0, most = 0;
  for (const auto& [at, by] : changes) most = std::max(most, kept += by);
  return most;
}

}  // namespace

TEST_CASE("prompts alone, one in a step, wait as in M/D/1") {
  ServeWorkload w = workload(200'000);
  w.output.mean = 1;
  for (const double busy : {0.3, 0.7, 0.9}) {
    w.rates = {busy / kStepMs * 1e3};
    const ServeLog log = served(w);
    const double waits = mean(log.requests, [](const ServedRequest& r) { return r.ttft_ms() - kStepMs; });
    CHECK(waits == doctest::Approx(busy * kStepMs / (2 * (1 - busy))).epsilon(busy > 0.8 ? 0.06 : 0.02));
  }
}

TEST_CASE("answers of exponential length in k slots wait as in M/M/k") {
  constexpr int kSlots = 4;
  constexpr double kMeanSteps = 200, kBusy = 0.8;
  Random random(5);
  ServeWorkload w = workload(100'000);
  for (int i = 0; i < 20'000; ++i) {
    const double steps = std::ceil(-kMeanSteps * std::log1p(-random.uniform()));
    w.trace.push_back({0, {.input_len = 1, .output_len = static_cast<int>(steps)}});
  }
  w.batch_size = kSlots;
  w.rates = {kBusy * kSlots / (kMeanSteps * kStepMs) * 1e3};
  const ServeLog log = served(w);
  double tail = std::pow(kSlots * kBusy, kSlots), sum = 1;  // Erlang C
  for (int i = 1; i < kSlots; ++i) sum += std::pow(kSlots * kBusy, i) / std::tgamma(i + 1);
  tail /= std::tgamma(kSlots + 1) * (1 - kBusy);
  const double wait = tail / (sum + tail) * kMeanSteps * kStepMs / (kSlots * (1 - kBusy));
  const double waited = mean(log.requests, [](const ServedRequest& r) { return r.begin_ms - r.arrival_ms; });
  CHECK(waited == doctest::Approx(wait).epsilon(0.05));
}

TEST_CASE("a closed loop of one: its prompt's steps, then one for each token") {
  ServeWorkload w = workload(20);
  w.concurrency = 1;
  w.input.mean = 1000;  // four steps
  const ServeLog log = served(w);
  REQUIRE(log.requests.size() == 20);
  for (const ServedRequest& each : log.requests) {
    CHECK(each.begin_ms == each.arrival_ms);
    CHECK(each.ttft_ms() == doctest::Approx(4 * kStepMs));
    CHECK(each.end_ms - each.first_token_ms == doctest::Approx(31 * kStepMs));
  }
  CHECK(log.end_ms == doctest::Approx(20 * 35 * kStepMs));
}

TEST_CASE("every token of every request is computed once, within the tokens of a step") {
  for (const PromptOrder order : {PromptOrder::mixed, PromptOrder::first}) {
    ServeWorkload w = workload(500);
    w.order = order;
    w.concurrency = 24;
    w.cached_len = 100;
    w.input.spread = 150;
    w.output.spread = 20;
    const ServeLog log = served(w, kRoomy, 3);
    std::int64_t prompts = 0, answers = 0, wanted_prompts = 0, wanted_answers = 0;
    for (const ServedStep& step : log.steps) {
      prompts += std::lround(step.busiest.prompts);
      answers += std::lround(step.busiest.answers);
      CHECK(step.busiest.prompts + step.busiest.answers <= w.tokens);
      CHECK((order == PromptOrder::mixed || step.busiest.prompts == 0 || step.busiest.answers == 0));
    }
    for (const ServedRequest& each : log.requests) {
      wanted_prompts += each.new_tokens();
      wanted_answers += each.output_len - 1;  // the first comes with the prompt
      CHECK(each.arrival_ms <= each.begin_ms);
      CHECK(each.begin_ms < each.first_token_ms);
      CHECK(each.first_token_ms <= each.end_ms);
    }
    CHECK(log.requests.size() == 500);
    CHECK(prompts == wanted_prompts);
    CHECK(answers == wanted_answers);
  }
}

TEST_CASE("requests wait for room in the cache and for a slot, and share groups evenly") {
  ServeWorkload w = workload(400);
  w.concurrency = 64;
  w.output.spread = 10;
  const ReplicaShape small{.groups = 2, .kv_tokens = 2000};
  const ServeLog log = served(w, small);
  for (const int group : {0, 1}) {
    const double kept = most_kept(log, group, [](const ServedRequest& each) { return each.kv_tokens(); });
    CHECK(kept <= 2000);
    CHECK(kept > 1700);
    const auto served = std::count_if(log.requests.begin(), log.requests.end(),
                                      [&](const ServedRequest& each) { return each.group == group; });
    CHECK(served == doctest::Approx(200).epsilon(0.1));
  }
  w.batch_size = 3;
  for (const ServedStep& step : served(w, small).steps) CHECK(step.busiest.answers <= 3);
  w.input.mean = 3000;
  CHECK_THROWS_WITH((void)served(w, small), doctest::Contains("does not fit: the KV cache holds 2000"));
}

TEST_CASE("what requests take of the cache is theirs to say: a state takes as much of a short one, a window ends") {
  ServeWorkload w = workload(200);
  w.concurrency = 64;
  const auto most_running = [&](const std::function<double(double)>& taken, KvRoom room) {
    w.room = room;
    const ServeLog log = served(w, {.groups = 1, .kv_tokens = 1000, .taken = taken});
    return most_kept(log, 0, [](const ServedRequest&) { return 1; });
  };
  for (const KvRoom room : {KvRoom::whole, KvRoom::prompt}) {
    CHECK(most_running([](double) { return 200; }, room) == 5);
    CHECK(most_running([](double tokens) { return std::min(tokens, 50.0); }, room) == 20);
  }
}

TEST_CASE("lengths have the mean and the spread that were asked for, and arrivals the rate") {
  ServeWorkload w = workload(100'000);
  w.rates = {1000};
  w.tokens = 1 << 20;
  w.output.mean = 100;
  w.output.spread = 40;
  const ServeLog log = served(w, kRoomy, 7);
  const double output = mean(log.requests, [](const ServedRequest& r) { return double{1} * r.output_len; });
  const double square =
      mean(log.requests, [](const ServedRequest& r) { return double{1} * r.output_len * r.output_len; });
  CHECK(output == doctest::Approx(100).epsilon(0.01));
  CHECK(std::sqrt(square - output * output) == doctest::Approx(40).epsilon(0.03));
  CHECK(log.requests.back().arrival_ms == doctest::Approx(100'000).epsilon(0.01));
}

TEST_CASE("quantiles are values that so many do not exceed") {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);
  const Quantiles q = quantiles_of(values);
  CHECK(q.p50 == 50);
  CHECK(q.p90 == 90);
  CHECK(q.p99 == 99);
  CHECK(q.mean == 50.5);
}

TEST_CASE("one group's long prompt and another's many short ones make no step of many long ones") {
  ServeWorkload w = workload(9);
  w.trace = {{0, {.input_len = 8192, .output_len = 2}}};
  for (int i = 0; i < 8; ++i) w.trace.push_back({0, {.input_len = 1024, .output_len = 2}});
  w.trace_has_times = true;
  w.tokens = 8192;
  w.router = RouterRule::least_loaded;
  const ServeLog log = served(w, {.groups = 2, .kv_tokens = 1e9});
  const StepLoad& busiest = log.steps.front().busiest;
  CHECK(busiest.prompts * busiest.seen == doctest::Approx(8192.0 * 8192));  // of the long one
  CHECK(busiest.parts * busiest.seen == doctest::Approx(8192));             // keys of as many as were there
  double keys = 0, parts = 0;
  for (const ServedStep& step : log.steps) {
    keys += 2 * step.mean.parts * step.mean.seen;
    parts = std::max(parts, step.busiest.parts);
  }
  CHECK(keys == doctest::Approx(8192 + 8 * 1024));
  CHECK(parts <= 8);
}

}  // TEST_SUITE("serve/replica")
