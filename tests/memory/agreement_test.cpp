// Everyone who asks whether something fits has the same answer, and more never takes less.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "experiments/memory/inference_memory.hpp"
#include "experiments/serve/serve.hpp"
#include "schedules/scenario/read_scenario.hpp"

TEST_SUITE("memory/agreement") {

using namespace moeline;

namespace {

const std::vector<std::string> kDeployments = {
    "model: qwen-2.5-72b, hardware: h100, parallelism: {tp: 8}",
    "model: qwen3-235b-a22b, hardware: h200, parallelism: {tp: 4, ep: 4}",
    "model: deepseek-v3, hardware: h200, parallelism: {ep: 8}",
    "model: deepseek-v3, hardware: h800, parallelism: {ep: 32}, memory: {stack: none}",
    "model: qwen3-next-80b-a3b, hardware: h200, parallelism: {tp: 2, ep: 2}, memory: {stack: vllm}",
    "model: gpt-oss-120b, hardware: b200, parallelism: {ep: 2}, kernels: trtllm"};

Spec asked(const std::string& deployment, const std::string& workload) {
  return Spec::parse("scenario.yaml",
                     fmt::format("{{schema: 1, schedule: sequential, {}, workload: {{{}}}}}", deployment, workload));
}

Setup step(const std::string& deployment, const std::string& workload) {
  return read_setup(asked(deployment, workload), {});
}

bool step_fits(const std::string& deployment, const std::string& workload) {
  const Setup setup = step(deployment, workload);
  return fits(setup, memory_of(setup));
}

// A request alone with a prompt of so many tokens, in chunks of 4096, and the last token of its answer.
bool simulate_fits(const std::string& deployment, int tokens) {
  return step_fits(deployment, fmt::format("phase: decode, batch_size: 1, kv_len: {}", tokens)) &&
         step_fits(deployment, fmt::format("phase: prefill, tokens: 4096, prompt_len: {}", tokens));
}

bool serve_fits(const std::string& deployment, int tokens) {
  const std::string workload =
      fmt::format("phase: serve, concurrency: 1, requests: 1, input_len: {}, output_len: 1, tokens: 4096", tokens - 1);
  try {
    const ServePool pool = serve(asked(deployment, workload), {}).answers;
    return pool.shape.taken(tokens) <= pool.shape.kv_tokens;
  } catch (const SpecError& error) {
    CHECK(std::string(error.what()).find("does not fit") != std::string::npos);
    return false;
  }
}

int longest(const std::function<bool(int)>& fits) { return largest_that_fits(2, 1 << 21, fits); }

}  // namespace

TEST_CASE("the longest request that fits is the same to simulate and to serve") {
  for (const std::string& deployment : kDeployments) {
    CAPTURE(deployment);
    const int one = longest([&](int tokens) { return simulate_fits(deployment, tokens); });
    REQUIRE(one > 4096);
    CHECK(serve_fits(deployment, one - one / 100));
    if (one < 1 << 21) CHECK_FALSE(serve_fits(deployment, one + one / 100));
  }
}

TEST_CASE("as many requests fit as the room says, and not one more") {
  for (const std::string& deployment : kDeployments) {
    CAPTURE(deployment);
    const auto with = [&](int requests) {
      return fmt::format("phase: decode, batch_size: {}, kv_len: 4096", requests);
    };
    const int most = largest_that_fits(1, 1 << 14, [&](int requests) { return step_fits(deployment, with(requests)); });
    const Setup setup = step(deployment, with(most));
    const double room = cache_room(setup, memory_of(setup)).requests;
    CHECK(room >= most);
    CHECK(room < most + 1);
  }
}

TEST_CASE("a longer prompt, a longer context and a larger batch never take less") {
  const std::vector<std::string> growing[] = {
      {"phase: decode, batch_size: 8, kv_len: 1024", "phase: decode, batch_size: 16, kv_len: 1024",
       "phase: decode, batch_size: 16, kv_len: 1025", "phase: decode, batch_size: 16, kv_len: 100000",
       "phase: decode, batch_size: 256, kv_len: 100000"},
      {"phase: prefill, tokens: 2048, prompt_len: 2048", "phase: prefill, tokens: 4096, prompt_len: 4096",
       "phase: prefill, tokens: 4096, prompt_len: 8192, cached_len: 4096",
       "phase: prefill, tokens: 4096, prompt_len: 65536, cached_len: 61440",
       "phase: prefill, tokens: 8192, prompt_len: 65536, cached_len: 57344"}};
  for (const std::string& deployment : kDeployments) {
    for (const std::vector<std::string>& workloads : growing) {
      double before = 0;
      for (const std::string& workload : workloads) {
        CAPTURE(deployment);
        CAPTURE(workload);
        const double bytes = memory_of(step(deployment, workload)).total();
        CHECK(bytes >= before);
        before = bytes;
      }
    }
  }
}

TEST_CASE("parts of a memory are what it is") {
  for (const std::string& deployment : kDeployments) {
    const Memory memory = memory_of(step(deployment, "phase: decode, batch_size: 16, kv_len: 4096, query_len: 1"));
    CHECK(memory.states <= memory.kv_cache);
    CHECK(memory.draft_model <= memory.weights);
  }
}

}  // TEST_SUITE("memory/agreement")
