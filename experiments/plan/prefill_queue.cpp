#include "experiments/plan/prefill_queue.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

namespace moeline {
namespace {

struct Request {
  double arrival_ms = 0;
  double tokens = 0;  // left to prefill
};

struct Gpu {
  std::deque<Request> queue;
  double tokens = 0;  // of all of them
};

class Unit {
 public:
  Unit(const PrefillQueue& queue, const Lengths& new_tokens, std::size_t requests)
      : queue_(queue), new_tokens_(new_tokens), requests_(requests), gpus_(static_cast<std::size_t>(queue.gpus)) {
    arrive();
  }

  // Of all requests, in the order in which they are done.
  std::vector<double> ttfts_ms() {
    while (done_.size() < requests_) {
      admit();
      if (waiting_ == 0) {
        restart_clock();
        continue;
      }
      step();
    }
    return std::move(done_);
  }

  [[nodiscard]] double share() const { return in_steps_ms_ / (before_ms_ + now_ms_); }

 private:
  void arrive() {
    if (drawn_ == requests_) {
      next_.arrival_ms = INFINITY;
      return;
    }
    ++drawn_;
    next_.arrival_ms -= std::log(1 - random_.uniform()) / queue_.requests_per_s * 1e3;
    next_.tokens = new_tokens_.draw(random_);
  }

  void admit() {
    while (next_.arrival_ms <= now_ms_) {
      Gpu& gpu =
          *std::min_element(gpus_.begin(), gpus_.end(), [](const Gpu& a, const Gpu& b) { return a.tokens < b.tokens; });
      gpu.queue.push_back(next_);
      gpu.tokens += next_.tokens;
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
  void step() {
    double fullest = 0;
    std::vector<double> arrivals;  // of those done
    for (Gpu& gpu : gpus_) {
      double taken = 0;
      while (!gpu.queue.empty() && taken < queue_.tokens_per_step) {
        Request& first = gpu.queue.front();
        const double part = std::min(first.tokens, queue_.tokens_per_step - taken);
        taken += part;
        first.tokens -= part;
        if (first.tokens > 0) break;
        arrivals.push_back(first.arrival_ms);
        gpu.queue.pop_front();
      }
      gpu.tokens -= taken;
      fullest = std::max(fullest, taken);
    }
    const double step_ms = queue_.step.at(fullest);
    now_ms_ += step_ms;
    in_steps_ms_ += step_ms;
    for (const double arrival : arrivals) done_.push_back(now_ms_ - arrival);
    waiting_ -= arrivals.size();
    now_ms_ += queue_.decode_ms(step_ms);
  }

  const PrefillQueue& queue_;
  const Lengths& new_tokens_;
  std::size_t requests_;
  Random random_{1};
  std::vector<Gpu> gpus_;
  Request next_;
  std::size_t drawn_ = 0, waiting_ = 0;
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
  return std::ceil(after_step_ms * decode_steps_per_ms) * decode_step_ms;
}

PrefillTimes prefill_times(const PrefillQueue& queue, const Lengths& new_tokens, double percentile) {
  constexpr double kSteps = 500;
  constexpr double kFewest = 5'000, kMost = 100'000;
  const double per_step = queue.requests_per_s * (queue.step.ms.back() + queue.decode_ms(queue.step.ms.back())) / 1e3;
  const auto requests = static_cast<std::size_t>(std::clamp(kSteps * per_step, kFewest, kMost));
  Unit unit(queue, new_tokens, requests);
  std::vector<double> all = unit.ttfts_ms();
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 10));
  const auto place = static_cast<std::ptrdiff_t>(percentile / 100 * static_cast<double>(all.size() - 1));
  std::nth_element(all.begin(), all.begin() + place, all.end());
  return {all[static_cast<std::size_t>(place)], unit.share()};
}

}  // namespace moeline
