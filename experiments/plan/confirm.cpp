#include "experiments/plan/confirm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/plan/points.hpp"
#include "experiments/serve/schedulers.hpp"
#include "experiments/serve/step_grids.hpp"

namespace moeline {
namespace {

// Drawn once, and asked for in turn.
std::vector<TracedRequest> requests_of(const Demand& traffic, int count) {
  Random input(1, 0), output(1, 1);
  const auto whole = [](double length) { return std::max(1, static_cast<int>(std::lround(length))); };
  std::vector<TracedRequest> requests;
  for (int i = 0; i < count; ++i) {
    Asked asked;
    asked.input_len = whole(traffic.input.draw(input));
    asked.cached_len = std::min(asked.input_len - 1, static_cast<int>(asked.input_len * traffic.cache_hit_share));
    asked.output_len = whole(traffic.output.draw(output));
    requests.push_back({0, asked});
  }
  return requests;
}

ServeWorkload workload_of(const Plan& plan, const Deployment& deployment) {
  constexpr double kTimesInFlight = 6, kMost = 1e6;
  constexpr int kFewest = 2000;
  const double in_flight =
      plan.traffic.requests_per_s * (deployment.ttft_ms + plan.traffic.output.mean() * deployment.tpot_ms) / 1e3;
  ServeWorkload w;
  w.requests = std::max(kFewest, static_cast<int>(std::min(kMost, kTimesInFlight * in_flight)));
  w.trace = requests_of(plan.traffic, w.requests);
  w.rates = {plan.traffic.requests_per_s};
  w.tokens = deployment.prefill_choice.tokens;
  w.batch_size = deployment.decode_choice.batch_size;
  w.replicas = deployment.decode.units;
  w.prefill.replicas = deployment.prefill.units;
  w.query_len = 1 + deployment.decode_choice.mtp;
  w.acceptance.assign(static_cast<std::size_t>(deployment.decode_choice.mtp), plan.decode.mtp_acceptance);
  return w;
}

StepGrids grid_of(const Plan& plan, const Points::Question& question, const ServeWorkload& workload, RequestPart part) {
  return {Spec::parse(plan.file.string(), question.scenario), question.set, workload, part};
}

Confirmation confirmation_of(const ServeLog& log, const ServeWorkload& workload, double percentile) {
  Confirmation confirmation{.requests = workload.requests, .measures = measure(log, workload)};
  std::vector<double> ttft, tpot;
  for (const ServedRequest& each : steady_requests(log)) {
    ttft.push_back(each.ttft_ms());
    tpot.push_back(each.tpot_ms());
  }
  std::sort(ttft.begin(), ttft.end());
  std::sort(tpot.begin(), tpot.end());
  confirmation.ttft_ms = ranked(ttft, percentile / 100);
  confirmation.tpot_ms = ranked(tpot, percentile / 100);
  return confirmation;
}

// What a step holds is the plan's; who begins, who loses his cache and who gets a request is as the stack has it.
ServeWorkload as_stack_has_it(ServeWorkload w, const Setup& setup) {
  const ServeWorkload rules = by_its_stack(w, setup);
  w.scheduler = rules.scheduler;
  w.room = rules.room;
  w.router = rules.router;
  return w;
}

Confirmation confirm_apart(const Plan& plan, const Deployment& deployment, const Points& points,
                           const Progress& progress) {
  const PrefillChoice& prefill = deployment.prefill_choice;
  ServeWorkload w = workload_of(plan, deployment);
  StepGrids answers = grid_of(plan, points.question(deployment.decode_choice), w, RequestPart::answer);
  StepGrids prompts = grid_of(plan, points.question(prefill, points.part(prefill.tokens)), w, RequestPart::prompt);
  w = as_stack_has_it(w, answers.base().setup());
  const ServeDeployment all = deployment_of(answers, &prompts, w);
  return confirmation_of(serve_requests(w, all, 1, progress), w, plan.limits.percentile);
}

// Steps with prompts, of their own or with answers, as soon as there are some.
Confirmation confirm_colocated(const Plan& plan, const Deployment& deployment, const Points& points,
                               const Progress& progress) {
  const PrefillChoice& prefill = deployment.prefill_choice;
  const PromptPart part = points.part(prefill.tokens);
  ServeWorkload w = workload_of(plan, deployment);
  w.order = deployment.mixed ? PromptOrder::mixed : PromptOrder::first;
  if (deployment.mixed) w.tokens += w.batch_size * w.query_len;  // the plan's are of prompts alone
  w.prefill.replicas = 0;
  StepGrids answers = grid_of(plan, points.question(deployment.decode_choice), w, RequestPart::answer);
  StepGrids prompts = grid_of(
      plan,
      deployment.mixed ? points.question(prefill, deployment.decode_choice, part) : points.question(prefill, part), w,
      RequestPart::prompt);
  w = as_stack_has_it(w, answers.base().setup());
  ServeDeployment all = deployment_of(answers, nullptr, w);
  all.answers.shape.kv_tokens = deployment.decode.memory.room / (1e6 * answers.base().token_MB());  // beside both sides
  all.answers.step = [&](StepLoad busiest, const StepLoad& mean, const StepState& /*state*/) {
    busiest.apart = false;  // the grid of prompts has no steps of answers alone
    return (busiest.prompts > 0 ? prompts : answers).base().time(busiest, mean);
  };
  return confirmation_of(serve_requests(w, all, 1, progress), w, plan.limits.percentile);
}

}  // namespace

Confirmation confirm(const Plan& plan, const Deployment& deployment, const Progress& progress) {
  KnownSteps known;
  const Points points(plan, machine_named(plan, deployment.decode_choice.hardware), known);
  return deployment.colocated ? confirm_colocated(plan, deployment, points, progress)
                              : confirm_apart(plan, deployment, points, progress);
}

}  // namespace moeline
