#include "experiments/serve/serve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "experiments/serve/schedulers.hpp"
#include "routing/load_file.hpp"
#include "schedules/scenario/read_scenario.hpp"

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
ServePool checked_pool(StepGrids& grids, int first, int replicas, const ServeLog& log) {
  const bool dear = grids.base().setup().every_rank;
  const std::size_t most_checked = dear ? 4 : 16, most_middles = dear ? 4 : 32;
  std::vector<const ServedStep*> steps;
  for (const ServedStep& step : log.steps) {
    if (step.replica >= first && step.replica < first + replicas) steps.push_back(&step);
  }
  ServePool pool{.setup = grids.base().setup(), .replicas = replicas, .shape = grids.shape(), .memory = grids.memory()};
  pool.simulated_steps = grids.simulated();
  pool.known = grids.known_time();
  pool.middles_error = grids.error_in_middles(most_middles);
  const std::size_t every = std::max<std::size_t>(1, steps.size() / most_checked);
  std::vector<const ServedStep*> checked;
  for (std::size_t i = every / 2; i < steps.size(); i += every) checked.push_back(steps[i]);
  std::vector<double> errors(checked.size());
  parallel_for(checked.size(), cores(), [&](std::size_t i) {
    const ServedStep& step = *checked[i];
    errors[i] = std::abs((step.ms - step.paused_ms) / grids.known(step.state).exact_ms(step.busiest, step.mean) - 1);
  });
  for (const double error : errors) pool.steps_error = std::max(pool.steps_error, error);
  return pool;
}

// What is wrong with them is said where the workload describes them.
template <class Make>
auto of_prefill_pool(const Spec& asked, const ServeWorkload& w, const Make& make) {
  try {
    return make();
  } catch (const SpecError& error) {
    throw asked.map("workload").map("prefill").error_at(w.prefill.set.empty() ? "replicas" : "set", error.reason());
  }
}

std::vector<std::string> of_prompts(std::vector<std::string> assignments, const ServeWorkload& w) {
  assignments.insert(assignments.end(), w.prefill.set.begin(), w.prefill.set.end());
  return assignments;
}

// Where prompts are computed apart, by replicas whose scenario the workload changes.
std::optional<StepGrids> prompts_apart(const Spec& scenario, const std::vector<std::string>& assignments,
                                       const Spec& asked, const ServeWorkload& w) {
  if (w.prefill.replicas == 0) return {};
  return of_prefill_pool(asked, w, [&] {
    return std::make_optional<StepGrids>(scenario, of_prompts(assignments, w), w, RequestPart::prompt);
  });
}

// Of a step of those that compute prompts.
Setup prompt_setup(const Spec& asked, const Spec& scenario, const std::vector<std::string>& assignments,
                   const ServeWorkload& w) {
  if (w.prefill.replicas == 0) return StepGrid(scenario, assignments, w, RequestPart::all).setup();
  return of_prefill_pool(asked, w, [&] {
    const std::vector<std::string> changes = of_prompts(assignments, w);
    check_schedule(changed(scenario, changes), RequestPart::prompt, w);
    return StepGrid(scenario, changes, w, RequestPart::prompt).setup();
  });
}

// With what it leaves to the scheduler.
ServeResult completed(ServeWorkload said, const Spec& workload, const Setup& setup) {
  ServeResult result{.workload = std::move(said)};
  ServeWorkload& w = result.workload;
  if (!workload.has("scheduler")) w.scheduler = scheduler_of(setup);
  for (const SchedulerDefault& each : scheduler_defaults(w, setup)) {
    if (workload.has(each.key)) continue;
    take(each, w);
    result.defaults.push_back(each);
  }
  if (workload.has("schedule_conservativeness") && w.room != KvRoom::share) {
    throw workload.error("schedule_conservativeness", "belongs to kv_room: share");
  }
  return result;
}

// Whose time steps are those of the scenario's file of loads.
void complete_loads(const Spec& asked, const Setup& setup, LoadCourse& course) {
  if (course.step_ms == 0) return;
  const Spec loads = asked.map("workload").map("loads");
  const Routing& routing = setup.scenario.routing;
  if (routing.distribution != Distribution::file) {
    throw loads.error("step_s", "needs routing of the distribution file, with a column `step`");
  }
  course.places = routing.placement == PlacementRule::eplb;
  if (course.rebalance_every > 0 && !course.places) {
    throw loads.error("rebalance_every", "needs routing of the placement eplb");
  }
  if (routing.step >= 0 || routing.placed_before >= 0) {
    throw asked.map("routing").error(routing.step >= 0 ? "step" : "placed_before", "does not go with workload.loads");
  }
  course.steps = read_load_file(beside(setup.scenario.file, routing.file)).steps;
  if (course.steps.size() == 1) throw loads.error("step_s", "does not apply: the file of loads has one time step");
}

}  // namespace

bool serves(const Spec& scenario, const std::vector<std::string>& assignments) {
  return is_served(changed(scenario, assignments));
}

ServeResult serve(const Spec& scenario, const std::vector<std::string>& assignments, const Progress& progress) {
  const Spec asked = changed(scenario, assignments);
  ServeWorkload said = read_serve(asked.map("workload"));
  const RequestPart part = said.prefill.replicas > 0 ? RequestPart::answer : RequestPart::all;
  check_schedule(asked, part, said);
  const Setup setup = prompt_setup(asked, scenario, assignments, said);
  ServeResult result = completed(std::move(said), asked.map("workload"), setup);
  ServeWorkload& w = result.workload;
  StepGrids answers(scenario, assignments, w, part);
  complete_loads(asked, answers.base().setup(), w.loads);
  std::optional<StepGrids> prompts = prompts_apart(scenario, assignments, asked, w);
  const ServeDeployment deployment = deployment_of(answers, prompts ? &*prompts : nullptr, w);
  const Scenario& read = answers.base().setup().scenario;
  result.log = on_behalf_of(read.file, [&] { return serve_requests(w, deployment, read.seed, progress); });
  result.measures = measure(result.log, w);
  result.answers = checked_pool(answers, 0, w.replicas, result.log);
  if (prompts) result.prompts = checked_pool(*prompts, w.replicas, w.prefill.replicas, result.log);
  return result;
}

}  // namespace moeline
