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
          .step = {.tokens = {1000}, .ms = {100}, .own_ms = {100}, .seen = {1000}},  // ten requests per second
          .overlapped = false};
}

PrefillTimes times(const PrefillQueue& queue, const Lengths& prompts = kPrompts, const Lengths& answers = kPrompts) {
  return prefill_times(queue, draw_arrivals(prompts, answers), 95);
}

double ttft_ms(const PrefillQueue& queue, const Lengths& prompts, double percentile) {
  return prefill_times(queue, draw_arrivals(prompts, kPrompts), percentile).ttft_ms;
}

// Of an M/D/1 queue: P(wait <= t) = (1 - load) sum over k <= t of (load (k - t))^k / k! e^(-load (k - t)), t in
// services (Erlang, 1909).
double share_that_waits_less(double load, double services) {
  double sum = 0, factorial = 1;
  for (int k = 0; k <= static_cast<int>(services); ++k) {
    if (k > 0) factorial *= k;
    const double x = load * (k - services);
    sum += std::pow(x, k) / factorial * std::exp(-x);
  }
  return (1 - load) * sum;
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
  for (const double load : {0.3, 0.5, 0.8}) {
    const double wait = ttft_ms(unit(10 * load), kPrompts, 95) / 100 - 1;
    CAPTURE(load);
    CHECK(share_that_waits_less(load, wait) == doctest::Approx(0.95).epsilon(0.015));
  }
}

TEST_CASE("one slot is an M/D/1 queue, too: of answers instead of prompts") {
  const double load = 0.5;
  PrefillQueue queue = unit(load);  // an answer of 91 tokens takes a second
  queue.slots = 1;
  queue.decode_step_ms = 10;
  const Lengths answers({91}, {1});
  const double wait = times(queue, kPrompts, answers).ttft_ms / 1000 - 0.1;
  CHECK(share_that_waits_less(load, wait) == doctest::Approx(0.95).epsilon(0.02));
  queue.slots = 20;
  CHECK(times(queue, kPrompts, answers).ttft_ms < 500);
}

TEST_CASE(
    "what decodes gets a token from each step of decode, of a mixed one too, and none from one of prompts alone") {
  PrefillQueue queue = unit(2);
  queue.decode_step_ms = 10;
  const Lengths answers({1000}, {1});
  const PrefillTimes apart = times(queue, kPrompts, answers);
  CHECK(apart.share == doctest::Approx(0.2).epsilon(0.05));
  CHECK(apart.tpot_ms > 10 / (1 - apart.share));
  CHECK(apart.tpot_ms < 1.15 * 10 / (1 - apart.share));  // of 95 %, not of the mean
  queue.mixed = true;
  const PrefillTimes mixed = times(queue, kPrompts, answers);
  CHECK(mixed.tpot_ms < apart.tpot_ms);
  CHECK(mixed.tpot_ms > 10);
}

TEST_CASE("a step is that of the mean load, and longer by the busiest group's own part; a long prompt is cut") {
  StepTimes step{.tokens = {250, 1000}, .ms = {40, 100}, .own_ms = {20, 60}, .seen = {250, 1000}, .ms_per_pair = 1e-5};
  const auto even = [](double tokens, double keys) { return PromptWork{tokens, tokens * keys}; };
  CHECK(step.at(even(625, 625), even(625, 625)) == doctest::Approx(70));
  CHECK(step.at(even(10, 250), even(10, 250)) == doctest::Approx(40));
  CHECK(step.at(even(1000, 1000), even(250, 250)) == doctest::Approx(40 + 60 - 20));
  CHECK(step.at(even(1000, 3000), even(1000, 1000)) == doctest::Approx(100 + 1000 * 2000 * 1e-5));
  PrefillQueue queue = unit(0.01);
  queue.step = {.tokens = {250, 1000}, .ms = {40, 100}, .own_ms = {40, 100}, .seen = {1000, 1000}};
  CHECK(ttft_ms(queue, Lengths({2500}, {1}), 50) == doctest::Approx(2 * 100 + 60).epsilon(0.01));
  queue.step.ms_per_pair = 1e-5;  // its three parts see 1000, 2000 and 2500 keys
  CHECK(ttft_ms(queue, Lengths({2500}, {1}), 50) == doctest::Approx(260 + 10 + 7.5).epsilon(0.01));
  queue.step.ms_per_pair = 0;
  queue.cache_hit_share = 0.6;
  queue.transfer_ms_per_token = 0.01;
  CHECK(ttft_ms(queue, Lengths({2500}, {1}), 50) == doctest::Approx(100 + 25).epsilon(0.01));
}

TEST_CASE("more load, longer waits; steps made up ahead and answers between them delay prompts") {
  double before = 0;
  for (const double load : {1, 5, 8, 9}) {
    const double now = ttft_ms(unit(load), kPrompts, 95);
    CHECK(now >= before);
    before = now;
  }
  const double alone = ttft_ms(unit(5), kPrompts, 95);
  PrefillQueue ahead = unit(20);
  ahead.tokens_per_step = 4000;
  const double at_once = ttft_ms(ahead, kPrompts, 95);
  ahead.overlapped = true;
  CHECK(ttft_ms(ahead, kPrompts, 95) > at_once);
  PrefillQueue beside = unit(5);
  beside.decode_step_ms = 25;
  CHECK(ttft_ms(beside, kPrompts, 95) > alone);
}

TEST_CASE("requests to groups in turn wait longer than those to the one with the fewest, where prompts differ") {
  const Lengths prompts({100, 900, 8000}, {0.6, 0.3, 0.1});
  PrefillQueue queue = unit(20);
  queue.groups = 4;
  const double fewest = ttft_ms(queue, prompts, 95);
  queue.in_turn = true;
  CHECK(ttft_ms(queue, prompts, 95) > fewest);
}

TEST_CASE("steps take the share of time that the load needs, partly filled ones more than full ones would") {
  CHECK(times(unit(5)).share == doctest::Approx(0.5).epsilon(0.03));
  PrefillQueue eight = unit(5);
  eight.groups = 8;  // of which mostly one works in a step
  CHECK(times(eight).share > 4 * 0.5 / 8);
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
