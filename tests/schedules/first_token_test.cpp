// The time to the first token of a prompt of several steps: the sum of its steps.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/run/run.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/random_scenarios.hpp"

TEST_SUITE("schedules/first_token") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Prompt {
  std::string model, machine;
  int tp = 1, ep = 1;
  int tokens = 0;  // of a step
  int cached = 0, length = 0;
};

Run run_of(const Prompt& p) {
  return run_scenario(
      setup_of(fmt::format("schema: 1\nmodel: {}\nhardware: {}\nschedule: sequential\nparallelism: {{tp: {}, ep: {}}}\n"
                           "workload: {{phase: prefill, tokens: {}, cached_len: {}, prompt_len: {}}}\n",
                           p.model, p.machine, p.tp, p.ep, p.tokens, p.cached, p.length)));
}

// Of steps that are simulated one by one, each with the keys of those before it in the cache.
double sum_of_steps_ms(const Prompt& prompt) {
  double sum = 0;
  for (Prompt step = prompt; step.cached < prompt.length; step.cached += prompt.tokens) {
    step.tokens = std::min(prompt.tokens, prompt.length - step.cached);
    step.length = step.cached + step.tokens;
    sum += to_us(run_of(step).metrics.span) / 1e3;
  }
  return sum;
}

double error_of(const Prompt& prompt) { return run_of(prompt).inference()->ttft_ms / sum_of_steps_ms(prompt) - 1; }

Prompt random_prompt(Random& random) {
  const auto upto = [&](int most) { return static_cast<int>(random.uniform() * most); };
  static const std::vector<Prompt> kServers = {{"qwen3-30b-a3b", "h200", 2, 2}, {"deepseek-v3", "h200", 8, 8},
                                               {"gpt-oss-120b", "b200", 1, 4},  {"qwen-2.5-72b", "h200", 4, 1},
                                               {"glm-4.5", "h100", 8, 8},       {"deepseek-v3", "h800", 1, 32}};
  Prompt prompt = kServers[static_cast<std::size_t>(upto(static_cast<int>(kServers.size())))];
  prompt.tokens = 1024 << upto(4);
  prompt.cached = upto(2) * upto(20000);
  prompt.length = prompt.cached + prompt.tokens * (1 + upto(39)) + upto(2) * upto(prompt.tokens);
  return prompt;
}

}  // namespace

TEST_CASE("a prompt takes what its steps take, at the clock of each: eight, nine, fourteen and fifteen of them") {
  for (const int steps : {1, 2, 8, 9, 14, 15}) {
    CAPTURE(steps);
    CHECK(std::abs(error_of({"deepseek-v3", "h800", 1, 32, 8192, 0, 8192 * steps})) < 0.002);
  }
  CHECK(std::abs(error_of({"deepseek-v3", "h200", 8, 8, 4096, 0, 4096 * 16})) < 0.002);
  CHECK(std::abs(error_of({"qwen-2.5-72b", "h200", 4, 1, 4096, 0, 4096 * 16})) < 0.002);
}

TEST_CASE("random prompts, with rests and parts in the cache, take what their steps take") {
  const std::uint64_t count = from_environment("MOELINE_SCENARIOS", 6);
  Random random(from_environment("MOELINE_SEED", 1));
  double worst = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Prompt prompt = random_prompt(random);
    CAPTURE(fmt::format("{} {} tokens {} cached {} length {}", prompt.model, prompt.machine, prompt.tokens,
                        prompt.cached, prompt.length));
    const double error = error_of(prompt);
    CHECK(std::abs(error) < 0.005);
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
  MESSAGE("worst of ", count, ": ", 100 * worst, " %");
}

}  // TEST_SUITE("schedules/first_token")
