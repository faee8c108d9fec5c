#include "experiments/sweep/run_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <set>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/spec.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/run/metrics.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

std::vector<double> metrics_of(const Run& run, const Study& study) {
  std::vector<double> values;
  for (const std::string& name : study.metrics) {
    const Metric& metric = *metric_named(name);
    values.push_back(metric.applies(run) ? metric.value(run) : NAN);
  }
  return values;
}

Run run_point(const Study& study, std::size_t point) {
  std::vector<Candidate> candidates = load_candidates(study.scenario, study.assignments_of(point));
  for (Candidate& candidate : candidates) {
    if (candidate.setup) candidate.setup = folded(*std::move(candidate.setup));
  }
  return best_run(candidates);
}

PointResult simulate_point(const Study& study, std::size_t point) {
  PointResult result{.id = point};
  try {
    result.metrics = metrics_of(run_point(study, point), study);
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  return result;
}

std::vector<std::size_t> missing_points(const Study& study, const Share& share, const Store& store) {
  const std::vector<bool> stored = store.stored();
  std::vector<std::size_t> missing;
  for (std::size_t point = 0; point < study.points.size(); ++point) {
    if (share.takes(point) && !stored[point]) missing.push_back(point);
  }
  return missing;
}

}  // namespace

namespace {

// At the axis that the reason names, else at all of them.
SpecError no_scenario(const Study& study, std::string_view reason) {
  constexpr std::string_view kOption = "--set: ";  // what a study sets, nobody wrote as an option
  if (reason.starts_with(kOption)) reason.remove_prefix(kOption.size());
  const std::string message = fmt::format("made no scenario of any of the {} points: {}", study.points.size(), reason);
  const Spec spec = Spec::load(study.file);
  for (const std::string& key : study.keys) {
    const std::string unknown = fmt::format("'{}'", key.substr(0, key.find('.')));
    const bool is_named = reason.find(key) != std::string_view::npos || reason.find(unknown) != std::string_view::npos;
    if (is_named) return spec.map("axes").error(key, message);
  }
  return spec.error("axes", message);
}

}  // namespace

void check_loads(const Study& study) {
  constexpr std::size_t kTried = 1000;  // spread over all: of millions, each would take a millisecond
  const std::size_t every = 1 + (study.points.size() - 1) / kTried;
  std::set<std::string> reasons;
  std::string first;
  for (std::size_t point = 0; point < study.points.size(); point += every) {
    try {
      (void)load_candidates(study.scenario, study.assignments_of(point));
      return;
    } catch (const SpecError& error) {
      reasons.insert(error.what());
      if (point == 0) first = error.what();
    }
  }
  if (every == 1 || reasons.size() == 1) throw no_scenario(study, first);
}

void run_study(const Study& study, const Share& share, std::size_t workers, Store& store, const Progress& progress) {
  const std::vector<std::size_t> points = missing_points(study, share, store);
  std::mutex reporting;
  std::size_t done = 0;
  try {
    parallel_for(points.size(), workers, [&](std::size_t i) {
      const PointResult result = simulate_point(study, points[i]);
      const std::scoped_lock lock(reporting);
      store.add(result);
      progress("points", ++done, points.size());
    });
  } catch (const SpecError& error) {
    const std::vector<bool> stored = store.stored();
    throw SpecError(fmt::format("{}; {} of {} points are stored, and --resume continues", error.what(),
                                std::count(stored.begin(), stored.end(), true), stored.size()));
  }
}

}  // namespace moeline
