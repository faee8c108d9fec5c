#include "experiments/serve/replica.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/error.hpp"
#include "base/random.hpp"

namespace moeline {
namespace {

struct InFlight {
  std::size_t request = 0;
  int computed = 0;  ///< tokens of the prompt
  int produced = 0;
};

// An attention group: requests that wait, whose prompts are being computed, and that decode.
struct Group {
  std::deque<std::size_t> waiting;
  std::deque<InFlight> prompts;
  std::vector<InFlight> answers;
  double kv_tokens = 0;  ///< kept for those that run

  [[nodiscard]] std::size_t running() const { return prompts.size() + answers.size(); }
  [[nodiscard]] std::size_t all() const { return waiting.size() + running(); }
};

// Log-normal of this mean and standard deviation.
int drawn_length(int mean, double spread, Random& random) {
  constexpr double kLongest = 8;
  if (spread == 0) return mean;
  const double variance = std::log1p(std::pow(spread / mean, 2));
  const double length = mean * std::exp(std::sqrt(variance) * random.normal() - variance / 2);
  return static_cast<int>(std::lround(std::clamp(length, 1.0, kLongest * mean)));
}

class Replica {
 public:
  Replica(const ServeWorkload& workload, const ReplicaShape& shape, const StepMs& step_ms, int seed)
      : w_(workload),
        step_ms_(step_ms),
        kv_tokens_(shape.kv_tokens),
        arrivals_(static_cast<std::uint64_t>(seed), 0),
        lengths_(static_cast<std::uint64_t>(seed), 1),
        groups_(static_cast<std::size_t>(shape.groups)) {}

  ServeLog run() && {
    for (int i = 0; i < std::min(w_.concurrency, w_.requests); ++i) arrive(0);
    while (done_ < static_cast<std::size_t>(w_.requests)) {
      let_arrive();
      admit();
      if (!step()) now_ms_ = next_ms_;  // nothing to do until the next comes
    }
    log_.end_ms = now_ms_;
    return std::move(log_);
  }

 private:
  void arrive(double at_ms) {
    const auto fewest = std::min_element(groups_.begin(), groups_.end(),
                                         [](const Group& a, const Group& b) { return a.all() < b.all(); });
    fewest->waiting.push_back(log_.requests.size());
    ServedRequest& request = log_.requests.emplace_back();
    request.arrival_ms = at_ms;
    request.group = static_cast<int>(fewest - groups_.begin());
    request.input_len = drawn_length(w_.input_len, w_.input_len_spread, lengths_);
    request.cached_len = std::min(w_.cached_len, request.input_len - 1);
    request.output_len = drawn_length(w_.output_len, w_.output_len_spread, lengths_);
    if (request.kv_tokens() <= kv_tokens_) return;
    throw SpecError(fmt::format("a request of {:.0f} tokens does not fit: the KV cache holds {:.0f}",
                                request.kv_tokens(), kv_tokens_));
  }

  [[nodiscard]] const ServedRequest& of(const InFlight& each) const { return log_.requests[each.request]; }
  [[nodiscard]] bool has_slot(const Group& group) const {
    return w_.batch_size == 0 || group.running() < static_cast<std::size_t>(w_.batch_size);
  }
  [[nodiscard]] bool more_come() const { return log_.requests.size() < static_cast<std::size_t>(w_.requests); }

  // Of an open loop, those that have come by now.
  void let_arrive() {
    if (w_.rate == 0) return;
    while (more_come() && next_ms_ <= now_ms_) {
      arrive(next_ms_);
      next_ms_ += -std::log1p(-arrivals_.uniform()) * 1e3 / w_.rate;
    }
  }

  void admit() {
    for (Group& group : groups_) {
      while (!group.waiting.empty() && has_slot(group)) {
        const ServedRequest& next = log_.requests[group.waiting.front()];
        if (group.kv_tokens + next.kv_tokens() > kv_tokens_) break;
        group.kv_tokens += next.kv_tokens();
        group.prompts.push_back({group.waiting.front(), next.cached_len, 0});
        group.waiting.pop_front();
      }
    }
  }

  // What a group does in the next step.
  struct Part {
    std::vector<int> chunks;  ///< tokens of the first prompts that are computed
    StepLoad load;
  };

  [[nodiscard]] Part part_of(const Group& group, bool prompts_first) const {
    Part part;
    if (!prompts_first) {
      part.load.answers = static_cast<int>(group.answers.size());
      double keys = 0;
      for (const InFlight& each : group.answers) keys += of(each).input_len + each.produced;
      part.load.keys = part.load.answers > 0 ? keys / part.load.answers : 0;
    }
    int left = w_.tokens - part.load.answers;
    double seen = 0;
    for (auto each = group.prompts.begin(); each != group.prompts.end() && left > 0; ++each) {
      const int chunk = std::min(left, of(*each).input_len - each->computed);
      seen += static_cast<double>(chunk) * (each->computed + chunk);
      part.load.prompts += chunk;
      left -= chunk;
      part.chunks.push_back(chunk);
    }
    if (part.load.prompts > 0) part.load.seen = seen / part.load.prompts;
    return part;
  }

  // All groups together; false: none has anything to do.
  bool step() {
    const bool has_prompts =
        std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return !group.prompts.empty(); });
    const bool prompts_first = w_.order == PromptOrder::first && has_prompts;
    ServedStep taken{.start_ms = now_ms_};
    std::vector<Part> parts;
    for (const Group& group : groups_) {
      const StepLoad& load = parts.emplace_back(part_of(group, prompts_first)).load;
      taken.load = {.answers = std::max(taken.load.answers, load.answers),
                    .keys = std::max(taken.load.keys, load.keys),
                    .prompts = std::max(taken.load.prompts, load.prompts),
                    .seen = std::max(taken.load.seen, load.seen)};
      taken.waiting += static_cast<int>(group.waiting.size());
    }
    if (taken.load.answers == 0 && taken.load.prompts == 0) return false;
    taken.ms = step_ms_(taken.load);
    now_ms_ += taken.ms;
    log_.steps.push_back(taken);
    for (std::size_t i = 0; i < groups_.size(); ++i) finish(groups_[i], parts[i], prompts_first, taken);
    return true;
  }

  // Prompts that are computed give their first token with the step.
  void finish(Group& group, const Part& part, bool prompts_first, const ServedStep& step) {
    std::size_t ended = 0;
    if (!prompts_first) {
      for (InFlight& each : group.answers) ended += produce(each, group) ? 1 : 0;
      std::erase_if(group.answers, [&](const InFlight& each) { return each.produced == of(each).output_len; });
    }
    for (std::size_t i = 0; i < part.chunks.size(); ++i) {
      InFlight& each = group.prompts[i];
      if (each.computed == of(each).cached_len) log_.requests[each.request].begin_ms = step.start_ms;
      each.computed += part.chunks[i];
    }
    while (!group.prompts.empty() && group.prompts.front().computed == of(group.prompts.front()).input_len) {
      InFlight first = group.prompts.front();
      group.prompts.pop_front();
      log_.requests[first.request].first_token_ms = now_ms_;
      if (produce(first, group)) {
        ++ended;
      } else {
        group.answers.push_back(first);
      }
    }
    done_ += ended;
    for (std::size_t i = 0; i < ended && w_.concurrency > 0 && more_come(); ++i) arrive(now_ms_);
  }

  // Whether that was the last token.
  bool produce(InFlight& each, Group& group) {
    if (++each.produced < of(each).output_len) return false;
    log_.requests[each.request].end_ms = now_ms_;
    group.kv_tokens -= of(each).kv_tokens();
    return true;
  }

  const ServeWorkload& w_;
  const StepMs& step_ms_;
  double kv_tokens_;
  Random arrivals_, lengths_;
  std::vector<Group> groups_;
  std::size_t done_ = 0;
  double now_ms_ = 0, next_ms_ = 0;
  ServeLog log_;
};

}  // namespace

ServeLog serve_requests(const ServeWorkload& workload, const ReplicaShape& shape, const StepMs& step_ms, int seed) {
  return Replica(workload, shape, step_ms, seed).run();
}

}  // namespace moeline
