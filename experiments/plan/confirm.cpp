#include "experiments/plan/confirm.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/plan/points.hpp"
#include "experiments/serve/step_grid.hpp"

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

StepGrid grid_of(const Plan& plan, const Points::Question& question, const ServeWorkload& workload, RequestPart part) {
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

}  // namespace

std::optional<Confirmation> confirm(const Plan& plan, const Deployment& deployment) {
  if (deployment.colocated) return {};
  const auto machine = std::find_if(plan.hardware.begin(), plan.hardware.end(), [&](const PlanHardware& each) {
    return each.name == deployment.decode_choice.hardware;
  });
  KnownSteps known;
  const Points points(plan, *machine, known);
  const ServeWorkload w = workload_of(plan, deployment);
  StepGrid answers = grid_of(plan, points.question(deployment.decode_choice), w, RequestPart::answer);
  StepGrid prompts = grid_of(plan, points.question(deployment.prefill_choice, w.tokens), w, RequestPart::prompt);
  const ServeDeployment all = deployment_of(answers, &prompts, w, plan.memory_reserve);
  return confirmation_of(serve_requests(w, all, 1), w, plan.limits.percentile);
}

}  // namespace moeline
