#include "experiments/run/best_run.hpp"

#include <tuple>

#include "experiments/run/run_metrics.hpp"

namespace moeline {
namespace {

TriedSchedule numbers_of(const Run& run) {
  TriedSchedule tried{.schedule = run.setup.scenario.schedule, .step_ms = to_us(run.metrics.span) / 1e3};
  if (is_whole_step(run) && prefills(run)) tried.ttft_ms = run.inference()->ttft_ms;
  if (knows_memory(run)) tried.memory_gib = gib(memory_bytes(run));
  tried.fits_memory = fits_memory(run);
  return tried;
}

bool better(const TriedSchedule& a, const TriedSchedule& b) {
  return std::make_tuple(!a.fits_memory, a.time_ms()) < std::make_tuple(!b.fits_memory, b.time_ms());
}

}  // namespace

Run best_run(const std::vector<Candidate>& candidates, const SimulateOptions& options) {
  if (candidates.size() == 1) return run_scenario(*candidates.front().setup, options);
  std::vector<TriedSchedule> tried;
  std::optional<Run> best;
  std::optional<SpecError> refusal;
  for (const Candidate& candidate : candidates) {
    tried.push_back({.schedule = candidate.schedule, .refused = candidate.refused});
    if (!candidate.setup) continue;
    try {
      Run run = run_scenario(*candidate.setup, options);
      tried.back() = numbers_of(run);
      if (!best || better(tried.back(), numbers_of(*best))) best.emplace(std::move(run));
    } catch (const SpecError& error) {
      tried.back().refused = error.what();
      refusal = error;
    }
  }
  MOELINE_CHECK(best || refusal, "no candidate has a setup");
  if (!best) throw SpecError(*refusal);
  best->tried = std::move(tried);
  return *std::move(best);
}

Run best_run(const std::filesystem::path& path, const std::vector<std::string>& assignments,
             const SimulateOptions& options) {
  return best_run(load_candidates(path, assignments), options);
}

}  // namespace moeline
