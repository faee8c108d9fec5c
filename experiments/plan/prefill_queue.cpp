#include "experiments/plan/prefill_queue.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

namespace moeline {
namespace {

constexpr double kFewestRequests = 5'000, kMostRequests = 50'000;  // requests

struct Request {
  double arrival_ms = 0;
  double tokens = 0;  // left to prefill
};

class Unit {
 public:
  Unit(const PrefillQueue& queue, const Arrivals& arrivals, std::size_t requests)
      : queue_(queue),
        arrivals_(arrivals),
        requests_(requests),
        queues_(static_cast<std::size_t>(queue.groups)),
        tokens_(queues_.size(), 0),
        least_first_(queues_.size()) {
    std::iota(least_first_.begin(), least_first_.end(), std::size_t{0});
    arrive();
  }

  // Of all requests, in the order in which they are done; of fewer, once `most_late` have taken longer than `limit_ms`.
  std::vector<double> ttfts_ms(double limit_ms, std::size_t most_late) {
    while (done_.size() < requests_ && late_ <= most_late) {
      admit();
      if (waiting_ == 0) {
        restart_clock();
        continue;
      }
      step(limit_ms);
    }
    return std::move(done_);
  }

  [[nodiscard]] double share() const { return in_steps_ms_ / (before_ms_ + now_ms_); }
  [[nodiscard]] double step_ms() const { return in_steps_ms_ / std::max(1, steps_); }

 private:
  void arrive() {
    if (came_ == requests_) {
      next_.arrival_ms = INFINITY;
      return;
    }
    next_.arrival_ms += arrivals_.gaps[came_] / queue_.requests_per_s * 1e3;
    next_.tokens = arrivals_.tokens[came_++];
  }

  // A heap whose first is the GPU with the fewest tokens, of equal ones the first: a step has changed all of them.
  void admit() {
    if (next_.arrival_ms > now_ms_) return;
    const auto more_tokens = [&](std::size_t a, std::size_t b) {
      return tokens_[a] != tokens_[b] ? tokens_[a] > tokens_[b] : a > b;
    };
    std::make_heap(least_first_.begin(), least_first_.end(), more_tokens);
    while (next_.arrival_ms <= now_ms_) {
      std::pop_heap(least_first_.begin(), least_first_.end(), more_tokens);
      const std::size_t gpu = least_first_.back();
      queues_[gpu].push_back(next_);
      tokens_[gpu] += next_.tokens;
      std::push_heap(least_first_.begin(), least_first_.end(), more_tokens);
      ++waiting_;
      arrive();
    }
  }

  // Where nobody waits, at the next arrival: a wait of milliseconds would be lost in the digits of a century's.
  void restart_clock() {
    before_ms_ += next_.arrival_ms;
    now_ms_ = next_.arrival_ms = 0;
  }

  // A prompt that does not fit into what is left of the step is cut.
  void step(double limit_ms) {
    double fullest = 0;
    std::vector<double> arrivals;  // of those done
    for (std::size_t gpu = 0; gpu < queues_.size(); ++gpu) {
      double taken = 0;
      while (!queues_[gpu].empty() && taken < queue_.tokens_per_step) {
        Request& first = queues_[gpu].front();
        const double part = std::min(first.tokens, queue_.tokens_per_step - taken);
        taken += part;
        first.tokens -= part;
        if (first.tokens > 0) break;
        arrivals.push_back(first.arrival_ms);
        queues_[gpu].pop_front();
      }
      tokens_[gpu] -= taken;
      fullest = std::max(fullest, taken);
    }
    const double step_ms = queue_.step.at(fullest);
    now_ms_ += step_ms;
    in_steps_ms_ += step_ms;
    ++steps_;
    for (const double arrival : arrivals) {
      done_.push_back(now_ms_ - arrival);
      if (done_.back() > limit_ms) ++late_;
    }
    waiting_ -= arrivals.size();
    now_ms_ += queue_.decode_ms(step_ms);
  }

  const PrefillQueue& queue_;
  const Arrivals& arrivals_;
  std::size_t requests_;
  std::vector<std::deque<Request>> queues_;  // by GPU
  std::vector<double> tokens_;               // of all requests in them
  std::vector<std::size_t> least_first_;     // GPUs
  Request next_;
  std::size_t came_ = 0, waiting_ = 0, late_ = 0;
  int steps_ = 0;
  double now_ms_ = 0, before_ms_ = 0, in_steps_ms_ = 0;
  std::vector<double> done_;
};

}  // namespace

double StepTimes::at(double tokens_of_fullest) const {
  const auto right = std::upper_bound(tokens.begin(), tokens.end(), tokens_of_fullest);
  if (right == tokens.begin()) return ms.front();
  if (right == tokens.end()) return ms.back();
  const auto i = static_cast<std::size_t>(right - tokens.begin());
  return ms[i - 1] + (ms[i] - ms[i - 1]) * (tokens_of_fullest - tokens[i - 1]) / (tokens[i] - tokens[i - 1]);
}

double PrefillQueue::decode_ms(double after_step_ms) const {
  return std::ceil(std::max(0.0, after_step_ms - spared_ms) * decode_steps_per_ms) * decode_step_ms;
}

Arrivals draw_arrivals(const Lengths& new_tokens) {
  Random random(1);
  Arrivals arrivals;
  for (int i = 0; i < kMostRequests; ++i) {
    arrivals.gaps.push_back(-std::log(1 - random.uniform()));
    arrivals.tokens.push_back(new_tokens.draw(random));
  }
  return arrivals;
}

PrefillTimes prefill_times(const PrefillQueue& queue, const Arrivals& arrivals, double percentile, double limit_ms) {
  constexpr double kSteps = 250;
  constexpr double kFirst = 0.1;  // left out: nobody was there yet
  const double per_step = queue.requests_per_s * (queue.step.ms.back() + queue.decode_ms(queue.step.ms.back())) / 1e3;
  const double requests = std::floor(std::clamp(kSteps * per_step, kFewestRequests, kMostRequests));
  Unit unit(queue, arrivals, static_cast<std::size_t>(requests));
  const double most_late = requests * (kFirst + (1 - kFirst) * (1 - percentile / 100)) + 1;
  std::vector<double> all = unit.ttfts_ms(limit_ms, static_cast<std::size_t>(most_late));
  if (static_cast<double>(all.size()) < requests) return {INFINITY, unit.share(), unit.step_ms()};
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kFirst * requests));
  const auto place = static_cast<std::ptrdiff_t>(percentile / 100 * static_cast<double>(all.size() - 1));
  std::nth_element(all.begin(), all.begin() + place, all.end());
  return {all[static_cast<std::size_t>(place)], unit.share(), unit.step_ms()};
}

}  // namespace moeline
