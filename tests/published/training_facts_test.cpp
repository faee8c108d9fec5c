// The facts about DeepSeek's training chunk are what its trace says.
#include <doctest/doctest.h>

#include <algorithm>

#include "experiments/run/samples.hpp"
#include "experiments/validate/facts.hpp"
#include "experiments/validate/score_facts.hpp"
#include "tests/support/data.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/step.hpp"
#include "timeline/comparison.hpp"
#include "trace/trace.hpp"

TEST_SUITE("published/training_facts") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::vector<PhaseTimes>& measured() {
  static const std::vector<PhaseTimes> phases = phase_times(read_trace(training_trace()));
  return phases;
}

const PhaseTimes& phase_of(const Fact& fact, const std::vector<PhaseTimes>& phases) {
  const auto layer = static_cast<std::uint32_t>(fact.prediction.at("layer").integer("layer", 0, 3));
  const auto found = std::find_if(phases.begin(), phases.end(), [&](const PhaseTimes& phase) {
    return phase.phase == fact.prediction.text("phase") && phase.layer == layer;
  });
  REQUIRE(found != phases.end());
  return *found;
}

Subject subject(const std::string& name) {
  return read_subject(Spec::load(source("tests/published/" + name + ".yaml")));
}

}  // namespace

TEST_CASE("spans of phases, and the means of those copied, are the trace's") {
  if (!present(training_trace())) return;
  const Subject facts = subject("training_chunk_phases");
  CHECK(facts.facts.size() == 12);
  const std::vector<PhaseTimes> copied = copied_mean(measured(), {2, 3});
  for (const Fact& fact : facts.facts) {
    CAPTURE(fact.id);
    CHECK(to_us(phase_of(fact, measured()).span()) == fact.measured);
    CHECK(to_us(phase_of(fact, copied).span()) == doctest::Approx(fact.stated_nulls.at("copied_mean")).epsilon(1e-6));
  }
}

TEST_CASE("transfers are the trace's") {
  if (!present(training_trace())) return;
  const Subject facts = subject("training_chunk_transfers");
  CHECK(facts.facts.size() == 8);
  for (const Fact& fact : facts.facts) {
    CAPTURE(fact.id);
    CHECK(to_us(phase_of(fact, measured()).transfer) == fact.measured);
  }
}

TEST_CASE("the span of layers 2 and 3 is what compare makes of the trace") {
  if (!present(training_trace())) return;
  const std::vector<Fact> facts = subject("training_chunk").facts;
  const auto found = std::find_if(facts.begin(), facts.end(), [](const Fact& f) { return f.key == "layers_2_and_3"; });
  REQUIRE(found != facts.end());
  CHECK(to_us(score(measured(), measured(), {2, 3}).b_span) == found->measured);
}

TEST_CASE("barriers are the trace's, and what compute waits is what analyze says") {
  if (!present(training_trace())) return;
  int barriers = 0;
  for (const Fact& fact : subject("training_chunk_waits").facts) {
    CAPTURE(fact.id);
    if (fact.prediction.text("metric") != "phase_barrier_us") continue;
    CHECK(to_us(phase_of(fact, measured()).barrier) == fact.measured);
    ++barriers;
  }
  CHECK(barriers == 8);
}

TEST_CASE("of the eight barriers seven lie where nine in ten draws do, and so do the waits of compute, in layer 3") {
  if (kSanitized) return;  // a hundred draws of 64 ranks
  Predictor predictor;
  int inside = 0;
  for (const ScoredFact& scored : score(subject("training_chunk_waits"), predictor).facts) {
    CAPTURE(scored.fact.id);
    REQUIRE(scored.prediction.band.has_value());
    if (scored.fact.key == "compute_waits") {
      CHECK(scored.in_band());
    } else if (scored.in_band()) {
      ++inside;
    }
  }
  CHECK(inside >= 7);
  const Samples samples = sample(load_setup(chunk_scenario(), {"samples=12"}));
  const auto wait_in = [&](std::uint32_t layer) {
    double sum = 0;
    for (const PhaseBand& phase : samples.phases) sum += phase.layer == layer ? phase.wait_us.median : 0;
    return sum;
  };
  for (const std::uint32_t other : {0U, 1U, 2U}) CHECK(wait_in(3) > 10 * wait_in(other));
}

TEST_CASE("the published parts of a step are read twice, as means of the ranks and as an outer rank's") {
  Predictor predictor;
  const Run run = run_step();
  const StepParts& outer = run.step()->ranks.front().parts;
  const std::vector<Fact> means = subject("training_step").facts;
  const std::vector<Fact> of_rank = subject("training_step_outer_rank").facts;
  CHECK(of_rank.size() == std::size(kStepParts));
  for (const NamedPart& part : kStepParts) {
    const auto same = [&](const Fact& fact) { return fact.prediction.text("metric") == part.key; };
    const auto mean = std::find_if(means.begin(), means.end(), same);
    const auto rank = std::find_if(of_rank.begin(), of_rank.end(), same);
    REQUIRE(mean != means.end());
    REQUIRE(rank != of_rank.end());
    CHECK(rank->measured == mean->measured);
    CHECK(predictor.predict(*rank).value == doctest::Approx(ms(outer.*part.time)));
    CHECK(predictor.predict(*mean).value == doctest::Approx(ms(run.step()->mean.*part.time)));
  }
  // The pairs that the stated null is made of.
  const auto pairs = std::count_if(run.phases.begin(), run.phases.end(),
                                   [](const PhaseTimes& slot) { return slot.rank == 0 && slot.phase == "F&B"; });
  CHECK(of_rank.front().stated_nulls.at("chunk_of_the_trace") ==
        doctest::Approx(static_cast<double>(pairs) * 129.012).epsilon(1e-4));
}

TEST_CASE("DeepSeek's decode throughput is predicted at 1.6 tokens per request and step, as it was counted") {
  const Fact decode = subject("inference_throughput").facts.back();
  Predictor predictor;
  const Run run = run_decode({"workload.query_len=2"});
  const double step_s = to_us(run.metrics.span) / 1e6;
  CHECK(predictor.predict(decode).value == doctest::Approx(1.6 * 128 / step_s));
  CHECK(tokens_per_request(*decode_of(run.setup.scenario.workload)) == doctest::Approx(1.85));  // where nothing is said
}

}  // TEST_SUITE("published/training_facts")
