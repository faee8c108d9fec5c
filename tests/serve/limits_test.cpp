// What holds requests back: the cache, the limit of a batch, or nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "experiments/serve/serve.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("serve/limits") {

using namespace moeline;
using namespace moeline::testing;

namespace {

ServeResult served(const std::string& workload, const std::string& more = "") {
  return serve(Spec::parse("serve.yaml",
                           "{schema: 1, model: qwen3-30b-a3b, hardware: h100, schedule: sequential, "
                           "parallelism: {tp: 2, ep: 2}, " +
                               more + "workload: {phase: serve, " + workload + "}}"),
               {});
}

}  // namespace

TEST_CASE("a run is held back by the cache, the limit of a batch, or nothing") {
  const ServeResult free = served("concurrency: 8, requests: 40, input_len: 200, output_len: 20");
  CHECK(free.measures.held_back_by == HeldBack::nothing);
  CHECK(free.measures.most_running <= 8);
  const ServeResult few = served("concurrency: 16, batch_size: 4, requests: 40, input_len: 200, output_len: 20");
  CHECK(few.measures.held_back_by == HeldBack::batch_limit);
  CHECK(few.measures.most_running == 4);
  CHECK(few.answers.shape.most_running == 4);
  const ServeResult full = served("concurrency: 16, requests: 40, input_len: 6000, output_len: 20",
                                  "hardware_overrides: [memory_gib=38], memory: {stack: none}, ");
  CHECK(full.measures.held_back_by == HeldBack::cache);
  CHECK(full.measures.most_running < 16);
}

TEST_CASE(
    "vLLM runs 256 requests of a card below 70 GiB unless it is told, and all come through, prompts apart or not") {
  for (const char* pool : {"", ", prefill: {replicas: 1}"}) {
    CAPTURE(pool);
    const ServeResult r = served(fmt::format("concurrency: 600, requests: 700, input_len: 20, output_len: 20{}", pool),
                                 "hardware_overrides: [memory_gib=69], memory: {stack: vllm}, ");
    CHECK(r.measures.held_back_by == HeldBack::batch_limit);
    CHECK(r.measures.most_running == 256);
    CHECK(r.log.requests.size() == 700);
  }
}

TEST_CASE("requests of a trace leave as much cache as drawn ones of their lengths") {
  const TemporaryFolder folder;
  std::string rows = "input_len,output_len\n";
  for (int i = 0; i < 50; ++i) rows += "1000,100\n";
  const std::string file = folder.write("trace.csv", rows);
  const ServeResult drawn =
      served("concurrency: 8, requests: 50, input_len: 1000, output_len: 100", "memory: {stack: trtllm}, ");
  const ServeResult traced = served("concurrency: 8, requests: 50, trace: " + file, "memory: {stack: trtllm}, ");
  CHECK(traced.answers.shape.kv_tokens == doctest::Approx(drawn.answers.shape.kv_tokens));
}

TEST_CASE("where nothing fits the parts say why") {
  try {
    (void)served("concurrency: 8, requests: 8, input_len: 200, output_len: 20",
                 "hardware_overrides: [memory_gib=20], ");
    FAIL_CHECK("it ran");
  } catch (const SpecError& error) {
    CHECK(std::string(error.what()).find("does not fit, even without requests") != std::string::npos);
    CHECK(std::string(error.what()).find("weights") != std::string::npos);
  }
}

}  // TEST_SUITE("serve/limits")
