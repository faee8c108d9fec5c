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

struct Event {
  Time at{};
  TaskId task = 0;
  bool operator<(const Event& other) const {  // the heap pops the greatest: earliest, then smallest id
    return at != other.at ? at > other.at : task > other.task;
  }
};

struct Progress {
  double left_ps = 0;  // work still to do, as time at full speed; negative once it is done
  double speed = 0;
  Time banked_at{-1};                      // left_ps is as of this instant; negative before it starts
  Time next = Time::max();                 // its event that counts: the others on the queue are stale
  std::array<std::uint32_t, 2> pending{};  // events that its start and its end still wait for

  [[nodiscard]] bool started() const { return banked_at >= Time::zero(); }
  [[nodiscard]] bool done() const { return left_ps < 0; }  // the end may still have to wait
};

struct Domain {
  // Few at a time, so kept in place: with many ranks it is cache misses that cost.
  boost::container::small_vector<TaskId, 6> running;  // residents with all their SMs, elastic tasks, transfers on links
  boost::container::small_vector<ResourceId, 2> pools;
  bool dirty = false;
};

constexpr double kDone = -1;  // of Progress::left_ps

class Simulation {
 public:
  Simulation(const TaskGraph& graph, const SimulateOptions& options)
      : graph_(graph),
        record_(options.record_changes),
        progress_(graph.size()),
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
    if (record_) limits_.resize(graph.size(), kNoPool);
    for (EventId event = 0; event < 2 * graph.size(); ++event) {
      for (const EventId successor : graph.successors(event)) ++pending(successor);
    }
  }

  Timeline run() {
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (pending(start_of(task)) == 0) release(task);
    }
    settle();
    while (next_instant()) settle();
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
      Progress& progress = progress_[event.task];
      if (event.at != progress.next) continue;
      progress.next = Time::max();
      if (progress.started() && comes_later(event)) continue;
      now_ = event.at;
      any = true;
      if (progress.started()) {
        progress.left_ps = 0;  // a completion event defines completion
        work_done(event.task);
      } else {
        ready_.push_back(event.task);
      }
    }
    return any;
  }

  // Carries out all that happens at this instant: ends and releases first, then SMs and shares, until all is quiet.
  void settle() {
    while (!ended_.empty() || !ready_.empty() || !dirty_.empty()) {
      while (!ended_.empty() || !ready_.empty()) {
        std::swap(ended_, batch_);
        for (const TaskId task : batch_) finish(task);
        batch_.clear();
        std::swap(ready_, batch_);
        std::sort(batch_.begin(), batch_.end());
        for (const TaskId task : batch_) begin(task);
        batch_.clear();
      }
      std::swap(dirty_, sharing_);  // what starts while sharing may touch a domain again
      std::sort(sharing_.begin(), sharing_.end());
      for (const std::uint32_t domain : sharing_) reshare(domains_[domain]);
      sharing_.clear();
    }
  }

  void arrive(EventId event) {
    if (--pending(event) > 0) return;
    if (is_start(event)) {
      release(task_of(event));
    } else {
      ended_.push_back(task_of(event));
    }
  }

  void release(TaskId task) {
    const Time delay = graph_.task(task).delay;
    if (delay == Time::zero()) {
      ready_.push_back(task);
    } else {
      push(task, later(task, now_, static_cast<double>(delay.count())));
    }
  }

  void begin(TaskId id) {
    const Task& task = graph_.task(id);
    timeline_.spans[id].ready = now_;
    progress_[id].left_ps = static_cast<double>(task.solo.count());
    const std::uint32_t domain = domain_of(id);
    if (task.hold == Hold::resident) {
      pools_[task.pool].enqueue({id, now_, task.sms, 0});
      touch(domain);
    } else if (domain != kNoDomain) {
      run_in(domain, id);
    } else {
      set_speed(id, 1);
    }
  }

  void finish(TaskId id) {
    const Task& task = graph_.task(id);
    timeline_.spans[id].end = now_;
    ++ended_count_;
    if (task.hold == Hold::resident) pools_[task.pool].release(task.sms);
    if (const std::uint32_t domain = domain_of(id); domain != kNoDomain) {
      auto& running = domains_[domain].running;
      running.erase(std::find(running.begin(), running.end(), id));
      touch(domain);
    }
    if (record_) timeline_.changes.push_back({now_, id, kNoPool, 0, 0});
    for (const EventId successor : graph_.successors(end_of(id))) arrive(successor);
  }

  void start(TaskId id) {
    timeline_.spans[id].start = now_;
    for (const EventId successor : graph_.successors(start_of(id))) {
      if (successor != end_of(id)) arrive(successor);  // its own end waits for its work, not for its start
    }
    if (progress_[id].left_ps == 0) work_done(id);
  }

  void work_done(TaskId id) {
    Progress& progress = progress_[id];
    progress.left_ps = kDone;
    progress.next = Time::max();
    record(id, limit_of(id) == graph_.task(id).pool ? limit_of(id) : kNoPool);  // it keeps its share of SMs alone
    if (const std::uint32_t domain = domain_of(id); domain != kNoDomain) touch(domain);
    arrive(end_of(id));
  }

  void run_in(std::uint32_t domain, TaskId id) {
    domains_[domain].running.push_back(id);
    touch(domain);
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
          domain.running.push_back(admitted->task);
        } else if (record_) {
          timeline_.changes.push_back({now_, admitted->task, pool, 0, static_cast<double>(admitted->held)});
        }
      }
      available_[pool] = pools_[pool].free();
    }
    claims_.clear();
    for (const TaskId id : domain.running) {
      const Task& task = graph_.task(id);
      Claim claim{.task = id, .pool = task.pool};
      if (task.hold == Hold::elastic) claim.elastic_sms = task.sms;
      if (!progress_[id].done()) claim.links = graph_.usages(id);
      if (task.disturbed_speed < 1 && is_disturbed(domain, id)) claim.most = task.disturbed_speed;
      claims_.push_back(claim);
    }
    share_(claims_, available_);
    // What starts comes first: it is why the others change.
    for (const Claim& claim : claims_) {
      if (!progress_[claim.task].started()) set_speed(claim.task, claim.speed, claim.limit);
    }
    for (const Claim& claim : claims_) set_speed(claim.task, claim.speed, claim.limit);
  }

  // Whether another task that disturbs runs in its pool: a resident one, or an elastic one that gets SMs.
  [[nodiscard]] bool is_disturbed(const Domain& domain, TaskId id) const {
    const ResourceId pool = graph_.task(id).pool;
    return std::any_of(domain.running.begin(), domain.running.end(), [&](TaskId other) {
      const Task& beside = graph_.task(other);
      const bool runs = !progress_[other].done() && (beside.hold == Hold::resident || available_[pool] > 0);
      return beside.disturbs && beside.pool == pool && other != id && runs;
    });
  }

  // Banks the work done at the old speed, and sees to it that an event comes no later than the completion that the new
  // one leads to. Of a task that is slowed down the old one comes too early, and is put off then: a transfer is slowed
  // down and let go by every kernel beside it.
  void set_speed(TaskId id, double speed, ResourceId limit = kNoPool) {
    Progress& progress = progress_[id];
    if (speed == progress.speed) return record_limit(id, limit);
    if (progress.speed > 0 && !progress.done()) {
      const auto elapsed = static_cast<double>((now_ - progress.banked_at).count());
      progress.left_ps = std::max(0.0, progress.left_ps - elapsed * progress.speed);
    }
    const bool starts = !progress.started();
    progress.banked_at = now_;
    progress.speed = speed;
    record(id, limit);
    if (starts) start(id);
    if (progress.done()) return;
    const Time end = speed > 0 ? completion(id) : Time::max();
    if (speed == 0) progress.next = Time::max();
    if (end < progress.next) push(id, end);
  }

  bool comes_later(const Event& event) {
    const Time end = completion(event.task);
    if (end > event.at) push(event.task, end);
    return end > event.at;
  }

  // REQUIRES: a speed above 0.
  [[nodiscard]] Time completion(TaskId id) const {
    const Progress& progress = progress_[id];
    return later(id, progress.banked_at, std::ceil(progress.left_ps / progress.speed));
  }

  void record(TaskId id, ResourceId limit) {
    if (!record_) return;
    const Task& task = graph_.task(id);
    const double speed = progress_[id].speed;
    const double sms = task.hold == Hold::elastic ? task.sms * speed : task.sms;
    timeline_.changes.push_back({now_, id, limit, progress_[id].done() ? 0 : speed, sms});
    limits_[id] = limit;
  }

  [[nodiscard]] ResourceId limit_of(TaskId id) const { return record_ ? limits_[id] : kNoPool; }

  // Something else may limit it to the same speed.
  void record_limit(TaskId id, ResourceId limit) {
    if (record_ && progress_[id].started() && limit != limits_[id]) record(id, limit);
  }

  void push(TaskId id, Time at) {
    progress_[id].next = at;
    events_.push({at, id});
  }

  [[nodiscard]] Time later(TaskId id, Time from, double ps) const {
    if (!(ps < static_cast<double>((Time::max() - from).count()))) {
      throw SpecError("the timeline passes 106 days at task '" + graph_.task_name(id) + "'");
    }
    return from + Time{static_cast<std::int64_t>(ps)};
  }

  [[noreturn]] void throw_stuck() const {
    std::vector<StuckTask> stuck;
    for (TaskId id = 0; id < graph_.size(); ++id) {
      const Progress& progress = progress_[id];
      if (progress.pending[1] == 0) continue;
      if (progress.pending[0] > 0) {
        stuck.push_back({id, Stuck::never_released});
      } else {
        stuck.push_back({id, progress.done() ? Stuck::may_not_end : Stuck::no_sms});
      }
    }
    throw SpecError(describe_stuck(graph_, stuck));
  }

  std::uint32_t& pending(EventId event) { return progress_[task_of(event)].pending[event % 2]; }

  [[nodiscard]] std::uint32_t domain_of(TaskId id) const { return moeline::domain_of(id, graph_, domain_of_); }

  const TaskGraph& graph_;
  bool record_;
  Time now_{};
  std::size_t ended_count_ = 0;
  Timeline timeline_;
  std::vector<ResourceId> limits_;        // by task, of the change recorded last
  std::vector<Progress> progress_;        // by task
  std::vector<std::uint32_t> domain_of_;  // by resource
  std::vector<Domain> domains_;
  std::vector<SmPool> pools_;      // by resource; of links unused
  std::vector<double> available_;  // by resource: a link's capacity, a pool's SMs that residents leave
  FairShare share_;
  boost::heap::d_ary_heap<Event, boost::heap::arity<4>> events_;
  std::vector<TaskId> ready_, ended_, batch_;
  std::vector<std::uint32_t> dirty_, sharing_;
  std::vector<Claim> claims_;
};

}  // namespace

Timeline simulate(const TaskGraph& graph, const SimulateOptions& options) { return Simulation(graph, options).run(); }

std::size_t simulate_bytes_per_task() { return sizeof(Progress) + sizeof(Span); }

}  // namespace moeline
