// The table of schedules: what stands in it exists.
#include "schedules/scenario/schedule_kinds.hpp"

#include <doctest/doctest.h>

#include "base/file.hpp"
#include "experiments/run/build_program.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/schedule_kinds") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::filesystem::path scenario_for(WorkloadPhase phase) {
  if (phase == WorkloadPhase::train) return chunk_scenario();
  return phase == WorkloadPhase::prefill ? prefill_scenario() : decode_scenario();
}

}  // namespace

TEST_CASE("every schedule of the table has a program for each phase that it is for, and its plan is there") {
  for (const ScheduleKind& kind : schedule_kinds()) {
    CAPTURE(kind.name);
    if (!kind.plan.empty()) CHECK(std::filesystem::exists(home() / "schedules" / (kind.plan + ".yaml")));
    if (kind.pipeline) {
      CHECK_FALSE(slots_of(kind.name, 0, {.ranks = 4, .micro_batches = 8, .chunks = 2}).empty());
      continue;
    }
    for (const WorkloadPhase phase : kind.phases) {
      std::vector<std::string> set = {"schedule=" + kind.name, "layers=2", "ranks=folded", "samples=1",
                                      "routing={distribution: balanced}"};
      if (phase == WorkloadPhase::mixed) {
        set.emplace_back("workload={phase: mixed, batch_size: 64, kv_len: 4096, tokens: 512, prompt_len: 2048}");
        set.emplace_back("comm.mode=normal");
      }
      CHECK(build_program(load_setup(scenario_for(phase), set)).graph.size() > 0);
    }
  }
}

TEST_CASE("a schedule that splits a step or overlaps two passes has a plan that says how") {
  for (const ScheduleKind& kind : schedule_kinds()) {
    CAPTURE(kind.name);
    if (kind.micro_batches > 1) CHECK_FALSE(kind.plan.empty());
    if (kind.pipeline) CHECK(kind.plan.empty() != kind.pipeline->overlaps_passes);
  }
}

}  // TEST_SUITE("schedules/schedule_kinds")
