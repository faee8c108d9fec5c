// What explain says of a time adds up to it, and what it says of the least time is not more.
#include <doctest/doctest.h>

#include "experiments/explain/explanation.hpp"
#include "experiments/explain/step_kernels.hpp"
#include "experiments/run/run_metrics.hpp"
#include "hardware/parse_op.hpp"
#include "tests/support/random_scenarios.hpp"

TEST_SUITE("properties/explained") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Time sum_of(const std::vector<Blame>& blame) {
  Time sum{};
  for (const Blame& each : blame) sum += each.time;
  return sum;
}

std::optional<std::string> unexplained(const ScenarioKeys& keys) {
  std::optional<Run> run;
  try {
    run = run_scenario(setup_of(yaml_of(keys)), {.record_changes = true});
  } catch (const SpecError&) {
    return std::nullopt;
  }
  const Explanation explanation = explain(*run);
  if (explanation.span != run->explained_span()) return "another time than the run's is explained";
  if (sum_of(explanation.blame) != explanation.span) return "the reasons do not add up to the time";
  for (const Bound& bound : explanation.bounds) {
    if (bound.time > explanation.span) return fmt::format("the bound by {} is above the time", bound.what);
  }
  return "";
}

// Messages between stages apart, which the bill has at both ends and the sum once.
double billed_us(const StepKernels& step) {
  double us = step.all_us();
  for (const StepKernel& kernel : step.kernels) {
    if (kernel.price.family == name_of(Family::send)) us -= kernel.us;
  }
  return us;
}

double counted_us(const Run& run) {
  double us = solo_us(run);
  for (const ProvenanceUse& use : run.program.provenance) {
    if (use.family == Family::send) us -= use.solo_us;
  }
  return us;
}

std::optional<std::string> another_price(const ScenarioKeys& keys) {
  std::optional<Run> run;
  try {
    run = run_scenario(setup_of(yaml_of(keys)));
  } catch (const SpecError&) {
    return std::nullopt;
  }
  const std::optional<StepKernels> step = step_kernels(*run);
  if (!step) return std::nullopt;
  const Setup& setup = run->setup;
  for (const StepKernel& kernel : step->kernels) {
    if (!kernel.op) continue;
    const RequestedOp asked = parse_op(*kernel.op, setup.machine.facts);
    const double price_us = price_all(asked.kernels, asked.conditions, setup.machine.facts, setup.kernels()).solo_us;
    if (price_us != kernel.price.solo_us) return "an OP of the step has another price";
  }
  return billed_us(*step) == doctest::Approx(counted_us(*run)) ? "" : "the kernels do not add up to the time of all";
}

}  // namespace

TEST_CASE("reasons add up to the time, to the picosecond, and no bound is above it") {
  none_in_any_scenario(unexplained, 100, 8);
}

TEST_CASE("what a step's kernels are charged adds up, and OPs of theirs cost the same") {
  none_in_any_scenario(another_price, 100, 8);
}

}  // TEST_SUITE("properties/explained")
