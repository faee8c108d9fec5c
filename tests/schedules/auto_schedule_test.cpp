// `schedule: auto` takes the best of what the schedules give when they are named one by one.
#include <algorithm>
#include <map>
#include <set>

#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/run/run_metrics.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("schedules/auto_schedule") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

Set with(Set assignments, const std::string& more) {
  assignments.push_back(more);
  return assignments;
}

struct Named {
  std::string schedule;
  bool fits = true;
  double ms = 0;
};

// TTFT of prefill, else the step.
double ms_of(const Run& run) {
  const bool prefill = run.setup.scenario.phase() == WorkloadPhase::prefill;
  return prefill ? run.inference()->ttft_ms : to_us(run.metrics.span) / 1e3;
}

// Each schedule that a scenario may have, by its own name.
std::vector<Named> named_one_by_one(const std::filesystem::path& scenario, const Set& set,
                                    const std::vector<std::string>& schedules) {
  std::vector<Named> all;
  for (const std::string& schedule : schedules) {
    const Run run = run_scenario(load_setup(scenario, with(set, "schedule=" + schedule)));
    CHECK(run.tried.empty());
    all.push_back({schedule, fits_memory(run), ms_of(run)});
  }
  return all;
}

// Returns the name of the best.
std::string check_best(const std::filesystem::path& scenario, const Set& set,
                       const std::vector<std::string>& schedules) {
  const std::vector<Named> named = named_one_by_one(scenario, set, schedules);
  const auto best = std::min_element(named.begin(), named.end(), [](const Named& a, const Named& b) {
    return std::pair(!a.fits, a.ms) < std::pair(!b.fits, b.ms);
  });
  const Run run = best_run(scenario, with(set, "schedule=auto"));
  CHECK(run.setup.scenario.schedule == best->schedule);
  CHECK(ms_of(run) == best->ms);
  for (const TriedSchedule& tried : run.tried) {
    CAPTURE(tried.schedule);
    const auto same =
        std::find_if(named.begin(), named.end(), [&](const Named& n) { return n.schedule == tried.schedule; });
    REQUIRE(tried.ran() == (same != named.end()));
    if (!tried.ran()) continue;
    CHECK(tried.time_ms() == same->ms);
    CHECK(tried.fits_memory == same->fits);
  }
  return best->schedule;
}

std::map<std::string, std::string> refusals(const Run& run) {
  std::map<std::string, std::string> all;
  for (const TriedSchedule& tried : run.tried) {
    if (!tried.ran()) all[tried.schedule] = tried.refused;
  }
  return all;
}

// 20 micro-batches on 8 ranks, of slots as in DualPipe's README.
std::string given_slots(const TemporaryFolder& folder) {
  return folder.write("slots.yaml",
                      "schema: 1\n"
                      "schedule: auto\n"
                      "parallelism: {pp: 8}\n"
                      "workload: {phase: train, seq_len: 4096, global_batch_size: 20}\n"
                      "slot_costs_ms: {F: 1, B: 2, W: 1, F&B: 2.5}\n");
}

// A small one, of which each kind of slot is simulated once.
const Set kSmallStep = {"layers=16", "level=phase", "parallelism={pp: 4, ep: 8, dp: 8}",
                        "workload={phase: train, seq_len: 4096, global_batch_size: 64}"};

std::string refusal_of(const std::filesystem::path& scenario, const Set& set) {
  return testing::refusal_of([&] { (void)best_run(scenario, set); });
}

}  // namespace

TEST_CASE("auto decodes small batches in one, large ones in two micro-batches") {
  const auto micro_batches = [](const char* batch) {
    const Set of_size = {std::string("workload.batch_size=") + batch};
    const Set schedules = {"sequential", "single-batch", "per-expert", "decode-two-batch"};
    return schedule_named(check_best(decode_scenario(), of_size, schedules)).micro_batches;
  };
  CHECK(micro_batches("16") == 1);
  CHECK(micro_batches("64") == 1);
  CHECK(micro_batches("128") == 2);
}

TEST_CASE("auto prefills few tokens in one, many in two micro-batches") {
  std::set<std::string> best;
  for (const char* tokens : {"256", "512", "4096", "16384"}) {
    best.insert(check_best(prefill_scenario(), {std::string("workload.tokens=") + tokens},
                           {"sequential", "prefill-two-batch"}));
  }
  CHECK(best.size() == 2);
}

TEST_CASE("auto takes the best of a training chunk's schedules, and names why pipelines do not apply") {
  CHECK(check_best(chunk_scenario(), {"samples=1", "ranks=folded"}, {"sequential", "dualpipe-chunk"}) ==
        "dualpipe-chunk");
  const Run run = best_run(chunk_scenario(), {"samples=1", "ranks=folded", "schedule=auto"});
  CHECK(refusals(run).at("1f1b") == "runs whole steps, which need global_batch_size");
}

TEST_CASE("auto takes the best pipeline of a training step, of those whose demands are met") {
  check_best(step_scenario(), kSmallStep,
             {"gpipe", "1f1b", "zb1p", "zb-h2", "zbv", "v-half", "v-min", "dualpipe", "dualpipev"});
  Set odd = kSmallStep;
  odd[2] = "parallelism={pp: 3, ep: 8, dp: 8}";
  check_best(step_scenario(), odd, {"gpipe", "1f1b", "zb1p", "zb-h2", "zbv", "v-half", "v-min", "dualpipev"});
}

TEST_CASE("the key of one schedule is no reason to refuse the others, where auto chooses") {
  const Run run = best_run(step_scenario(), with(with(kSmallStep, "parallelism.virtual_pp=2"), "schedule=auto"));
  CHECK(refusals(run).size() == 2);  // the chunk's
  const Run without = best_run(step_scenario(), with(kSmallStep, "schedule=auto"));
  CHECK(run.metrics.span == without.metrics.span);
  CHECK(run.setup.scenario.parallelism.virtual_pp == 1);
  CHECK(refusals(without).at("interleaved-1f1b") == "parallelism.virtual_pp is missing");
}

TEST_CASE("auto takes the best pipeline of slots of given length, of those with as many chunks to a rank") {
  const TemporaryFolder folder;
  const std::string slots = given_slots(folder);
  CHECK(check_best(slots, {}, {"gpipe", "1f1b", "zb1p", "zb-h2", "dualpipe"}) == "dualpipe");
  CHECK(says(refusals(best_run(slots)).at("dualpipev"), "has 2 chunks of the model on each rank"));
  const Run two = best_run(slots, {"parallelism.virtual_pp=2", "workload.global_batch_size=24"});
  CHECK(refusals(two).size() == 7);
  CHECK(two.setup.scenario.schedule == "dualpipev");
}

TEST_CASE("of equal schedules auto takes the first") {
  const TemporaryFolder folder;
  const Run run = best_run(given_slots(folder), {"parallelism.pp=1", "workload.global_batch_size=1"});
  CHECK(run.setup.scenario.schedule == "gpipe");
  CHECK(run.tried[3].schedule == "1f1b");
  CHECK(run.tried[3].step_ms == run.tried[2].step_ms);
}

TEST_CASE("a schedule that does not fit memory loses to a slower one that does") {
  const Set small = {"workload.batch_size=16", "schedule=auto"};
  const Run fast = best_run(decode_scenario(), small);
  REQUIRE(schedule_named(fast.setup.scenario.schedule).micro_batches == 1);
  const double both = *fast.tried[0].memory_gib + *fast.tried[1].memory_gib;
  REQUIRE(*fast.tried[0].memory_gib > *fast.tried[1].memory_gib);  // of one and of two micro-batches
  const double between = both / 2 + gib(runtime_bytes(fast.setup));
  const Run fitting = best_run(
      decode_scenario(), with(with(small, "hardware.memory_gib=" + std::to_string(between)), "memory.fraction=1"));
  CHECK(fitting.setup.scenario.schedule == "decode-two-batch");
  CHECK_FALSE(fitting.tried[0].fits_memory);
  CHECK(fitting.tried[0].step_ms < fitting.tried[1].step_ms);
}

TEST_CASE("a mode that only one schedule has leaves auto that one") {
  const Run run = best_run(decode_scenario(), {"schedule=auto", "comm.mode=normal", "layers=4"});
  CHECK(run.setup.scenario.schedule == "sequential");
  CHECK(says(refusals(run).at("decode-two-batch"), "comm.mode 'normal' is not modelled"));
}

TEST_CASE("where no schedule applies auto says why of each, and one mistake is one message") {
  const std::string none = refusal_of(chunk_scenario(), {"schedule=auto", "workload.global_batch_size=64"});
  CHECK(says(none, "auto: no schedule applies: sequential, dualpipe-chunk: runs one chunk, and a whole step"));
  CHECK(
      says(none, "gpipe, 1f1b, zb1p, zb-h2, zbv, v-half, v-min, dualpipev: samples does not go with a whole pipeline"));
  CHECK(says(none, "interleaved-1f1b: parallelism.virtual_pp is missing"));
  const std::string mistake = refusal_of(decode_scenario(), {"schedule=Auto", "comm.num_smss=4"});
  CHECK(mistake == "--set: unknown key 'comm.num_smss'; did you mean 'comm.num_sms'?");
  const std::string misspelt = refusal_of(decode_scenario(), {"schedule=auto", "worklaod={}"});
  CHECK(misspelt == "--set: unknown key 'worklaod'; did you mean 'workload'?");
}

TEST_CASE("a scenario whose schedule is open is refused where one is needed") {
  CHECK_THROWS_WITH_AS((void)load_setup(decode_scenario(), {"schedule=auto"}),
                       "--set: schedule is auto, and one is needed here", SpecError);
}

}  // TEST_SUITE("schedules/auto_schedule")
