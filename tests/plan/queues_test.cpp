// Waiting for the first token, and for a slot.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/plan/decode_options.hpp"
#include "experiments/plan/prefill_queue.hpp"

TEST_SUITE("plan/queues") {

using namespace moeline;

namespace {

const Lengths kPrompts({1000}, {1});

PrefillQueue unit(double requests_per_s) {
  return {.requests_per_s = requests_per_s,
          .groups = 1,
          .tokens_per_step = 1000,
          .step = {.tokens = {1000}, .ms = {100}}};  // ten requests per second
}

double ttft_ms(const PrefillQueue& queue, const Lengths& prompts, double percentile) {
  return prefill_times(queue, draw_arrivals(prompts), percentile).ttft_ms;
}

// Erlang's recursion.
double erlang_c(int slots, double busy) {
  double blocked = 1;
  for (int k = 1; k <= slots; ++k) blocked = busy * blocked / (k + busy * blocked);
  return blocked / (1 - busy / slots * (1 - blocked));
}

}  // namespace

TEST_CASE("a request that nobody is before is done after a step") {
  CHECK(ttft_ms(unit(0.01), kPrompts, 95) == doctest::Approx(100).epsilon(0.01));
}

TEST_CASE("one GPU with steps of one prompt is an M/D/1 queue") {
  // P(wait <= t) = (1 - load) sum over k <= t of (load (k - t))^k / k! e^(-load (k - t)), t in services (Erlang, 1909).
  const auto wait_below = [](double load, double services) {
    double sum = 0;
    double factorial = 1;
    for (int k = 0; k <= static_cast<int>(services); ++k) {
      if (k > 0) factorial *= k;
      const double x = load * (k - services);
      sum += std::pow(x, k) / factorial * std::exp(-x);
    }
    return (1 - load) * sum;
  };
  for (const double load : {0.3, 0.5, 0.8}) {
    const double wait = ttft_ms(unit(10 * load), kPrompts, 95) / 100 - 1;
    CAPTURE(load);
    CHECK(wait_below(load, wait) == doctest::Approx(0.95).epsilon(0.015));
  }
}

TEST_CASE("the step is that of the fullest GPU, and a long prompt is cut") {
  PrefillQueue queue = unit(0.01);
  queue.step = {.tokens = {250, 1000}, .ms = {40, 100}};
  CHECK(queue.step.at(625) == doctest::Approx(70));
  CHECK(queue.step.at(10) == 40);
  CHECK(ttft_ms(queue, Lengths({2500}, {1}), 50) == doctest::Approx(2 * 100 + queue.step.at(500)).epsilon(0.01));
}

TEST_CASE("more load, longer waits, what runs between steps delays them") {
  double before = 0;
  for (const double load : {1, 5, 8, 9}) {
    const double now = ttft_ms(unit(load), kPrompts, 95);
    CHECK(now >= before);
    before = now;
  }
  PrefillQueue busy = unit(5);
  busy.decode_steps_per_ms = 0.015;  // two after a full step
  busy.decode_step_ms = 25;
  CHECK(ttft_ms(busy, kPrompts, 95) > ttft_ms(unit(5), kPrompts, 95));
}

TEST_CASE("steps take the share of time that the load needs, partly filled ones more than full ones would") {
  CHECK(prefill_times(unit(5), draw_arrivals(kPrompts), 95).share == doctest::Approx(0.5).epsilon(0.03));
  PrefillQueue eight = unit(5);
  eight.groups = 8;  // of which mostly one works in a step
  CHECK(prefill_times(eight, draw_arrivals(kPrompts), 95).share > 4 * 0.5 / 8);
}

TEST_CASE("a request a year waits no less than its step") {
  CHECK(ttft_ms(unit(1e-13), kPrompts, 95) == doctest::Approx(100).epsilon(1e-6));
}

TEST_CASE("the share that waits for a slot is Erlang's") {
  for (const int slots : {20, 100, 1000, 10000}) {
    for (const double load : {0.7, 0.9, 0.97}) {
      CAPTURE(slots);
      CAPTURE(load);
      CHECK(share_that_waits(slots, load * slots) ==
            doctest::Approx(erlang_c(slots, load * slots)).epsilon(0.03).scale(1));
    }
  }
  CHECK(share_that_waits(10, 10) == 1);
}

TEST_CASE("units are as few as the share allows") {
  const int units = units_for(5000, 512, 0.05);
  CHECK(share_that_waits(512.0 * units, 5000) <= 0.05);
  CHECK(share_that_waits(512.0 * (units - 1), 5000) > 0.05);
}

}  // TEST_SUITE("plan/queues")
