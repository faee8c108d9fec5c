#include "experiments/serve/measures.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moeline {
namespace {

WhereTimeWent where_of(const std::vector<ServedRequest>& requests) {
  WhereTimeWent sum;
  for (const ServedRequest& each : requests) {
    sum.queue += each.begin_ms - each.arrival_ms;
    sum.prefill += each.computed_ms() - each.begin_ms;
    sum.slot += each.slot_ms;
    sum.transfer += each.transfer_ms;
    sum.stalled += each.stalled_ms;
    sum.beside += each.beside_ms;
    sum.decode += each.end_ms - each.first_token_ms - each.stalled_ms - each.beside_ms;
  }
  for (double* each : {&sum.queue, &sum.prefill, &sum.slot, &sum.transfer, &sum.stalled, &sum.beside, &sum.decode}) {
    *each /= static_cast<double>(std::max<std::size_t>(1, requests.size()));
  }
  return sum;
}

// From the first end to the last arrival: neither does the system fill, nor does it drain.
struct Window {
  double begin_ms = 0, end_ms = 0;
  [[nodiscard]] bool has(double at_ms) const { return at_ms >= begin_ms && at_ms <= end_ms; }
};

std::vector<ServedRequest> that_arrive(const ServeLog& log, const Window& window) {
  std::vector<ServedRequest> requests;
  std::copy_if(log.requests.begin(), log.requests.end(), std::back_inserter(requests),
               [&](const ServedRequest& each) { return window.has(each.arrival_ms); });
  return requests;
}

// Mean TPOT of those that come later over that of the earlier, - 1, and what chance makes of it (two standard errors).
struct HalvesDiffer {
  double by = 0, chance = 0;
};

HalvesDiffer halves_differ(const std::vector<ServedRequest>& by_arrival) {
  double sums[2] = {0, 0}, counts[2] = {0, 0}, squares = 0;
  for (std::size_t i = 0; i < by_arrival.size(); ++i) {
    const std::size_t half = 2 * i / by_arrival.size();
    if (by_arrival[i].output_len < 2) continue;
    sums[half] += by_arrival[i].tpot_ms();
    squares += by_arrival[i].tpot_ms() * by_arrival[i].tpot_ms();
    ++counts[half];
  }
  if (counts[0] == 0 || counts[1] == 0 || sums[0] == 0) return {};
  const double all = counts[0] + counts[1], mean = (sums[0] + sums[1]) / all;
  const double variance = std::max(0.0, squares / all - mean * mean);
  return {sums[1] / counts[1] / (sums[0] / counts[0]) - 1,
          2 * std::sqrt(variance * (1 / counts[0] + 1 / counts[1])) / mean};
}

// From the first end on, or later where the first ones are not as those behind them: up to the half of them are
// warm-up.
Window steady_window(const ServeLog& log) {
  constexpr double kAlike = 0.02;
  constexpr int kTenths = 10, kMostTenths = 5;
  double first_end = log.end_ms;
  for (const ServedRequest& each : log.requests) first_end = std::min(first_end, each.end_ms);
  const double last_arrival = log.requests.back().arrival_ms;
  if (last_arrival <= first_end) return {0, log.end_ms};
  Window best{first_end, last_arrival};
  const std::vector<ServedRequest> all = that_arrive(log, best);
  const auto excess = [=](const HalvesDiffer& differ) { return std::abs(differ.by) - std::max(kAlike, differ.chance); };
  double least = excess(halves_differ(all));
  for (std::size_t tenths = 1; tenths <= kMostTenths && least > 0; ++tenths) {
    const Window later{all[tenths * all.size() / kTenths].arrival_ms, last_arrival};
    const double excess_later = excess(halves_differ(that_arrive(log, later)));
    if (excess_later < least) best = later, least = excess_later;
  }
  return best;
}

// Of a stay from one instant to another, what lies in the window, in ms.
double within(double from, double to, const Window& window) {
  return std::max(0.0, std::min(to, window.end_ms) - std::max(from, window.begin_ms));
}

void add_rates(const ServeLog& log, const Window& window, ServeMeasures& m) {
  const double length = window.end_ms - window.begin_ms;
  double waiting = 0, running = 0, answers = 0, prompt_tokens = 0;
  for (const ServedRequest& each : log.requests) {
    waiting += within(each.arrival_ms, each.begin_ms, window);
    running += within(each.begin_ms, each.end_ms, window);
    const double decode_ms = each.end_ms - each.first_token_ms;
    const double decoded = decode_ms > 0 ? within(each.first_token_ms, each.end_ms, window) / decode_ms : 0;
    answers += decoded * (each.output_len - 1) + (window.has(each.first_token_ms) ? 1 : 0);
    const double prefill_ms = each.first_token_ms - each.begin_ms;
    prompt_tokens += within(each.begin_ms, each.first_token_ms, window) / prefill_ms * each.new_tokens();
  }
  m.mean_waiting = waiting / length;
  m.mean_running = running / length;
  m.output_tokens_per_s = answers / length * 1e3;
  m.total_tokens_per_s = (answers + prompt_tokens) / length * 1e3;
}

bool is_good(const ServedRequest& request, const ServeLimits& limits) {
  return (limits.ttft_ms == 0 || request.ttft_ms() <= limits.ttft_ms) &&
         (limits.tpot_ms == 0 || request.tpot_ms() <= limits.tpot_ms);
}

void add_goodput(const std::vector<ServedRequest>& requests, const ServeLimits& limits, ServeMeasures& m) {
  double good = 0, good_tokens = 0, tokens = 0;
  for (const ServedRequest& each : requests) {
    const bool is = is_good(each, limits);
    good += is ? 1 : 0;
    good_tokens += is ? each.output_len : 0;
    tokens += each.output_len;
  }
  m.good_share = good / static_cast<double>(requests.size());
  m.good_output_tokens_per_s = m.output_tokens_per_s * good_tokens / tokens;
}

double prompt_share(const ServeLog& log, const Window& window) {
  double prompts = 0, all = 0;
  for (const ServedStep& step : log.steps) {
    const double ms = within(step.start_ms, step.start_ms + step.ms, window);
    all += ms;
    prompts += step.busiest.prompts > 0 ? ms : 0;
  }
  return all > 0 ? prompts / all : 0;
}

double padding_share(const ServeLog& log, const Window& window) {
  double padding = 0, all = 0;
  for (const ServedStep& step : log.steps) {
    if (step.busiest.prompts > 0 || step.start_ms < window.begin_ms || step.start_ms >= window.end_ms) continue;
    const double rows = step.graph_batch > 0 ? step.graph_batch : step.mean.answers;
    padding += rows - step.mean.answers;
    all += rows;
  }
  return all > 0 ? padding / all : 0;
}

// Steps of the whole run: what holds requests back does so while they come faster than they go.
HeldBack held_back_by(const ServeLog& log) {
  double by_cache = 0, by_limit = 0;  // ms
  for (const ServedStep& step : log.steps) {
    if (step.held_back == HeldBack::cache) by_cache += step.ms;
    if (step.held_back == HeldBack::batch_limit) by_limit += step.ms;
  }
  if (by_cache == 0 && by_limit == 0) return HeldBack::nothing;
  return by_cache >= by_limit ? HeldBack::cache : HeldBack::batch_limit;
}

double most_running(const ServeLog& log) {
  double most = 0;
  for (const ServedStep& step : log.steps) most = std::max(most, step.busiest.answers);
  return most;
}

double mean_replicas_on(const ServeLog& log, const Window& window) {
  double sum = 0;
  for (const ReplicasOn& each : log.replicas_on) sum += each.replicas * within(each.from_ms, each.to_ms, window);
  return sum / (window.end_ms - window.begin_ms);
}

double weighted(const std::vector<TokenGap>& ascending, double all, double share) {
  double sum = 0;
  for (const TokenGap& each : ascending) {
    sum += each.answers;
    if (sum >= share * all) return each.ms;
  }
  return 0;
}

Quantiles quantiles_of_gaps(std::vector<TokenGap> gaps) {
  std::sort(gaps.begin(), gaps.end(), [](const TokenGap& a, const TokenGap& b) { return a.ms < b.ms; });
  double all = 0, sum = 0;
  for (const TokenGap& each : gaps) {
    all += each.answers;
    sum += each.ms * each.answers;
  }
  return {weighted(gaps, all, 0.5), weighted(gaps, all, 0.9), weighted(gaps, all, 0.99), all > 0 ? sum / all : 0};
}

BenchFigures bench_figures(const ServeLog& log) {
  const RequestTimes times = times_of(log.requests);
  double input = 0, output = 0;
  for (const ServedRequest& each : log.requests) {
    input += each.input_len;
    output += each.output_len;
  }
  const double s = (log.end_ms - log.requests.front().arrival_ms) / 1e3;
  return {.duration_s = s,
          .request_throughput = static_cast<double>(log.requests.size()) / s,
          .output_throughput = output / s,
          .total_token_throughput = (input + output) / s,
          .ttft_ms = times.ttft_ms,
          .tpot_ms = times.tpot_ms,
          .itl_ms = quantiles_of_gaps(log.gaps),
          .e2el_ms = times.total_ms};
}

}  // namespace

double ranked(const std::vector<double>& ascending, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(ascending.size())));
  return ascending[std::max<std::size_t>(rank, 1) - 1];
}

Quantiles quantiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {ranked(values, 0.5), ranked(values, 0.9), ranked(values, 0.99), sum / static_cast<double>(values.size())};
}

RequestTimes times_of(const std::vector<ServedRequest>& requests) {
  std::vector<double> queue, ttft, tpot, total;
  for (const ServedRequest& each : requests) {
    queue.push_back(each.begin_ms - each.arrival_ms);
    ttft.push_back(each.ttft_ms());
    if (each.output_len > 1) tpot.push_back(each.tpot_ms());
    total.push_back(each.end_ms - each.arrival_ms);
  }
  return {requests.size(), quantiles_of(queue), quantiles_of(ttft), quantiles_of(tpot), quantiles_of(total)};
}

std::vector<ServedRequest> steady_requests(const ServeLog& log) { return that_arrive(log, steady_window(log)); }

ServeMeasures measure(const ServeLog& log, const ServeWorkload& workload) {
  ServeMeasures m;
  const Window window = steady_window(log);
  const std::vector<ServedRequest> steady = that_arrive(log, window);
  m.steady = times_of(steady);
  m.where = where_of(steady);
  m.halves_differ = halves_differ(steady).by;
  m.bench = bench_figures(log);
  const auto together = static_cast<std::ptrdiff_t>(std::min(workload.concurrency, workload.requests));
  if (together > 0) m.first = times_of({log.requests.begin(), log.requests.begin() + together});
  add_rates(log, window, m);
  m.held_back_by = held_back_by(log);
  m.most_running = most_running(log);
  m.prompt_share = prompt_share(log, window);
  m.padding_share = padding_share(log, window);
  double cached = 0, prompts = 0;
  for (const ServedRequest& each : log.requests) {
    cached += each.cached_len;
    prompts += each.input_len;
    m.restarts += each.restarts;
    m.retries += each.retries;
  }
  m.cached_share = cached / prompts;
  for (const ServedStep& step : log.steps) {
    m.rebalancings += step.placed_anew ? 1 : 0;
    m.paused_ms += step.paused_ms;
  }
  m.mean_replicas_on = mean_replicas_on(log, window);
  add_goodput(steady, workload.limits, m);
  return m;
}

namespace {

class Slices {
 public:
  Slices(double begin_ms, double end_ms, int count)
      : begin_ms_(begin_ms), length_ms_((end_ms - begin_ms) / count), slices_(static_cast<std::size_t>(count)) {
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      slices_[i].begin_ms = begin_ms + static_cast<double>(i) * length_ms_;
      slices_[i].end_ms = slices_[i].begin_ms + length_ms_;
    }
  }

  [[nodiscard]] std::size_t at(double ms) const {
    const auto index = static_cast<std::size_t>((ms - begin_ms_) / length_ms_);
    return std::min(index, slices_.size() - 1);
  }
  [[nodiscard]] double length_ms() const { return length_ms_; }

  // `amount` evenly from one instant to another.
  void spread(double from_ms, double to_ms, double amount, double ServeSlice::*sum) {
    if (to_ms <= std::max(from_ms, begin_ms_)) return;
    for (std::size_t i = at(std::max(from_ms, begin_ms_)); i <= at(to_ms); ++i) {
      const double inside = std::min(to_ms, slices_[i].end_ms) - std::max(from_ms, slices_[i].begin_ms);
      slices_[i].*sum += amount * std::max(0.0, inside) / (to_ms - from_ms);
    }
  }

  std::vector<ServeSlice>& all() { return slices_; }

 private:
  double begin_ms_, length_ms_;
  std::vector<ServeSlice> slices_;
};

}  // namespace

std::vector<ServeSlice> time_series(const ServeLog& log, int count) {
  Slices slices(log.requests.front().arrival_ms, log.end_ms, count);
  std::vector<std::vector<double>> ttft(slices.all().size()), tpot(slices.all().size());
  const double per_s = 1e3 / slices.length_ms();
  for (const ServedRequest& each : log.requests) {
    const std::size_t at = slices.at(each.arrival_ms);
    slices.all()[at].arrivals_per_s += per_s;
    ttft[at].push_back(each.ttft_ms());
    if (each.output_len > 1) tpot[at].push_back(each.tpot_ms());
    const double waits_ms = each.begin_ms - each.arrival_ms, runs_ms = each.end_ms - each.begin_ms;
    slices.spread(each.arrival_ms, each.begin_ms, waits_ms / slices.length_ms(), &ServeSlice::waiting);
    slices.spread(each.begin_ms, each.end_ms, runs_ms / slices.length_ms(), &ServeSlice::running);
    slices.all()[slices.at(each.first_token_ms)].output_tokens_per_s += per_s;
    slices.spread(each.first_token_ms, each.end_ms, (each.output_len - 1) * per_s, &ServeSlice::output_tokens_per_s);
  }
  for (const auto& [from, to, replicas] : log.replicas_on) {
    slices.spread(from, to, replicas * (to - from) / slices.length_ms(), &ServeSlice::replicas_on);
  }
  for (std::size_t i = 0; i < ttft.size(); ++i) {
    const Quantiles first = quantiles_of(std::move(ttft[i]));
    slices.all()[i].ttft_p50_ms = first.p50;
    slices.all()[i].ttft_p99_ms = first.p99;
    slices.all()[i].tpot_p50_ms = quantiles_of(std::move(tpot[i])).p50;
  }
  return std::move(slices.all());
}

}  // namespace moeline
