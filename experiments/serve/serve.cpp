#include "experiments/serve/serve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "schedules/scenario/scenario_parts.hpp"

namespace moeline {
namespace {

Spec changed(Spec scenario, const std::vector<std::string>& assignments) {
  (void)apply_changes(assignments, scenario);  // of hardware none is in the workload
  return scenario;
}

// Of every kind of step that such replicas have.
void check_schedule(const Spec& scenario, RequestPart part, const ServeWorkload& workload) {
  std::vector<WorkloadPhase> phases;
  if (part != RequestPart::answer) phases.push_back(WorkloadPhase::prefill);
  if (part != RequestPart::prompt) phases.push_back(WorkloadPhase::decode);
  if (part == RequestPart::all && workload.order == PromptOrder::mixed) phases.push_back(WorkloadPhase::mixed);
  const auto applies = [&](const ScheduleKind& kind) {
    return std::all_of(phases.begin(), phases.end(), [&](WorkloadPhase phase) { return kind.is_for(phase); });
  };
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (applies(kind)) names.push_back(kind.name);
  }
  if (leaves_schedule_open(scenario)) throw scenario.error("schedule", "names one where requests are served, not auto");
  const std::string name = scenario.text("schedule");
  if (known_name(name, names) || !known_name(name, schedule_names())) return;  // what is no schedule is told later
  throw scenario.error("schedule", fmt::format("{} is not for every step of these requests ({}); there is: {}", name,
                                               fmt::join(words_of(phases), ", "), fmt::join(names, ", ")));
}

// Of steps spread over the run, those of replicas with numbers from `first` on.
ServePool checked_pool(const StepGrid& grid, int first, int replicas, const ServeLog& log) {
  constexpr std::size_t kChecked = 16;
  std::vector<const ServedStep*> steps;
  for (const ServedStep& step : log.steps) {
    if (step.replica >= first && step.replica < first + replicas) steps.push_back(&step);
  }
  ServePool pool{.setup = grid.setup(), .replicas = replicas, .shape = grid.shape()};
  pool.simulated_steps = grid.simulated();
  const std::size_t every = std::max<std::size_t>(1, steps.size() / kChecked);
  for (std::size_t i = every / 2; i < steps.size(); i += every) {
    const double exact = grid.exact_ms(steps[i]->busiest, steps[i]->mean);
    pool.steps_error = std::max(pool.steps_error, std::abs(steps[i]->ms / exact - 1));
  }
  return pool;
}

// Where prompts are computed apart, by replicas whose scenario the workload changes.
std::optional<StepGrid> prompts_apart(const Spec& scenario, std::vector<std::string> assignments, const Spec& asked,
                                      const ServeWorkload& w) {
  if (w.prefill.replicas == 0) return {};
  assignments.insert(assignments.end(), w.prefill.set.begin(), w.prefill.set.end());
  try {
    check_schedule(changed(scenario, assignments), RequestPart::prompt, w);
    return StepGrid(scenario, assignments, w, RequestPart::prompt);
  } catch (const SpecError& error) {
    throw asked.map("workload").map("prefill").error_at(w.prefill.set.empty() ? "replicas" : "set", error.reason());
  }
}

}  // namespace

bool serves(const Spec& scenario, const std::vector<std::string>& assignments) {
  return is_served(changed(scenario, assignments));
}

ServeResult serve(const Spec& scenario, const std::vector<std::string>& assignments) {
  const Spec asked = changed(scenario, assignments);
  ServeResult result{.workload = read_serve(asked.map("workload"))};
  const ServeWorkload& w = result.workload;
  const RequestPart part = w.prefill.replicas > 0 ? RequestPart::answer : RequestPart::all;
  check_schedule(asked, part, w);
  StepGrid answers(scenario, assignments, w, part);
  std::optional<StepGrid> prompts = prompts_apart(scenario, assignments, asked, w);
  const ServeDeployment deployment = deployment_of(answers, prompts ? &*prompts : nullptr, w);
  const Scenario& read = answers.setup().scenario;
  result.log = on_behalf_of(read.file, [&] { return serve_requests(w, deployment, read.seed); });
  result.measures = measure(result.log, w);
  result.answers = checked_pool(answers, 0, w.replicas, result.log);
  if (prompts) result.prompts = checked_pool(*prompts, w.replicas, w.prefill.replicas, result.log);
  return result;
}

}  // namespace moeline
