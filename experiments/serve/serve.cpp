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

// A pool of replicas, and what its steps take.
struct Steps {
  StepGrid grid;
  ServePool pool;

  Steps(const Spec& scenario, const std::vector<std::string>& assignments, const ServeWorkload& workload,
        RequestPart part, int replicas)
      : grid(scenario, assignments, workload, part),
        pool{.setup = grid.setup(), .replicas = replicas, .shape = grid.shape()} {}

  [[nodiscard]] ReplicaPool simulated() {
    return {.replicas = pool.replicas,
            .shape = pool.shape,
            .step_ms = [this](const StepLoad& busiest, const StepLoad& mean) { return grid.ms(busiest, mean); }};
  }

  // Of steps spread over the run, those of replicas with these numbers.
  void check(const ServeLog& log, int from, int to) {
    constexpr std::size_t kChecked = 16;
    std::vector<const ServedStep*> steps;
    for (const ServedStep& step : log.steps) {
      if (step.replica >= from && step.replica < to) steps.push_back(&step);
    }
    pool.simulated_steps = grid.simulated();
    const std::size_t every = std::max<std::size_t>(1, steps.size() / kChecked);
    for (std::size_t i = every / 2; i < steps.size(); i += every) {
      const double exact = grid.exact_ms(steps[i]->busiest, steps[i]->mean);
      pool.steps_error = std::max(pool.steps_error, std::abs(steps[i]->ms / exact - 1));
    }
  }
};

}  // namespace

bool serves(const Spec& scenario, const std::vector<std::string>& assignments) {
  return is_served(changed(scenario, assignments));
}

ServeResult serve(const Spec& scenario, const std::vector<std::string>& assignments) {
  const Spec asked = changed(scenario, assignments);
  ServeResult result{.workload = read_serve(asked.map("workload"))};
  const ServeWorkload& w = result.workload;
  const bool apart = w.prefill.replicas > 0;
  const RequestPart of_answers = apart ? RequestPart::answer : RequestPart::all;
  check_schedule(asked, of_answers, w);
  Steps answers(scenario, assignments, w, of_answers, w.replicas);
  std::optional<Steps> prompts;
  ServeDeployment deployment{.answers = answers.simulated()};
  if (apart) {
    std::vector<std::string> set = assignments;
    set.insert(set.end(), w.prefill.set.begin(), w.prefill.set.end());
    try {
      check_schedule(changed(scenario, set), RequestPart::prompt, w);
      prompts.emplace(scenario, set, w, RequestPart::prompt, w.prefill.replicas);
    } catch (const SpecError& error) {
      throw asked.map("workload").map("prefill").error_at(w.prefill.set.empty() ? "replicas" : "set", error.reason());
    }
    deployment.prompts = prompts->simulated();
    deployment.transfer_ms = [&](double tokens, const StepLoad& from, const StepLoad& to) {
      return std::max(prompts->grid.transfer_ms(tokens, from), answers.grid.transfer_ms(tokens, to));
    };
  }
  const Scenario& read = answers.pool.setup.scenario;
  result.log = on_behalf_of(read.file, [&] { return serve_requests(w, deployment, read.seed); });
  result.measures = measure(result.log, w);
  answers.check(result.log, 0, w.replicas);
  if (prompts) prompts->check(result.log, w.replicas, w.replicas + w.prefill.replicas);
  result.answers = std::move(answers.pool);
  if (prompts) result.prompts = std::move(prompts->pool);
  return result;
}

}  // namespace moeline
