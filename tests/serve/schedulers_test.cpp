// Requests served as the stacks' own schedulers have them, beside schedulers written here from their rules, token by
// token, on step times that are given.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "base/random.hpp"
#include "experiments/serve/measures.hpp"
#include "experiments/serve/schedulers.hpp"
#include "tests/support/given_steps.hpp"

TEST_SUITE("serve/schedulers") {

using namespace moeline;
using namespace moeline::testing;

namespace {

double by_load(const StepLoad& busiest, const StepLoad& mean, const StepState& /*state*/) {
  return 1 + 0.01 * busiest.answers + 0.02 * busiest.prompts + 0.001 * (mean.answers + mean.prompts);
}

// A request, and how far it is.
struct Job {
  int input = 0, output = 0;
  double arrival = 0, begin = -1, first = 0, end = 0;
  int written = 0, computed = 0, restarts = 0;
  int ended_in = -1;  // step
  std::size_t number = 0;
  [[nodiscard]] int length() const { return input + written; }
  [[nodiscard]] bool ended() const { return ended_in >= 0; }
};

struct Limits {
  int groups = 1, tokens = 1024, batch = 1 << 30;
  double cache = 1e9;
};

// What an attention group has. `running`: those whose prompt is computed, until the scheduler knows that they ended.
struct Rank {
  std::deque<Job*> waiting, prompts;
  std::vector<Job*> running;
  double used = 0, ratio = 0;
  bool full = false, alone = false;
  std::vector<int> chunks;

  [[nodiscard]] int decoding() const {
    return static_cast<int>(std::count_if(running.begin(), running.end(), [](const Job* j) { return !j->ended(); }));
  }
  [[nodiscard]] bool busy() const { return decoding() > 0 || !prompts.empty(); }
};

// The loop that all of them have: a step is made up while the one before runs.
class Reference {
 public:
  Reference(const Limits& limits, std::vector<Job> jobs) : limits_(limits), jobs_(std::move(jobs)) {
    for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].number = i;
    ranks_.resize(static_cast<std::size_t>(limits.groups));
  }
  virtual ~Reference() = default;

  // `together`: so many at any time, one after the other; 0: as they arrive.
  std::vector<Job> run(std::size_t together) {
    closed_ = together > 0;
    for (std::size_t i = 0; i < std::min(together, jobs_.size()); ++i) come(0);
    while (done_ < jobs_.size()) {
      arrive();
      if (!step()) now_ = jobs_[next_].arrival;
    }
    return jobs_;
  }

 protected:
  virtual std::size_t rank_of(const Job& job) = 0;
  virtual bool fits(Rank& rank, const Job& job) = 0;
  virtual void order() = 0;  // says which ranks compute prompts alone
  virtual void make_room(Rank& rank) = 0;
  virtual bool stops(const Rank& /*rank*/) { return false; }
  virtual bool runs_on(const Rank& /*rank*/) { return false; }
  virtual void decoded(Rank& /*rank*/) {}
  virtual void idle(Rank& /*rank*/) {}
  [[nodiscard]] virtual double kept_for(const Job& job) const { return job.length(); }

  void come(double at) {
    Job& job = jobs_[next_++];
    job.arrival = at;
    ranks_[rank_of(job)].waiting.push_back(&job);
  }

  void arrive() {
    while (!closed_ && next_ < jobs_.size() && jobs_[next_].arrival <= now_) come(jobs_[next_].arrival);
  }

  void forget_ended(Rank& rank, bool all) {
    std::erase_if(rank.running, [&](const Job* job) {
      const bool known = job->ended() && (all || step_ > job->ended_in);
      if (known) rank.used -= kept_for(*job), rank.full = false;
      return known;
    });
  }

  void admit(double until, bool strictly) {
    for (Rank& rank : ranks_) {
      if (!rank.busy()) idle(rank);
      while (!rank.waiting.empty() && !stops(rank)) {
        Job& job = *rank.waiting.front();
        if (strictly && until > 0 ? job.arrival >= until && job.restarts == 0 : job.arrival > until) break;
        if (static_cast<int>(rank.running.size() + rank.prompts.size()) >= limits_.batch) break;
        if (!fits(rank, job)) {
          rank.full = true;
          break;
        }
        rank.used += kept_for(job);
        job.computed = 0;
        rank.prompts.push_back(&job);
        rank.waiting.pop_front();
      }
    }
  }

  bool step() {
    const bool follows = now_ == end_ && step_ > 0;
    const auto busy = [&] {
      return std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return r.busy() || runs_on(r); });
    };
    if (follows) admit(start_, true);
    if (!follows || !busy()) {
      for (Rank& rank : ranks_) forget_ended(rank, true);
      admit(now_, false);
    }
    order();
    StepLoad busiest, sum;
    for (Rank& rank : ranks_) {
      const double answers =
          rank.alone || (rank.decoding() == 0 && !runs_on(rank)) ? 0.0 : static_cast<double>(rank.running.size());
      int left = limits_.tokens - static_cast<int>(answers), prompts = 0;
      rank.chunks.clear();
      for (const Job* job : rank.prompts) {
        if (left <= 0) break;
        rank.chunks.push_back(std::min(left, job->length() - job->computed));
        left -= rank.chunks.back();
        prompts += rank.chunks.back();
      }
      busiest.answers = std::max(busiest.answers, answers);
      busiest.prompts = std::max<double>(busiest.prompts, prompts);
      sum.answers += answers;
      sum.prompts += prompts;
    }
    if (busiest.answers + busiest.prompts == 0) return false;
    sum.answers /= limits_.groups;
    sum.prompts /= limits_.groups;
    start_ = now_;
    now_ = end_ = start_ + by_load(busiest, sum, {});
    arrive();
    std::size_t ended = 0;
    for (Rank& rank : ranks_) {
      forget_ended(rank, false);
      if (!rank.alone) ended += decode(rank);
      ended += prefill(rank);
      make_room(rank);
    }
    ++step_;
    done_ += ended;
    for (std::size_t i = 0; closed_ && i < ended && next_ < jobs_.size(); ++i) come(now_);
    return true;
  }

  std::size_t write(Rank& rank, Job& job) {
    const double before = kept_for(job);
    if (++job.written == 1) job.first = now_;
    rank.used += kept_for(job) - before;
    if (job.written < job.output) return 0;
    job.end = now_;
    job.ended_in = step_;
    return 1;
  }

  std::size_t decode(Rank& rank) {
    if (rank.decoding() == 0) return 0;
    std::size_t ended = 0;
    for (Job* job : rank.running) ended += job->ended() ? 0 : write(rank, *job);
    decoded(rank);
    return ended;
  }

  std::size_t prefill(Rank& rank) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i < rank.chunks.size(); ++i) {
      if (rank.prompts[i]->begin < 0) rank.prompts[i]->begin = start_;
      rank.prompts[i]->computed += rank.chunks[i];
    }
    while (!rank.prompts.empty() && rank.prompts.front()->computed == rank.prompts.front()->length()) {
      Job& job = *rank.prompts.front();
      rank.prompts.pop_front();
      rank.running.push_back(&job);
      ended += write(rank, job);
    }
    return ended;
  }

  Limits limits_;
  std::vector<Job> jobs_;
  std::vector<Rank> ranks_;
  std::size_t next_ = 0, done_ = 0;
  int step_ = 0;
  double now_ = 0, start_ = 0, end_ = 0;
  bool closed_ = false;
};

class SglangReference : public Reference {
 public:
  SglangReference(const Limits& limits, std::vector<Job> jobs) : Reference(limits, std::move(jobs)) {
    for (Rank& rank : ranks_) rank.ratio = first();
  }

 private:
  [[nodiscard]] double first() const { return limits_.groups > 1 ? 0.21 : 0.7; }
  std::size_t rank_of(const Job& job) override { return job.number % ranks_.size(); }
  static double rest(const Job& job) { return std::min(4096, job.output - job.written); }

  bool fits(Rank& rank, const Job& job) override {
    double foreseen = rest(job);
    for (const Job* each : rank.running) foreseen += each->ended() ? 0 : rank.ratio * rest(*each);
    for (const Job* each : rank.prompts) foreseen += rest(*each);
    return rank.used + job.length() + foreseen <= limits_.cache;
  }
  bool stops(const Rank& rank) override {
    int tokens = 0;
    for (const Job* each : rank.prompts) tokens += each->length() - each->computed;
    return (rank.full && rank.busy()) || tokens >= limits_.tokens;
  }
  void order() override {
    for (Rank& rank : ranks_) rank.alone = !rank.prompts.empty();
  }
  bool runs_on(const Rank& rank) override { return !rank.running.empty(); }
  void decoded(Rank& rank) override { rank.ratio = std::max(0.14 * first(), rank.ratio - 0.86 * first() / 600); }
  void idle(Rank& rank) override { rank.ratio = first(); }

  void make_room(Rank& rank) override {
    bool any = false;
    while (rank.used + rank.decoding() > limits_.cache) {
      const auto victim = std::min_element(rank.running.begin(), rank.running.end(), [](const Job* a, const Job* b) {
        const auto key = [](const Job* j) {
          return std::tuple(j->ended(), j->written, -j->input, -static_cast<double>(j->number));
        };
        return key(a) < key(b);
      });
      Job& job = **victim;
      rank.running.erase(victim);
      rank.used -= job.length();
      ++job.restarts;
      rank.waiting.push_back(&job);
      rank.full = false;
      any = true;
    }
    if (!any) return;
    double written = 0, most = 0;
    for (const Job* each : rank.running) {
      written += each->ended() ? 0 : each->written;
      most += each->ended() ? 0 : each->output;
    }
    rank.ratio = std::min(1.0, (written + 20.0 * rank.decoding()) / (most + 1));
  }
};

// By requests that wait or run.
class LeastLoadedReference : public Reference {
 public:
  using Reference::Reference;

 private:
  std::size_t rank_of(const Job& /*job*/) override {
    const auto load = [](const Rank& r) {
      return r.waiting.size() + r.prompts.size() + static_cast<std::size_t>(r.decoding());
    };
    const auto fewest =
        std::min_element(ranks_.begin(), ranks_.end(), [&](const Rank& a, const Rank& b) { return load(a) < load(b); });
    return static_cast<std::size_t>(fewest - ranks_.begin());
  }
  void order() override {}
};

class VllmReference : public LeastLoadedReference {
 public:
  using LeastLoadedReference::LeastLoadedReference;

 private:
  bool fits(Rank& rank, const Job& job) override { return rank.used + job.length() <= limits_.cache; }
  void make_room(Rank& rank) override {
    while (rank.used > limits_.cache) {
      Job* last = nullptr;
      for (Job* each : rank.running) last = each->ended() || (last && last->number > each->number) ? last : each;
      const bool of_prompts = !last || (!rank.prompts.empty() && rank.prompts.back()->number > last->number);
      if (of_prompts) last = rank.prompts.back(), rank.prompts.pop_back();
      if (!of_prompts) std::erase(rank.running, last);
      rank.used -= last->length();
      ++last->restarts;
      rank.waiting.push_front(last);
    }
  }
};

class TrtllmReference : public LeastLoadedReference {
 public:
  using LeastLoadedReference::LeastLoadedReference;

 private:
  [[nodiscard]] double kept_for(const Job& job) const override { return job.input + job.output; }
  bool fits(Rank& rank, const Job& job) override { return rank.used + kept_for(job) <= limits_.cache; }
  void make_room(Rank& /*rank*/) override {}
};

std::vector<Job> jobs_of(int count, int input, int output, double every_ms, std::uint64_t seed) {
  Random random(seed);
  std::vector<Job> jobs(static_cast<std::size_t>(count));
  double at = 0;
  for (Job& job : jobs) {
    job.input = 1 + static_cast<int>(random.uniform() * 2 * input);
    job.output = 1 + static_cast<int>(random.uniform() * 2 * output);
    job.arrival = at += every_ms > 0 ? -every_ms * std::log1p(-random.uniform()) : 0;
  }
  return jobs;
}

// The same requests served as moeline has that scheduler.
ServeLog served_as(Stack stack, const Limits& limits, const std::vector<Job>& jobs, int together) {
  ServeWorkload w;
  w.scheduler = stack;
  w.requests = static_cast<int>(jobs.size());
  w.concurrency = together;
  w.tokens = limits.tokens;
  w.batch_size = limits.batch == 1 << 30 ? 0 : limits.batch;
  for (const Job& job : jobs) w.trace.push_back({job.arrival, {.input_len = job.input, .output_len = job.output}});
  w.trace_has_times = together == 0;
  if (stack == Stack::sglang) {
    w.order = PromptOrder::first_by_rank;
    w.room = KvRoom::share;
    w.router = RouterRule::ranks_in_turn;
  } else if (stack == Stack::vllm) {
    w.room = KvRoom::prompt;
  }
  return served(w, {.groups = limits.groups, .kv_tokens = limits.cache}, by_load);
}

std::vector<Job> reference(Stack stack, const Limits& limits, const std::vector<Job>& jobs, int together) {
  const auto count = static_cast<std::size_t>(together);
  if (stack == Stack::sglang) return SglangReference(limits, jobs).run(count);
  if (stack == Stack::vllm) return VllmReference(limits, jobs).run(count);
  return TrtllmReference(limits, jobs).run(count);
}

struct Case {
  const char* name;
  Limits limits;
  int requests, together;
  double every_ms;
  int input, output;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"one at a time", {}, 20, 1, 0, 300, 40},
      {"a closed loop", {}, 400, 32, 0, 300, 60},
      {"a closed loop of long prompts", {1, 512}, 200, 16, 0, 2000, 60},
      {"few at a time of many that wait", {1, 1024, 8}, 200, 64, 0, 300, 60},
      {"a full cache", {1, 1024, 1 << 30, 6000}, 300, 64, 0, 200, 200},
      {"answers longer than is foreseen", {1, 1024, 1 << 30, 12'000}, 60, 16, 0, 200, 5000},
      {"requests that come by chance", {}, 400, 0, 12, 300, 60},
      {"a burst", {1, 1024, 1 << 30, 20'000}, 300, 0, 0.01, 200, 100},
      {"eight groups", {8, 256}, 600, 128, 0, 300, 60},
      {"eight groups, by chance", {8, 256}, 600, 0, 3, 300, 60},
      {"eight groups with full caches", {8, 256, 1 << 30, 3000}, 600, 256, 0, 150, 150},
  };
  return kCases;
}

// How often one of them began anew.
int check_equal(const std::vector<Job>& wanted, const ServeLog& log) {
  REQUIRE(log.requests.size() == wanted.size());
  int different = 0, restarts = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ServedRequest& got = log.requests[i];
    const Job& job = wanted[i];
    const bool equal = std::abs(got.begin_ms - job.begin) < 1e-6 && std::abs(got.first_token_ms - job.first) < 1e-6 &&
                       std::abs(got.end_ms - job.end) < 1e-6 && got.restarts == job.restarts;
    different += equal ? 0 : 1;
    restarts += job.restarts;
  }
  CHECK(different == 0);
  return restarts;
}

}  // namespace

TEST_CASE("every request begins, gets its first token and ends as in SGLang's, vLLM's and TensorRT-LLM's schedulers") {
  for (const Stack stack : {Stack::sglang, Stack::vllm, Stack::trtllm}) {
    int restarts = 0;
    for (const Case& each : cases()) {
      CAPTURE(word_of(stack));
      const std::string name = each.name;
      CAPTURE(name);
      const std::vector<Job> jobs = jobs_of(each.requests, each.input, each.output, each.every_ms, 11);
      restarts += check_equal(reference(stack, each.limits, jobs, each.together),
                              served_as(stack, each.limits, jobs, each.together));
    }
    CHECK((restarts > 0) == (stack != Stack::trtllm));
  }
}

TEST_CASE("a prompt of one group need not stop the others") {
  const auto tokens_per_s = [](PromptOrder order) {
    ServeWorkload w = workload(600, 256);
    w.input.mean = 1024;
    w.output.mean = 256;
    w.output.spread = 60;
    w.order = order;
    const ServeLog log = served(w, {.groups = 8, .kv_tokens = 1e9}, by_load);
    return 600 * 256 / log.end_ms;
  };
  CHECK(tokens_per_s(PromptOrder::first_by_rank) > 1.02 * tokens_per_s(PromptOrder::first));
}

TEST_CASE("SGLang takes up one more step of requests that have all ended, before the next prompt") {
  ServeWorkload w = workload(20, 1);
  w.overlapped = true;
  w.order = PromptOrder::first;
  const auto ttft = [&](Stack stack) {
    w.scheduler = stack;
    return served(w).requests.back().ttft_ms();
  };
  CHECK(ttft(Stack::sglang) == doctest::Approx(ttft(Stack::vllm) + kStepMs));
}

TEST_CASE("the share that SGLang keeps falls from 0.7 to 0.098 in 600 steps, and begins at 0.21 among groups") {
  const NewTokenRatio one = new_token_ratio(1, 1), groups = new_token_ratio(1, 8);
  CHECK(one.first == doctest::Approx(0.7));
  CHECK(one.least == doctest::Approx(0.098));
  CHECK(one.first - 600 * one.decay == doctest::Approx(one.least));
  CHECK(groups.first == doctest::Approx(0.21));
  CHECK(new_token_ratio(10, 1).first == 1);
  CHECK(ratio_after_retraction(1000, 10, 4000) == doctest::Approx(1200.0 / 4001));
  CHECK(ratio_after_retraction(1000, 10, 900) == 1);
}

TEST_CASE("prompts that wait for those of other groups come later, and answers sooner") {
  const auto times = [](int delay) {
    ServeWorkload w = workload(1200, 128);
    w.output.mean = 256;
    w.output.spread = 60;
    w.order = PromptOrder::first_by_rank;
    w.prefill_delay = delay;
    return measure(served(w, {.groups = 8, .kv_tokens = 1e9}, by_load), w).steady;
  };
  const RequestTimes none = times(0), some = times(30);
  CHECK(some.ttft_ms.mean > 2 * none.ttft_ms.mean);
  CHECK(some.tpot_ms.mean < 0.95 * none.tpot_ms.mean);
}

TEST_CASE("with a full cache nobody starves: all end, tokens are computed as often as they began, restarts are few") {
  for (const Stack stack : {Stack::sglang, Stack::vllm, Stack::trtllm}) {
    CAPTURE(word_of(stack));
    const Limits limits{8, 256, 1 << 30, 3000};
    const std::vector<Job> jobs = jobs_of(1000, 150, 150, 0, 5);
    const ServeLog log = served_as(stack, limits, jobs, 256);
    CHECK(log.requests.size() == jobs.size());
    int most = 0;
    double longest = 0, sum = 0;
    for (const ServedRequest& each : log.requests) {
      most = std::max(most, each.restarts);
      longest = std::max(longest, each.end_ms - each.arrival_ms);
      sum += each.end_ms - each.arrival_ms;
    }
    CHECK(most <= 20);
    CHECK(longest < 8 * sum / 1000);
  }
}

}  // TEST_SUITE("serve/schedulers")
