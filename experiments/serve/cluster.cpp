#include "experiments/serve/cluster.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <queue>

#include "experiments/serve/fleet.hpp"
#include "experiments/serve/traffic.hpp"

namespace moeline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Event {
  double at_ms = 0;
  std::int64_t order = 0;  ///< of equal times, by which came up first
  std::function<void()> happen;

  bool operator>(const Event& other) const { return at_ms != other.at_ms ? at_ms > other.at_ms : order > other.order; }
};

// A prompt's cache, that is still where the prompt was computed.
struct ComputedPrompt {
  Router::Place place;
  std::int64_t way = 0;  ///< event that ends its way; 0: it has not set out
};

class Cluster {
 public:
  Cluster(const ServeWorkload& workload, const ServeDeployment& deployment, int seed)
      : w_(workload),
        deployment_(deployment),
        source_(workload, seed),
        prompts_(no_scaling_, deployment.prompts ? added(*deployment.prompts, RequestPart::prompt, seed) : none()),
        answers_(w_.scaling, added(deployment.answers, apart() ? RequestPart::answer : RequestPart::all, seed)),
        router_(w_.router, {}),
        decoders_(RouterRule::least_loaded, {}) {
    open_routers();
    for (const Outage& outage : w_.outages) {
      at(outage.at_ms, [this, &outage] { go(outage); });
      at(outage.until_ms, [this, &outage] { come_back(outage); });
    }
  }

  ServeLog run(const Progress& progress) && {
    for (int i = 0; i < std::min(w_.concurrency, w_.requests); ++i) come();
    while (done_ < static_cast<std::size_t>(w_.requests)) {
      if (progress && !touched_.empty()) progress("requests", done_, static_cast<std::size_t>(w_.requests));
      for (Replica* replica : std::exchange(touched_, {})) start(*replica);
      if (w_.scaling.applies()) scale();
      const double next_ms = w_.concurrency == 0 && source_.more() ? source_.next_ms() : kNever;
      now_ms_ = std::min(next_ms, events_.empty() ? kNever : events_.top().at_ms);
      MOELINE_CHECK(now_ms_ < kNever, fmt::format("{} of {} requests are done, and nothing comes", done_, w_.requests));
      while (w_.concurrency == 0 && source_.more() && source_.next_ms() <= now_ms_) come();
      while (!events_.empty() && events_.top().at_ms <= now_ms_) {
        const Event event = events_.top();
        events_.pop();
        event.happen();
      }
    }
    log_.end_ms = now_ms_;
    if (!log_.replicas_on.empty()) log_.replicas_on.back().to_ms = now_ms_;
    return std::move(log_);
  }

 private:
  using Replicas = std::vector<Replica*>;

  [[nodiscard]] static Replicas none() { return {}; }
  [[nodiscard]] bool apart() const { return deployment_.prompts.has_value(); }

  // Those that answer have the first numbers.
  Replicas added(const ReplicaPool& pool, RequestPart part, int seed) {
    const int first = part == RequestPart::prompt ? deployment_.answers.replicas : 0;
    Replicas list;
    for (int i = 0; i < pool.replicas; ++i) {
      replicas_.push_back(std::make_unique<Replica>(w_, pool, part, first + i, log_, seed));
      list.push_back(replicas_.back().get());
    }
    return list;
  }

  [[nodiscard]] bool only_answers(const Replica& replica) const {
    return apart() && replica.number() < deployment_.answers.replicas;
  }

  std::int64_t at(double ms, std::function<void()> happen) {
    events_.push({ms, ++pushed_, std::move(happen)});
    return pushed_;
  }

  void touch(Replica& replica) {
    if (std::find(touched_.begin(), touched_.end(), &replica) == touched_.end()) touched_.push_back(&replica);
  }

  void come() {
    ServedRequest& request = log_.requests.emplace_back();
    request.arrival_ms = w_.concurrency == 0 ? source_.next_ms() : now_ms_;
    request.begin_ms = kNotYet;
    static_cast<Asked&>(request) = source_.take();
    route(log_.requests.size() - 1);
  }

  void wait_at(const Router::Place& place, std::size_t number) {
    place.replica->wait(place.group, number, now_ms_);
    touch(*place.replica);
  }

  // Where no replica is open, once one is.
  void route(std::size_t number) {
    if (router_.is_closed()) return homeless_.push_back(number);
    wait_at(router_.pick(log_.requests[number].prefix), number);
  }

  // The same of those whose prompt is computed.
  void route_answer(std::size_t number) {
    if (decoders_.is_closed()) return unanswered_.push_back(number);
    wait_at(decoders_.pick(-1), number);
  }

  // Caches may come at any time, a step is taken up when none is under way.
  void start(Replica& replica) {
    if (only_answers(replica)) {
      for (const std::size_t request : replica.admit()) move(replica, request);
    }
    if (replica.in_step() || !replica.begin(now_ms_)) return;
    at(replica.step_end_ms(), [this, &replica] {
      if (replica.in_step() && replica.step_end_ms() == now_ms_) finish(replica);  // it may have failed meanwhile
    });
  }

  // There is room for its cache: it sets out.
  void move(Replica& to, std::size_t number) {
    ServedRequest& request = log_.requests[number];
    request.slot_ms = now_ms_ - request.first_token_ms;
    const double tokens = request.input_len;
    ComputedPrompt& from = computed_.at(number);
    to.moves(request.group, tokens);
    from.place.replica->moves(from.place.group, tokens);
    const double ms = deployment_.transfer_ms(tokens, from.place.replica->load(), to.load());
    from.way = at(now_ms_ + ms, [this, number, way = pushed_ + 1] { arrive(number, way); });
  }

  void arrive(std::size_t number, std::int64_t way) {
    const auto computed = computed_.find(number);
    if (computed == computed_.end() || computed->second.way != way) return;  // one of its ends failed
    leave_prompt(computed->second, number);
    computed_.erase(computed);
    ServedRequest& request = log_.requests[number];
    request.transfer_ms = now_ms_ - request.first_token_ms - request.slot_ms;
    request.first_token_ms = now_ms_;  // it is told by who tells the others
    Replica& to = answers_.replica(request.replica);
    to.cache_came(number);
    touch(to);
  }

  void leave_prompt(const ComputedPrompt& computed, std::size_t number) {
    computed.place.replica->cache_left(number, computed.place.group);
    touch(*computed.place.replica);
  }

  void finish(Replica& replica) {
    const Replica::Finished finished = replica.finish();
    touch(replica);
    for (const std::size_t number : finished.computed) {
      computed_[number] = {{&replica, log_.requests[number].group}};
      route_answer(number);
    }
    done_ += finished.ended.size();
    if (w_.concurrency == 0) return;
    for (std::size_t i = 0; i < finished.ended.size() && source_.more(); ++i) come();
  }

  [[nodiscard]] Fleet& fleet_of(const Outage& outage) { return outage.of_prefill ? prompts_ : answers_; }

  void go(const Outage& outage) {
    Fleet& fleet = fleet_of(outage);
    fleet.go(outage.replica);
    open_routers();
    if (outage.drains) return;
    Replica& replica = fleet.replica(outage.replica);
    if (outage.of_prefill) lose_computed(replica);
    for (const std::size_t number : replica.lose_all()) {
      const auto computed = computed_.find(number);
      if (computed != computed_.end()) {
        leave_prompt(computed->second, number);
        computed_.erase(computed);
      }
      begin_anew(number);
    }
  }

  // Caches that have not left it, whether there is room elsewhere or they are on the way.
  void lose_computed(const Replica& replica) {
    std::vector<std::size_t> lost;
    for (const auto& [number, computed] : computed_) {
      if (computed.place.replica == &replica) lost.push_back(number);
    }
    std::sort(lost.begin(), lost.end());
    for (const std::size_t number : lost) {
      computed_.erase(number);
      if (std::erase(unanswered_, number) == 0) answers_.replica(log_.requests[number].replica).forget(number);
      begin_anew(number);
    }
  }

  void begin_anew(std::size_t number) {
    ServedRequest& request = log_.requests[number];
    request.begin_ms = kNotYet;
    request.slot_ms = request.transfer_ms = request.stalled_ms = request.beside_ms = 0;
    ++request.retries;
    route(number);
  }

  void come_back(const Outage& outage) {
    fleet_of(outage).come_back(outage.replica);
    open_routers();
  }

  void open_routers() {
    router_.set_open(apart() ? prompts_.open() : answers_.open());
    decoders_.set_open(answers_.open());
    if (!router_.is_closed()) {
      for (const std::size_t number : std::exchange(homeless_, {})) route(number);
    }
    if (!decoders_.is_closed()) {
      for (const std::size_t number : std::exchange(unanswered_, {})) route_answer(number);
    }
  }

  // By the requests that are there.
  void scale() {
    const std::size_t requests = log_.requests.size() - done_;
    while (Replica* replica = answers_.switch_on(requests)) {
      at(now_ms_ + w_.scaling.start_ms, [this, replica] {
        answers_.has_started(*replica);
        open_routers();
      });
    }
    bool closes = false;
    while (answers_.switch_off(requests)) closes = true;
    if (closes) open_routers();
    answers_.let_rest();
    const int on = answers_.on();
    std::vector<ReplicasOn>& all = log_.replicas_on;
    if (!all.empty()) all.back().to_ms = now_ms_;
    if (all.empty() || all.back().replicas != on) all.push_back({now_ms_, now_ms_, on});
  }

  const ServeWorkload& w_;
  const ServeDeployment& deployment_;
  const Scaling no_scaling_{};
  RequestSource source_;
  ServeLog log_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<Replica*> touched_;
  Fleet prompts_, answers_;
  std::vector<std::size_t> homeless_, unanswered_;  // requests
  Router router_, decoders_;
  std::unordered_map<std::size_t, ComputedPrompt> computed_;  // by request
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t pushed_ = 0;
  std::size_t done_ = 0;
  double now_ms_ = 0;
};

}  // namespace

ServeLog serve_requests(const ServeWorkload& workload, const ServeDeployment& deployment, int seed,
                        const Progress& progress) {
  return Cluster(workload, deployment, seed).run(progress);
}

}  // namespace moeline
