#include "experiments/sweep/run_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/spec.hpp"
#include "base/text.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/run/metrics.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

std::optional<std::size_t> number(const char* name) {
  constexpr std::size_t kLargest = 1'000'000'000;  // products of two fit
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const auto result = as_number<std::size_t>(text);
  if (result && *result <= kLargest) return result;
  throw SpecError(fmt::format("{}='{}' is no number of a process", name, text));
}

struct Launcher {
  const char* index;
  const char* count;
};
constexpr Launcher kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

Share share_of_launcher() {
  for (const Launcher& launcher : kLaunchers) {
    const auto index = number(launcher.index);
    const auto count = number(launcher.count);
    if (!index || !count) continue;
    if (*index < *count) return {*index, *count};
    throw SpecError(fmt::format("{}={} is none of {}={} processes", launcher.index, *index, launcher.count, *count));
  }
  return {};
}

Share share_of_array() {
  const auto id = number("SLURM_ARRAY_TASK_ID");
  const std::size_t count = number("SLURM_ARRAY_TASK_COUNT").value_or(1);
  if (!id || count < 2) return {};
  const std::size_t first = number("SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::size_t step = number("SLURM_ARRAY_TASK_STEP").value_or(1);
  const std::size_t last = number("SLURM_ARRAY_TASK_MAX").value_or(first + (count - 1) * step);
  const bool equal_steps = step > 0 && last == first + (count - 1) * step;
  if (equal_steps && *id >= first && *id <= last && (*id - first) % step == 0) return {(*id - first) / step, count};
  throw SpecError(fmt::format(
      "SLURM_ARRAY_TASK_ID={} of {} tasks from {} to {} in steps of {}: which share is that? Arrays in equal "
      "steps have some, as --array=0-{}",
      *id, count, first, last, step, count - 1));
}

}  // namespace

Share share_of_environment() {
  const Share task = share_of_array();
  const Share process = share_of_launcher();
  return {task.index * process.count + process.index, task.count * process.count};
}

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
