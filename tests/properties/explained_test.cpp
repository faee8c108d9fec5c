// What explain says of a time adds up to it, and what it says of the least time is not more.
#include <doctest/doctest.h>

#include "curves/topology.hpp"
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
  const std::optional<Run> run = run_if_legal(keys, {}, {.record_changes = true});
  if (!run) return std::nullopt;
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
  const std::optional<Run> run = run_if_legal(keys);
  if (!run) return std::nullopt;
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

// By its own traffic, at the peaks of the machine. What is read hot, or stays between the kernels of a layer, may never
// have been in memory; what a curve says of the rest may be off by rounding.
std::optional<std::string> below_a_peak(const ScenarioKeys& keys) {
  const std::optional<Run> run = run_if_legal(keys);
  if (!run) return std::nullopt;
  constexpr double kRounding = 1 + 1e-9;
  const MachineFacts& machine = run->setup.machine.facts;
  for (const KernelWork& work : run->program.kernels) {
    const Operator& op = work.op;
    const double us = run->setup.prices->price(op, work.conditions)->solo_us * kRounding;
    const std::string of = fmt::format("{} is charged less than its ", op.name);
    const bool on_links = op.traffic.stage == Stage::whole || op.traffic.stage == Stage::wire;
    if (on_links && us * machine.nvlink_GBps * 1e3 < op.traffic.nvlink_bytes) return of + "bytes on NVLink take";
    if (on_links && us * nic_rate_GBps(machine) * 1e3 < op.traffic.wire_bytes) return of + "bytes on the NIC take";
    if (us * machine.tflops(precision_of(op)) * 1e6 < op.flops) return of + "multiplications take";
  }
  return "";
}

}  // namespace

TEST_CASE("no kernel is charged less than its own traffic and FLOPs take at the machine's peaks") {
  none_in_any_scenario(below_a_peak, 100, 8);
}

TEST_CASE("reasons add up to the time, to the picosecond, and no bound is above it") {
  none_in_any_scenario(unexplained, 100, 8);
}

TEST_CASE("what a step's kernels are charged adds up, and OPs of theirs cost the same") {
  none_in_any_scenario(another_price, 100, 8);
}

}  // TEST_SUITE("properties/explained")
