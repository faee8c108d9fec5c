#include "engine/simulate.hpp"

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <boost/heap/d_ary_heap.hpp>
#include <cmath>

#include "engine/domains.hpp"
#include "engine/share.hpp"
#include "engine/stuck.hpp"

namespace moeline {
namespace {

constexpr std::uint32_t kNotLive = ~std::uint32_t{0};

struct Event {
  Time at{};
  TaskId task = 0;
  std::uint32_t live = kNotLive;              // of a task that has begun: where it is, and this is its end
  bool operator<(const Event& other) const {  // the heap pops the greatest: earliest, then smallest id
    return at != other.at ? at > other.at : task > other.task;
  }
};

// What a task that is not live needs.
struct Waits {
  std::array<std::uint32_t, 2> pending{};  // events that its start and its end still wait for
  std::uint32_t live = kNotLive;
};

// A task between its delay and its end. Few at a time: they stay in the cache, however many tasks there are.
struct Live {
  Claim claim{};
  std::uint32_t domain = kNoDomain;
  Hold hold = Hold::nothing;
  bool disturbs = false;
  double disturbed_speed = 1;
  double left_ps = 0;  // work still to do, as time at full speed; negative once it is done
  double speed = 0;
  Time banked_at{-1};             // left_ps is as of this instant; negative before it starts
  Time next = Time::max();        // its event that counts: the others on the queue are stale
  ResourceId recorded = kNoPool;  // the limit of the change recorded last

  [[nodiscard]] bool started() const { return banked_at >= Time::zero(); }
  [[nodiscard]] bool done() const { return left_ps < 0; }  // the end may still have to wait
};

struct Domain {
  // Few at a time, so kept in place: with many ranks it is cache misses that cost.
  boost::container::small_vector<std::uint32_t, 6> running;  // of residents those with all their SMs
  boost::container::small_vector<ResourceId, 2> pools;
  bool dirty = false;
};

constexpr double kDone = -1;  // of Live::left_ps

class Simulation {
 public:
  Simulation(const TaskGraph& graph, const SimulateOptions& options)
      : graph_(graph),
        record_(options.record_changes),
        progress_(options.progress),
        waits_(graph.size()),
        domain_of_(coupled_domains(graph)),
        pools_(graph.resources().size()),
        available_(graph.resources().size()),
        share_(graph.resources().size()) {
    domains_.resize(domain_of_.empty() ? 0 : 1 + *std::max_element(domain_of_.begin(), domain_of_.end()));
    for (ResourceId id = 0; id < graph.resources().size(); ++id) {
      const Resource& resource = graph.resources()[id];
      available_[id] = resource.capacity;
      if (resource.kind == ResourceKind::sm_pool) {
        pools_[id] = SmPool(static_cast<int>(resource.capacity));
        domains_[domain_of_[id]].pools.push_back(id);
      }
    }
    timeline_.spans.resize(graph.size());
    for (EventId event = 0; event < 2 * graph.size(); ++event) {
      for (const EventId successor : graph.successors(event)) ++pending(successor);
    }
  }

  Timeline run() {
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (pending(start_of(task)) == 0) release(task);
    }
    settle();
    while (next_instant()) {
      settle();
      if (progress_) tell_progress();
    }
    if (ended_count_ < graph_.size()) throw_stuck();
    timeline_.makespan = now_;
    return std::move(timeline_);
  }

 private:
  // Takes every event of the earliest instant off the queue; false when nothing is left to happen.
  bool next_instant() {
    bool any = false;
    while (!events_.empty() && (!any || events_.top().at == now_)) {
      const Event event = events_.top();
      events_.pop();
      if (event.live != kNotLive && !is_end(event)) continue;
      now_ = event.at;
      any = true;
      if (event.live == kNotLive) {
        ready_.push_back(event.task);
      } else {
        live_[event.live].left_ps = 0;  // a completion event defines completion
        work_done(event.live);
      }
    }
    return any;
  }

  // The event is not stale, and its task not slower than it was; of one that is, a later event is pushed.
  bool is_end(const Event& event) {
    Live& live = live_[event.live];
    if (live.claim.task != event.task || event.at != live.next) return false;
    live.next = Time::max();
    const Time end = completion(live);
    if (end > event.at) push(event.live, end);
    return end <= event.at;
  }

  // Carries out all that happens at this instant: ends and releases first, then SMs and shares, until all is quiet.
  void settle() {
    while (!ended_.empty() || !ready_.empty() || !dirty_.empty()) {
      while (!ended_.empty() || !ready_.empty()) {
        for_each_now(ended_, [this](std::uint32_t live) { finish(live); });
        sort(ready_);
        for_each_now(ready_, [this](TaskId task) { begin(task); });
      }
      sort(dirty_);
      for_each_now(dirty_, [this](std::uint32_t domain) { reshare(domains_[domain]); });
    }
  }

  static void sort(std::vector<std::uint32_t>& list) {
    if (list.size() > 1) std::sort(list.begin(), list.end());  // most often there is one
  }

  // Takes what is in the list; what comes into it meanwhile stays for the next time.
  template <class Use>
  static void for_each_now(std::vector<std::uint32_t>& list, Use use) {
    const std::size_t count = list.size();
    for (std::size_t i = 0; i < count; ++i) use(list[i]);
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void arrive(EventId event) {
    if (--pending(event) > 0) return;
    if (is_start(event)) {
      release(task_of(event));
    } else {
      ended_.push_back(waits_[task_of(event)].live);
    }
  }

  void release(TaskId task) {
    const Time delay = graph_.task(task).delay;
    if (delay == Time::zero()) {
      ready_.push_back(task);
    } else {
      events_.push({later(task, now_, static_cast<double>(delay.count())), task});
    }
  }

  void begin(TaskId id) {
    const Task& task = graph_.task(id);
    timeline_.spans[id].ready = now_;
    const std::uint32_t number = make_live(id, task);
    const std::uint32_t domain = live_[number].domain;
    if (task.hold == Hold::resident) {
      pools_[task.pool].enqueue({id, now_, task.sms, 0});
      touch(domain);
    } else if (domain != kNoDomain) {
      domains_[domain].running.push_back(number);
      touch(domain);
    } else {
      set_speed(number, 1);
    }
  }

  std::uint32_t make_live(TaskId id, const Task& task) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(live_.size()));
      live_.emplace_back();
    }
    const std::uint32_t number = waits_[id].live = free_.back();
    free_.pop_back();
    const double elastic_sms = task.hold == Hold::elastic ? task.sms : 0;
    const std::span<const Usage> links = graph_.usages(id);
    live_[number] = {.claim = {.task = id, .elastic_sms = elastic_sms, .pool = task.pool, .links = links},
                     .domain = moeline::domain_of(task.pool, links, domain_of_),
                     .hold = task.hold,
                     .disturbs = task.disturbs,
                     .disturbed_speed = task.disturbed_speed,
                     .left_ps = static_cast<double>(task.solo.count())};
    return number;
  }

  void finish(std::uint32_t number) {
    const TaskId id = live_[number].claim.task;
    const std::uint32_t domain = live_[number].domain;
    timeline_.spans[id].end = now_;
    ++ended_count_;
    if (live_[number].hold == Hold::resident) pools_[live_[number].claim.pool].release(graph_.task(id).sms);
    if (domain != kNoDomain) {
      auto& running = domains_[domain].running;
      running.erase(std::find(running.begin(), running.end(), number));
      touch(domain);
    }
    if (record_) timeline_.changes.push_back({now_, id, kNoPool, 0, 0});
    free_.push_back(number);
    for (const EventId successor : graph_.successors(end_of(id))) arrive(successor);
  }

  void start(std::uint32_t number) {
    const TaskId id = live_[number].claim.task;
    timeline_.spans[id].start = now_;
    for (const EventId successor : graph_.successors(start_of(id))) {
      if (successor != end_of(id)) arrive(successor);  // its own end waits for its work, not for its start
    }
    if (live_[number].left_ps == 0) work_done(number);
  }

  // From here on it uses no link.
  void work_done(std::uint32_t number) {
    Live& live = live_[number];
    live.left_ps = kDone;
    live.next = Time::max();
    live.claim.links = {};
    record(live, live.recorded == live.claim.pool ? live.recorded : kNoPool);  // it keeps its share of SMs alone
    if (live.domain != kNoDomain) touch(live.domain);
    arrive(end_of(live.claim.task));
  }

  void touch(std::uint32_t domain) {
    if (domains_[domain].dirty) return;
    domains_[domain].dirty = true;
    dirty_.push_back(domain);
  }

  // Residents take free SMs; then everything that runs in the domain gets its fair speed.
  void reshare(Domain& domain) {
    domain.dirty = false;
    for (const ResourceId pool : domain.pools) {
      while (const auto admitted = pools_[pool].admit_next()) {
        if (admitted->complete()) {
          domain.running.push_back(waits_[admitted->task].live);
        } else if (record_) {
          timeline_.changes.push_back({now_, admitted->task, pool, 0, static_cast<double>(admitted->held)});
        }
      }
      available_[pool] = pools_[pool].free();
    }
    claims_.clear();
    for (const std::uint32_t number : domain.running) {
      Live& live = live_[number];
      if (live.disturbed_speed < 1) live.claim.most = is_disturbed(domain, live) ? live.disturbed_speed : 1;
      claims_.push_back(&live.claim);
    }
    share();
    // What starts comes first: it is why the others change.
    for (const std::uint32_t number : domain.running) {
      if (!live_[number].started()) set_speed(number, live_[number].claim.speed);
    }
    for (const std::uint32_t number : domain.running) {
      const Live& live = live_[number];
      if (record_ || live.claim.speed != live.speed) set_speed(number, live.claim.speed);
    }
  }

  // The common case is a task alone, or none: the graph lets none ask for more than a link carries.
  void share() {
    if (claims_.empty()) return;
    Claim& first = *claims_.front();
    const bool has_sms = first.elastic_sms == 0 || first.elastic_sms <= available_[first.pool];
    if (claims_.size() > 1 || !has_sms) return share_(claims_, available_);
    first.speed = first.most;
    first.limit = kNoPool;
  }

  // Whether another task that disturbs runs in its pool: a resident one, or an elastic one that gets SMs.
  [[nodiscard]] bool is_disturbed(const Domain& domain, const Live& live) const {
    const ResourceId pool = live.claim.pool;
    return std::any_of(domain.running.begin(), domain.running.end(), [&](std::uint32_t other) {
      const Live& beside = live_[other];
      const bool runs = !beside.done() && (beside.hold == Hold::resident || available_[pool] > 0);
      return beside.disturbs && beside.claim.pool == pool && &beside != &live && runs;
    });
  }

  // Banks the work done at the old speed, and sees to it that an event comes no later than the completion that the new
  // one leads to. Of a task that is slowed down the old one comes too early, and is put off then: a transfer is slowed
  // down and let go by every kernel beside it.
  void set_speed(std::uint32_t number, double speed) {
    Live& live = live_[number];
    if (speed == live.speed) return record_limit(live);
    if (live.speed > 0 && !live.done()) {
      const auto elapsed = static_cast<double>((now_ - live.banked_at).count());
      live.left_ps = std::max(0.0, live.left_ps - elapsed * live.speed);
    }
    const bool starts = !live.started();
    live.banked_at = now_;
    live.speed = speed;
    record(live, live.claim.limit);
    if (starts) start(number);
    if (live.done()) return;
    const Time end = speed > 0 ? completion(live) : Time::max();
    if (speed == 0) live.next = Time::max();
    if (end < live.next) push(number, end);
  }

  // REQUIRES: a speed above 0.
  [[nodiscard]] Time completion(const Live& live) const {
    return later(live.claim.task, live.banked_at, std::ceil(live.left_ps / live.speed));
  }

  void record(Live& live, ResourceId limit) {
    if (!record_) return;
    const int wanted = graph_.task(live.claim.task).sms;
    const double sms = live.hold == Hold::elastic ? wanted * live.speed : wanted;
    timeline_.changes.push_back({now_, live.claim.task, limit, live.done() ? 0 : live.speed, sms});
    live.recorded = limit;
  }

  // Something else may limit it to the same speed.
  void record_limit(Live& live) {
    if (record_ && live.started() && live.claim.limit != live.recorded) record(live, live.claim.limit);
  }

  void push(std::uint32_t number, Time at) {
    live_[number].next = at;
    events_.push({at, live_[number].claim.task, number});
  }

  [[nodiscard]] Time later(TaskId id, Time from, double ps) const {
    if (!(ps < static_cast<double>((Time::max() - from).count()))) throw_late(id);
    return from + Time{static_cast<std::int64_t>(ps)};
  }

  [[noreturn]] void throw_late(TaskId id) const {
    throw SpecError("the timeline passes 106 days at task '" + graph_.task_name(id) + "'");
  }

  [[noreturn]] void throw_stuck() const {
    std::vector<StuckTask> stuck;
    for (TaskId id = 0; id < graph_.size(); ++id) {
      const Waits& waits = waits_[id];
      if (waits.pending[1] == 0) continue;
      if (waits.pending[0] > 0) {
        stuck.push_back({id, Stuck::never_released});
      } else {
        stuck.push_back({id, live_[waits.live].done() ? Stuck::may_not_end : Stuck::no_sms});
      }
    }
    throw SpecError(describe_stuck(graph_, stuck));
  }

  void tell_progress() {
    constexpr std::size_t kMany = 1 << 16;
    if (ended_count_ - told_ < kMany) return;
    told_ = ended_count_;
    progress_("tasks", told_, graph_.size());
  }

  std::uint32_t& pending(EventId event) { return waits_[task_of(event)].pending[event % 2]; }

  const TaskGraph& graph_;
  bool record_;
  const Progress& progress_;
  std::size_t told_ = 0;  // tasks that it was told of
  Time now_{};
  std::size_t ended_count_ = 0;
  Timeline timeline_;
  std::vector<Waits> waits_;  // by task
  std::vector<Live> live_;
  std::vector<std::uint32_t> free_;       // of live_
  std::vector<std::uint32_t> domain_of_;  // by resource
  std::vector<Domain> domains_;
  std::vector<SmPool> pools_;      // by resource; of links unused
  std::vector<double> available_;  // by resource: a link's capacity, a pool's SMs that residents leave
  FairShare share_;
  boost::heap::d_ary_heap<Event, boost::heap::arity<4>> events_;
  std::vector<TaskId> ready_;
  std::vector<std::uint32_t> ended_;  // of live_
  std::vector<std::uint32_t> dirty_;  // domains
  std::vector<Claim*> claims_;
};

}  // namespace

Timeline simulate(const TaskGraph& graph, const SimulateOptions& options) { return Simulation(graph, options).run(); }

std::size_t simulate_bytes_per_task() { return sizeof(Waits) + sizeof(Span); }

}  // namespace moeline
