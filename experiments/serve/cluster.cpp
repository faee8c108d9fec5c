#include "experiments/serve/cluster.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <queue>
#include <set>

#include "experiments/serve/request_source.hpp"
#include "experiments/serve/router.hpp"

namespace moeline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The end of a step of a replica, or of the way of a cache, or a replica that goes or comes back.
struct Event {
  double at_ms = 0;
  std::int64_t order = 0;  ///< of equal times, by which came up first
  Replica* stepped = nullptr;
  std::size_t moved = 0;  ///< request, where nothing stepped
  const Outage* outage = nullptr;
  bool is_over = false;

  bool operator>(const Event& other) const { return at_ms != other.at_ms ? at_ms > other.at_ms : order > other.order; }
};

class Cluster {
 public:
  Cluster(const ServeWorkload& workload, const ServeDeployment& deployment, int seed)
      : w_(workload), deployment_(deployment), source_(workload, seed) {
    const bool apart = deployment.prompts.has_value();
    add(deployment.answers, apart ? RequestPart::answer : RequestPart::all, seed, answers_);
    if (apart) add(*deployment.prompts, RequestPart::prompt, seed, prompts_);
    router_.emplace(w_.router, apart ? prompts_ : answers_);
    decoders_.emplace(RouterRule::least_loaded, answers_);
    for (const Outage& outage : w_.outages) {
      events_.push({.at_ms = outage.at_ms, .order = pushed_++, .outage = &outage});
      events_.push({.at_ms = outage.until_ms, .order = pushed_++, .outage = &outage, .is_over = true});
    }
  }

  ServeLog run() && {
    for (int i = 0; i < std::min(w_.concurrency, w_.requests); ++i) come();
    while (done_ < static_cast<std::size_t>(w_.requests)) {
      for (Replica* replica : std::exchange(touched_, {})) start(*replica);
      const double next_ms = w_.concurrency == 0 && source_.more() ? source_.next_ms() : kNever;
      now_ms_ = std::min(next_ms, events_.empty() ? kNever : events_.top().at_ms);
      while (w_.concurrency == 0 && source_.more() && source_.next_ms() <= now_ms_) come();
      while (!events_.empty() && events_.top().at_ms <= now_ms_) happen();
    }
    log_.end_ms = now_ms_;
    return std::move(log_);
  }

 private:
  void add(const ReplicaPool& pool, RequestPart part, int seed, std::vector<Replica*>& list) {
    for (int i = 0; i < pool.replicas; ++i) {
      const int number = static_cast<int>(replicas_.size());
      replicas_.push_back(std::make_unique<Replica>(w_, pool.shape, part, number, log_, seed));
      list.push_back(replicas_.back().get());
    }
  }

  [[nodiscard]] bool only_answers(const Replica& replica) const {
    return deployment_.prompts && replica.number() < deployment_.answers.replicas;
  }
  [[nodiscard]] const ReplicaPool& pool_of(const Replica& replica) const {
    return replica.number() < deployment_.answers.replicas ? deployment_.answers : *deployment_.prompts;
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

  // Where no replica is open, once one is.
  void route(std::size_t number) {
    if (router_->is_closed()) return homeless_.push_back(number);
    const Router::Place place = router_->pick(log_.requests[number].prefix);
    place.replica->wait(place.group, number, now_ms_);
    touch(*place.replica);
  }

  // Caches may come at any time, a step is taken up when none is under way.
  void start(Replica& replica) {
    if (only_answers(replica)) {
      for (const std::size_t request : replica.admit()) move(replica, request);
    }
    if (replica.in_step()) return;
    if (replica.begin(now_ms_, pool_of(replica).step_ms)) push(replica.step_end_ms(), &replica, 0);
  }

  void push(double at_ms, Replica* stepped, std::size_t moved) {
    events_.push({.at_ms = at_ms, .order = pushed_++, .stepped = stepped, .moved = moved});
  }

  // There is room for its cache: it sets out.
  void move(Replica& to, std::size_t number) {
    const ServedRequest& request = log_.requests[number];
    const double tokens = request.input_len;
    const Router::Place& from = computed_.at(number);
    to.moves(request.group, tokens);
    from.replica->moves(from.group, tokens);
    push(now_ms_ + deployment_.transfer_ms(tokens, from.replica->load(), to.load()), nullptr, number);
  }

  void happen() {
    const Event event = events_.top();
    events_.pop();
    if (event.outage != nullptr) {
      event.is_over ? come_back(*event.outage) : go(*event.outage);
    } else if (event.stepped != nullptr) {
      const bool goes_on = event.stepped->in_step() && event.stepped->step_end_ms() == event.at_ms;
      if (goes_on) finish(*event.stepped);
    } else {
      arrive(event.moved);
    }
  }

  void go(const Outage& outage) {
    Replica& replica = *answers_[static_cast<std::size_t>(outage.replica)];
    out_.insert(outage.replica);
    open_router();
    if (outage.drains) return;
    for (const std::size_t number : replica.lose_all()) {
      ServedRequest& request = log_.requests[number];
      request.begin_ms = kNotYet;
      request.stalled_ms = request.beside_ms = 0;
      ++request.retries;
      route(number);
    }
  }

  void come_back(const Outage& outage) {
    out_.erase(outage.replica);
    open_router();
    for (const std::size_t number : std::exchange(homeless_, {})) route(number);
  }

  void open_router() {
    std::vector<Replica*> open;
    for (Replica* replica : answers_) {
      if (!out_.contains(replica->number())) open.push_back(replica);
    }
    router_->set_open(std::move(open));
  }

  void arrive(std::size_t number) {
    ServedRequest& request = log_.requests[number];
    request.transfer_ms = now_ms_ - request.first_token_ms;
    request.first_token_ms = now_ms_;  // it is told by who tells the others
    const Router::Place from = computed_.extract(number).mapped();
    from.replica->cache_left(number, from.group);
    touch(*from.replica);
    Replica& to = *answers_[static_cast<std::size_t>(request.replica)];
    to.cache_came(number);
    touch(to);
  }

  void finish(Replica& replica) {
    const Replica::Finished finished = replica.finish();
    touch(replica);
    for (const std::size_t number : finished.computed) {
      computed_[number] = {&replica, log_.requests[number].group};
      const Router::Place place = decoders_->pick(-1);
      place.replica->wait(place.group, number, now_ms_);
      touch(*place.replica);
    }
    done_ += finished.ended.size();
    if (w_.concurrency == 0) return;
    for (std::size_t i = 0; i < finished.ended.size() && source_.more(); ++i) come();
  }

  const ServeWorkload& w_;
  const ServeDeployment& deployment_;
  RequestSource source_;
  ServeLog log_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<Replica*> answers_, prompts_, touched_;
  std::set<int> out_;                  // replicas
  std::vector<std::size_t> homeless_;  // requests
  std::optional<Router> router_, decoders_;
  std::unordered_map<std::size_t, Router::Place> computed_;  // by request: where its cache is
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t pushed_ = 0;
  std::size_t done_ = 0;
  double now_ms_ = 0;
};

}  // namespace

ServeLog serve_requests(const ServeWorkload& workload, const ServeDeployment& deployment, int seed) {
  return Cluster(workload, deployment, seed).run();
}

}  // namespace moeline
