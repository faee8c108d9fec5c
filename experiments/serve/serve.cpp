#include "experiments/serve/serve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedules/scenario/scenario_parts.hpp"

namespace moeline {
namespace {

RequestTimes times_of(const std::vector<ServedRequest>& requests) {
  std::vector<double> queue, ttft, tpot, total;
  for (const ServedRequest& each : requests) {
    queue.push_back(each.begin_ms - each.arrival_ms);
    ttft.push_back(each.ttft_ms());
    if (each.output_len > 1) tpot.push_back((each.end_ms - each.first_token_ms) / (each.output_len - 1));
    total.push_back(each.end_ms - each.arrival_ms);
  }
  return {requests.size(), quantiles_of(queue), quantiles_of(ttft), quantiles_of(tpot), quantiles_of(total)};
}

// From the first end to the last arrival: neither does the system fill, nor does it drain.
struct Window {
  double begin_ms = 0, end_ms = 0;
  [[nodiscard]] bool has(double at_ms) const { return at_ms >= begin_ms && at_ms <= end_ms; }
};

Window steady_window(const ServeLog& log) {
  double first_end = log.end_ms;
  for (const ServedRequest& each : log.requests) first_end = std::min(first_end, each.end_ms);
  const double last_arrival = log.requests.back().arrival_ms;
  return last_arrival > first_end ? Window{first_end, last_arrival} : Window{0, log.end_ms};
}

std::vector<ServedRequest> that_arrive(const ServeLog& log, const Window& window) {
  std::vector<ServedRequest> requests;
  std::copy_if(log.requests.begin(), log.requests.end(), std::back_inserter(requests),
               [&](const ServedRequest& each) { return window.has(each.arrival_ms); });
  return requests;
}

// Of a stay from one instant to another, what lies in the window, in ms.
double within(double from, double to, const Window& window) {
  return std::max(0.0, std::min(to, window.end_ms) - std::max(from, window.begin_ms));
}

void measure_window(const Window& window, ServeResult& result) {
  const double length = window.end_ms - window.begin_ms;
  double waiting = 0, running = 0, prompts = 0, answers = 0, prompt_tokens = 0;
  for (const ServedRequest& each : result.log.requests) {
    waiting += within(each.arrival_ms, each.begin_ms, window);
    running += within(each.begin_ms, each.end_ms, window);
    const double decode_ms = each.end_ms - each.first_token_ms;
    const double decoded = decode_ms > 0 ? within(each.first_token_ms, each.end_ms, window) / decode_ms : 0;
    answers += decoded * (each.output_len - 1) + (window.has(each.first_token_ms) ? 1 : 0);
    const double prefill_ms = each.first_token_ms - each.begin_ms;
    prompt_tokens += within(each.begin_ms, each.first_token_ms, window) / prefill_ms * each.new_tokens();
  }
  for (const ServedStep& step : result.log.steps) {
    if (step.load.prompts > 0) prompts += within(step.start_ms, step.start_ms + step.ms, window);
  }
  result.mean_waiting = waiting / length;
  result.mean_running = running / length;
  result.prompt_share = prompts / length;
  const double gpu_s = length / 1e3 * static_cast<double>(result.setup.scenario.parallelism.world());
  result.output_tokens_per_s = answers / gpu_s;
  result.total_tokens_per_s = (answers + prompt_tokens) / gpu_s;
}

// Of steps spread over the run.
double interpolation_error(const ServeLog& log, StepGrid& times) {
  constexpr std::size_t kChecked = 16;
  double worst = 0;
  const std::size_t every = std::max<std::size_t>(1, log.steps.size() / kChecked);
  for (std::size_t i = every / 2; i < log.steps.size(); i += every) {
    worst = std::max(worst, std::abs(log.steps[i].ms / times.exact_ms(log.steps[i].load) - 1));
  }
  return worst;
}

Spec changed(Spec scenario, const std::vector<std::string>& assignments) {
  (void)apply_changes(assignments, scenario);  // of hardware none is in the workload
  return scenario;
}

// Of every kind of step.
void check_schedule(const Spec& scenario) {
  const std::string name = scenario.text("schedule");
  const auto applies = [](const ScheduleKind& kind) {
    return kind.is_for(WorkloadPhase::prefill) && kind.is_for(WorkloadPhase::decode) &&
           kind.is_for(WorkloadPhase::mixed);
  };
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (applies(kind)) names.push_back(kind.name);
  }
  if (known_name(name, names) || !known_name(name, schedule_names())) return;  // what is no schedule is told later
  throw scenario.error("schedule",
                       fmt::format("{} is not for every step of requests: prompts, answers, both; there is: {}", name,
                                   fmt::join(names, ", ")));
}

}  // namespace

Quantiles quantiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  // The least value that so large a share of all does not exceed.
  const auto at = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(rank, 1) - 1];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {at(0.5), at(0.9), at(0.99), sum / static_cast<double>(values.size())};
}

bool serves(const Spec& scenario, const std::vector<std::string>& assignments) {
  return is_served(changed(scenario, assignments));
}

ServeResult serve(const Spec& scenario, const std::vector<std::string>& assignments) {
  ServeResult result;
  const Spec asked = changed(scenario, assignments);
  result.workload = read_serve(asked.map("workload"));
  check_schedule(asked);
  StepGrid times(scenario, assignments);
  result.setup = times.setup();
  result.shape = times.shape();
  const StepMs step_ms = [&](const StepLoad& load) { return times.ms(load); };
  result.log = on_behalf_of(result.setup.scenario.file, [&] {
    return serve_requests(result.workload, result.shape, step_ms, result.setup.scenario.seed);
  });
  const Window window = steady_window(result.log);
  result.steady = times_of(that_arrive(result.log, window));
  const int together = std::min(result.workload.concurrency, result.workload.requests);
  const auto first = result.log.requests.begin();
  if (together > 0) result.first = times_of({first, first + together});
  measure_window(window, result);
  result.simulated_steps = times.simulated();
  result.interpolation_error = interpolation_error(result.log, times);
  return result;
}

}  // namespace moeline
