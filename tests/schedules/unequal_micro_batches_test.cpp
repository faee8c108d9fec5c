// Pipelines of training whose micro-batches have sequences of different lengths.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/megatron_step.hpp"

TEST_SUITE("schedules/unequal_micro_batches") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Of Qwen3-30B on four stages.
Setup setup_of(const Set& more) { return megatron_step("qwen3-30b-a3b", 4, more); }
Run run_of(const Set& more) { return run_scenario(setup_of(more)); }

Set lengths(const std::string& list, const Set& more = {}) {
  Set set = {"workload.seq_len=" + list};
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

// Of the slots of a micro-batch on rank 0.
Time length_of(const Run& run, std::uint32_t micro_batch) {
  Time sum{};
  for (const PhaseTimes& slot : run.phases) {
    if (slot.rank == 0 && slot.micro_batch == micro_batch) sum += slot.end - slot.start;
  }
  return sum;
}

void check_refused(const Set& more, const std::string& says) {
  check_refused_with(says, [&] { (void)setup_of(more); });
}

}  // namespace

TEST_CASE("equal lengths in a list are one length, to the picosecond") {
  for (const char* level : {"operator", "phase"}) {
    const Set at = {std::string("level=") + level};
    CHECK(run_of(lengths("[4096, 4096]", at)).timeline.makespan == run_of(at).timeline.makespan);
  }
}

TEST_CASE("each micro-batch takes what one of its length takes, by its list in turn") {
  const Run mixed = run_of(lengths("[8192, 2048]"));
  const auto check_like = [&](std::uint32_t micro_batch, const Run& equal) {
    const double expected = to_us(length_of(equal, micro_batch));  // waits for other ranks go by the length alone
    CHECK(to_us(length_of(mixed, micro_batch)) == doctest::Approx(expected).epsilon(0.04));
  };
  const Run longest = run_of(lengths("8192")), shortest = run_of(lengths("2048"));
  for (const std::uint32_t micro_batch : {2U, 4U}) {
    check_like(micro_batch, longest);
    check_like(micro_batch + 1, shortest);
  }
}

TEST_CASE("of as many tokens unequal micro-batches take longer: every stage waits for long ones behind short ones") {
  for (const char* schedule : {"1f1b", "zb1p", "zbv", "dualpipev"}) {
    CAPTURE(schedule);
    const Set at = {std::string("schedule=") + schedule};
    const Run equal = run_of(lengths("4096", at)), unequal = run_of(lengths("[6144, 2048]", at));
    CHECK(step_ms_of(unequal) > 1.05 * step_ms_of(equal));
    CHECK(unequal.program.model_flops > equal.program.model_flops);  // attention goes by the square
    CHECK(tokens_per_s(unequal) / tokens_per_s(equal) == doctest::Approx(step_ms_of(equal) / step_ms_of(unequal)));
  }
}

TEST_CASE("flops per token are those of the tokens, and so the MFU is that of the kernels' own flops") {
  const Run run = run_of(lengths("[8192, 2048, 2048, 2048]"));
  const Run of_8k = run_of(lengths("8192")), of_2k = run_of(lengths("2048"));
  const double mean =
      (8192 * flops_per_token(of_8k, true) + 3 * 2048 * flops_per_token(of_2k, true)) / (8192 + 3 * 2048);
  CHECK(flops_per_token(run, true) == doctest::Approx(mean));
}

TEST_CASE("memory is that of the lengths that are kept at a time") {
  const auto activations = [](const std::string& list) {
    return run_of(lengths(list)).step()->fullest().memory.peak.activations;
  };
  const double longest = activations("8192"), shortest = activations("2048"), mixed = activations("[8192, 2048]");
  CHECK(mixed == doctest::Approx((longest + shortest) / 2).epsilon(0.01));  // four are kept, two of each
}

TEST_CASE("slots tell the step of unequal operators within 3 %") {
  const Set slots = {"level=phase"};
  CHECK(step_ms_of(run_of(lengths("[8192, 2048]", slots))) ==
        doctest::Approx(step_ms_of(run_of(lengths("[8192, 2048]")))).epsilon(0.03));
}

TEST_CASE("lengths that cannot be are refused by name") {
  check_refused(lengths("[4096, 0]"), "seq_len");
  check_refused(lengths("[]"), "seq_len");
  check_refused(lengths("[1, 2, 3, 4, 5, 6, 7, 8, 9]"), "lists 9 lengths for 8 micro-batches");
  check_refused(lengths("[4096, 4095]", {"parallelism={tp: 2, pp: 2, ep: 8, dp: 8}"}), "must divide the 4095 tokens");
  check_refused(lengths("[4096, 2048]", {"slot_costs_ms={F: 1, B: 2}"}), "slot_costs_ms says how long slots take");
  check_refused({"schedule=dualpipe-chunk", "parallelism={ep: 8}", "model=deepseek-v3", "hardware=h800",
                 "workload={phase: train, seq_len: [4096, 2048], micro_batch_size: 1}"},
                "one for each micro-batch of a whole pipeline alone");
}

}  // TEST_SUITE("schedules/unequal_micro_batches")
