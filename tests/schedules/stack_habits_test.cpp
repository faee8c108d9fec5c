// A stack's habits come with its kernels, whatever the set is called.
#include <doctest/doctest.h>

#include "experiments/run/run.hpp"
#include "schedules/scenario/scenario.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("schedules/stack_habits") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// A copy of b200's profile, whose set of TensorRT-LLM's kernels is called so.
std::string machine_with(const TemporaryFolder& folder, const std::string& set) {
  const std::string profile = content_of(source("hwprofiles/b200.yaml"));
  return folder.write(set + ".yaml", replaced(profile, "\n  trtllm-1.3.0:", "\n  " + set + ":"));
}

Setup decode_of(const std::string& machine, const std::string& set, const std::string& parallelism) {
  return read_setup(Spec::parse("s.yaml", "{schema: 1, model: qwen3-235b-a22b, hardware: " + machine + ", kernels: " +
                                              set + ", schedule: sequential, parallelism: " + parallelism +
                                              ", layers: 4, workload: {phase: decode, batch_size: 64, kv_len: 4096}}"));
}

}  // namespace

TEST_CASE("a copy of a machine whose kernel set has another name gives the same step") {
  const TemporaryFolder folder;
  const std::string mine = machine_with(folder, "my-1.3.0");
  for (const char* parallelism : {"{ep: 8}", "{tp: 8, ep: 8}", "{tp: 4, ep: 1}", "{ep: 8, pp: 3}"}) {
    CAPTURE(parallelism);
    const Setup named = decode_of("b200", "trtllm-1.3.0", parallelism),
                other = decode_of(mine, "my-1.3.0", parallelism);
    CHECK(other.scenario.comm.mode == named.scenario.comm.mode);
    CHECK(other.scenario.moe_backend == named.scenario.moe_backend);
    CHECK(run_scenario(other).metrics.span == run_scenario(named).metrics.span);
  }
}

}  // TEST_SUITE("schedules/stack_habits")
