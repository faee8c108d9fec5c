#include "experiments/search/choose.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/parallel.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/samples.hpp"
#include "experiments/search/order_space.hpp"

namespace moeline {
namespace {

constexpr double kNotRun = std::numeric_limits<double>::infinity();
constexpr double kEqualTimes = 1e-4;
constexpr int kSamples = 16;

struct Whole {
  double run_ms = kNotRun, layer_us = kNotRun;
};

Whole whole(const Setup& setup) {
  Setup few = setup;
  few.scenario.samples = std::min(few.scenario.samples, kSamples);
  const auto count = static_cast<std::size_t>(few.scenario.samples);
  std::vector<double> ms(count), us(count);
  const auto note = [&](std::size_t i, const Run& run) {
    ms[i] = to_us(run.metrics.span) / 1e3;
    us[i] = layer_us(run);
  };
  count > 1 ? for_each_sample(few, note) : note(0, run_scenario(few));
  return {band_of(ms).median, band_of(us).median};
}

// Never, where the streams wait for each other after all.
Whole whole_if_it_runs(const Setup& setup) {
  try {
    return whole(setup);
  } catch (const SpecError&) {
    return {};
  }
}

double time_of(const Whole& whole, const Setup& setup) {
  return setup.scenario.phase() == WorkloadPhase::train ? whole.layer_us : whole.run_ms;
}

struct Timed {
  const PlanCandidate* candidate = nullptr;
  Whole whole{};
};

// `setup_of`: of a candidate, as it is to be run.
template <class SetupOf>
Timed fastest(const std::vector<const PlanCandidate*>& candidates, std::size_t workers, const SetupOf& setup_of,
              const Progress& progress) {
  std::vector<Timed> timed(candidates.size());
  std::size_t done = 0;
  std::mutex mutex;
  parallel_for(candidates.size(), workers, [&](std::size_t i) {
    timed[i] = {candidates[i], whole_if_it_runs(setup_of(*candidates[i]))};
    const std::scoped_lock lock(mutex);
    progress("whole runs", ++done, candidates.size());
  });
  return *std::min_element(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) {
    return time_of(a.whole, a.candidate->setup) < time_of(b.whole, b.candidate->setup);
  });
}

Setup with_all_ranks(const VariantRequest& request, const PlanCandidate& candidate) {
  std::vector<std::string> assignments = request.assignments;
  assignments.insert(assignments.end(), candidate.changes.begin(), candidate.changes.end());
  return with_plan(load_setup(request.scenario, assignments), searched_plan(candidate.setup));
}

}  // namespace

Choice choose(const VariantRequest& request, std::size_t workers, const PlanCandidate& own,
              const std::vector<std::vector<PlanCandidate>>& by_variant, const Progress& progress) {
  const Setup asked = load_setup(request.scenario, request.assignments);
  const auto quick = [](const PlanCandidate& candidate) { return candidate.setup; };
  const auto as_asked = [&](const PlanCandidate& candidate) {
    return asked.every_rank ? with_all_ranks(request, candidate) : candidate.setup;
  };
  std::vector<const PlanCandidate*> best;
  for (const std::vector<PlanCandidate>& candidates : by_variant) {
    std::vector<const PlanCandidate*> all;
    for (const PlanCandidate& candidate : candidates) all.push_back(&candidate);
    best.push_back(fastest(all, workers, quick, progress).candidate);
  }
  const bool samples = asked.every_rank && asked.scenario.samples > 1;  // on all cores, one after the other
  const Timed chosen = fastest(best, samples ? 1 : workers, as_asked, progress);
  const Whole published = whole(asked.every_rank ? asked : own.setup);
  const bool keeps = has_searched_plan(own.setup.scenario.kind()) &&
                     time_of(chosen.whole, own.setup) >= time_of(published, own.setup) * (1 - kEqualTimes);
  const Whole& whole_of_best = keeps ? published : chosen.whole;
  Choice choice{.best = keeps ? own : *chosen.candidate, .run_ms = {published.run_ms, whole_of_best.run_ms}};
  if (!asked.every_rank) return choice;
  choice.all_ranks_us = PlanTimes{published.layer_us, whole_of_best.layer_us};
  choice.samples = std::min(asked.scenario.samples, kSamples);
  return choice;
}

}  // namespace moeline
