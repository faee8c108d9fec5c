#include "experiments/plan/prefill_queue.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>

namespace moeline {
namespace {

constexpr double kFewestRequests = 5'000, kMostRequests = 50'000;  // requests

struct Request {
  double arrival_ms = 0;
  double length = 0;  // tokens of the prompt
  double left = 0;    // of these, to compute
  double answer = 0;  // tokens
};

// Tokens that a request has got which decodes all along, by time: linear between marks.
class Tokens {
 public:
  void add(double ms, double more) {
    at_ms_.push_back(ms);
    tokens_.push_back(more + (tokens_.empty() ? 0 : tokens_.back()));
  }
  [[nodiscard]] std::size_t last() const { return at_ms_.size() - 1; }
  [[nodiscard]] double now() const { return tokens_.empty() ? 0 : tokens_.back(); }

  // From a mark on until so many more are there; not a number where that is behind the last one.
  [[nodiscard]] double ms_until(std::size_t mark, double more) const {
    const double wanted = tokens_[mark] + more;
    const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(mark);
    const auto right = std::lower_bound(begin, tokens_.end(), wanted);
    if (right == tokens_.end()) return NAN;
    const auto i = static_cast<std::size_t>(right - tokens_.begin());
    if (i == mark) return 0;
    const double share = (wanted - tokens_[i - 1]) / (tokens_[i] - tokens_[i - 1]);
    return at_ms_[i - 1] + share * (at_ms_[i] - at_ms_[i - 1]) - at_ms_[mark];
  }

 private:
  std::vector<double> at_ms_, tokens_;
};

// A request whose first token is there.
struct Answering {
  std::size_t mark = 0;
  double more = 0;  // tokens that are to come
};

// An attention group: prompts that wait or are computed, and when answers end, in tokens of one that decodes all along.
struct Group {
  std::deque<Request> prompts;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;

  [[nodiscard]] std::size_t size() const { return prompts.size() + ends.size(); }
};

class Unit {
 public:
  Unit(const PrefillQueue& queue, const Arrivals& arrivals, std::size_t requests)
      : queue_(queue), arrivals_(arrivals), requests_(requests), groups_(static_cast<std::size_t>(queue.groups)) {
    arrive();
  }

  // Of all requests, in the order in which they are done; of fewer, once `most_late` have taken longer than `limit_ms`.
  std::vector<double> ttfts_ms(double limit_ms, std::size_t most_late) {
    while (done_.size() < requests_ && late_ <= most_late) {
      // A step that is made up while the one before runs has those that came before that one began.
      if (step(queue_.overlapped ? step_start_ms_ : now_ms_, limit_ms)) continue;
      if (decodes()) {
        decode();
      } else if (!step(now_ms_, limit_ms)) {
        rest();
      }
    }
    return std::move(done_);
  }

  // Of those done after the first so many.
  [[nodiscard]] std::vector<double> tpots_ms(std::size_t behind) const {
    std::vector<double> tpots;
    for (std::size_t i = behind; i < answering_.size(); ++i) {
      const double ms = tokens_.ms_until(answering_[i].mark, answering_[i].more);
      if (answering_[i].more > 0 && !std::isnan(ms)) tpots.push_back(ms / answering_[i].more);
    }
    return tpots;
  }

  [[nodiscard]] double share() const { return in_steps_ms_ / now_ms_; }
  [[nodiscard]] double step_ms() const { return in_steps_ms_ / std::max(1, steps_); }

 private:
  [[nodiscard]] bool decodes() const { return queue_.decode_step_ms > 0; }

  void arrive() {
    if (came_ == requests_) {
      next_.arrival_ms = INFINITY;
      return;
    }
    constexpr double kDay = 86'400'000;  // ms; after it nothing is left of what was, and a clock of centuries loses ms
    next_.arrival_ms += std::min(kDay, arrivals_.gaps[came_] / queue_.requests_per_s * 1e3);
    next_.length = arrivals_.prompts[came_];
    next_.left = next_.length * (1 - queue_.cache_hit_share);
    next_.answer = arrivals_.answers[came_++];
  }

  [[nodiscard]] Group& next_group() {
    if (queue_.in_turn) return groups_[turn_++ % groups_.size()];
    const auto fewer = [](const Group& a, const Group& b) { return a.size() < b.size(); };
    return *std::min_element(groups_.begin(), groups_.end(), fewer);
  }

  // Requests that come meanwhile find those of the step still there.
  void pass(double ms) {
    now_ms_ += ms;
    while (next_.arrival_ms <= now_ms_) {
      next_group().prompts.push_back(next_);
      ++waiting_;
      arrive();
    }
  }

  // Nobody is there.
  void rest() {
    step_start_ms_ = next_.arrival_ms;
    pass(std::nextafter(next_.arrival_ms, INFINITY) - now_ms_);
  }

  // Step by step until someone comes; one step where all wait for a slot.
  void decode() {
    const double until_next = std::ceil((next_.arrival_ms - now_ms_) / queue_.decode_step_ms);
    const double steps = waiting_ > 0 ? 1 : std::max(1.0, until_next);
    pass(steps * queue_.decode_step_ms);
    step_start_ms_ = now_ms_ - queue_.decode_step_ms;
    tokens_.add(now_ms_, steps * queue_.tokens_per_decode_step);
  }

  // Slots of answers that have ended; where steps are made up ahead, a step later.
  void let_leave(Group& group) const {
    const double known = tokens_.now() - (queue_.overlapped ? queue_.tokens_per_decode_step : 0);
    while (!group.ends.empty() && group.ends.top() <= known) group.ends.pop();
  }

  // Of prompts that came by then, as long as there are slots; what is left of a step goes to a part of one.
  PromptWork take(Group& group, double until_ms) const {
    PromptWork work;
    let_leave(group);
    auto slots = (queue_.slots > 0 ? queue_.slots : INFINITY) - static_cast<double>(group.ends.size());
    for (Request& each : group.prompts) {
      const double part = std::min(each.left, queue_.tokens_per_step - work.tokens);
      if (each.arrival_ms > until_ms || slots-- < 1 || part <= 0) break;
      each.left -= part;
      work.tokens += part;
      work.pairs += part * (each.length - each.left);
    }
    return work;
  }

  // Whether there is anything to compute.
  bool step(double until_ms, double limit_ms) {
    if (waiting_ == 0) return false;
    PromptWork busiest, sum;
    for (Group& group : groups_) {
      const PromptWork work = take(group, until_ms);
      busiest = {std::max(busiest.tokens, work.tokens), std::max(busiest.pairs, work.pairs)};
      sum = {sum.tokens + work.tokens, sum.pairs + work.pairs};
    }
    if (sum.tokens == 0) return false;
    const auto groups = static_cast<double>(groups_.size());
    const double ms = queue_.step.at(busiest, {sum.tokens / groups, sum.pairs / groups});
    step_start_ms_ = now_ms_;
    pass(ms);
    in_steps_ms_ += ms;
    ++steps_;
    if (decodes()) tokens_.add(now_ms_, queue_.mixed ? queue_.tokens_per_decode_step : 0);
    for (Group& group : groups_) finish(group, limit_ms);
    return true;
  }

  void finish(Group& group, double limit_ms) {
    while (!group.prompts.empty() && group.prompts.front().left <= 0) {
      const Request& request = group.prompts.front();
      done_.push_back(now_ms_ - request.arrival_ms + queue_.transfer_ms_per_token * request.length);
      if (done_.back() > limit_ms) ++late_;
      if (decodes()) {
        answering_.push_back({tokens_.last(), request.answer - 1});
        group.ends.push(tokens_.now() + request.answer - 1);
      }
      group.prompts.pop_front();
      --waiting_;
    }
  }

  const PrefillQueue& queue_;
  const Arrivals& arrivals_;
  std::size_t requests_;
  std::vector<Group> groups_;
  Request next_;
  std::size_t came_ = 0, waiting_ = 0, late_ = 0, turn_ = 0;
  int steps_ = 0;
  double now_ms_ = 0, step_start_ms_ = 0, in_steps_ms_ = 0;
  std::vector<double> done_;
  Tokens tokens_;
  std::vector<Answering> answering_;
};

double between(const std::vector<double>& x, const std::vector<double>& y, double at) {
  const auto right = std::upper_bound(x.begin(), x.end(), at);
  if (right == x.begin()) return y.front();
  if (right == x.end()) return y.back();
  const auto i = static_cast<std::size_t>(right - x.begin());
  return y[i - 1] + (y[i] - y[i - 1]) * (at - x[i - 1]) / (x[i] - x[i - 1]);
}

double ranked_at(std::vector<double>& all, double percentile) {
  if (all.empty()) return 0;
  const auto place = static_cast<std::ptrdiff_t>(percentile / 100 * static_cast<double>(all.size() - 1));
  std::nth_element(all.begin(), all.begin() + place, all.end());
  return all[static_cast<std::size_t>(place)];
}

}  // namespace

double StepTimes::at(const PromptWork& busiest, const PromptWork& mean) const {
  const double uneven = between(tokens, own_ms, busiest.tokens) - between(tokens, own_ms, mean.tokens);
  const double beyond = busiest.pairs - busiest.tokens * between(tokens, seen, busiest.tokens);
  return between(tokens, ms, mean.tokens) + uneven + beyond * ms_per_pair;
}

Arrivals draw_arrivals(const Lengths& prompts, const Lengths& answers) {
  Random random(1);
  Arrivals arrivals;
  for (int i = 0; i < kMostRequests; ++i) {
    arrivals.gaps.push_back(-std::log(1 - random.uniform()));
    arrivals.prompts.push_back(prompts.draw(random));
    arrivals.answers.push_back(answers.draw(random));
  }
  return arrivals;
}

PrefillTimes prefill_times(const PrefillQueue& queue, const Arrivals& arrivals, double percentile, double limit_ms) {
  constexpr double kSteps = 250, kTimesInFlight = 6;
  constexpr double kFirst = 0.1;  // left out: nobody was there yet
  const double per_step = queue.requests_per_s * queue.step.ms.back() / 1e3;
  const double requests = std::floor(std::clamp(
      std::max(kSteps * per_step, kTimesInFlight * queue.slots * queue.groups), kFewestRequests, kMostRequests));
  Unit unit(queue, arrivals, static_cast<std::size_t>(requests));
  const double most_late = requests * (kFirst + (1 - kFirst) * (1 - percentile / 100)) + 1;
  std::vector<double> all = unit.ttfts_ms(limit_ms, static_cast<std::size_t>(most_late));
  if (static_cast<double>(all.size()) < requests) return {INFINITY, INFINITY, unit.share(), unit.step_ms()};
  const double first = kFirst * requests;
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
  std::vector<double> tpots = unit.tpots_ms(static_cast<std::size_t>(first));
  return {ranked_at(all, percentile), ranked_at(tpots, percentile), unit.share(), unit.step_ms()};
}

}  // namespace moeline
