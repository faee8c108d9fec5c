// What must hold of every run, on random graphs: several ranks whose links are shared within and across them, all
// holds and all kinds of edges, barriers, times of zero, whole times that tie, ids in no topological order.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/share.hpp"
#include "engine/simulate.hpp"

using namespace moeline;

namespace {

constexpr std::uint64_t kGraphs = 300;
constexpr double kTolerance = 1e-9;  // of a capacity or a speed: rounding of doubles
constexpr double kBankedPs = 1e-3;   // of work: rounding of doubles, each time a speed changes

struct Dice {
  std::mt19937_64 bits;  // not <random>'s distributions: their results differ between standard libraries
  std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }
};

struct Shape {
  bool residents = true;
  bool ends_wait = true;  // barriers and end(A) -> end(B): what can deadlock
  int time_scale = 1;
  std::uint64_t edge_order = 0;  // another value: the same edges, written in another order
};

struct Edge {
  void (TaskGraphDraft::*order)(TaskId, TaskId);
  TaskId before, after;
};

// Draws one random graph into a draft, after whatever the draft already holds.
class Drawing {
 public:
  Drawing(std::uint64_t seed, Shape shape, TaskGraphDraft& draft)
      : dice_{std::mt19937_64(seed)}, seed_(seed), shape_(shape), draft_(draft) {
    draw_ranks();
    for (std::uint64_t left = 5 + dice_.below(40); left > 0; --left) draw_group();
    // Edges lead from group to group in this order, so there is no cycle, and ids say nothing about it.
    dice_.shuffle(groups_);
    for (std::size_t after = 1; after < groups_.size(); ++after) {
      for (std::uint64_t left = dice_.below(4); left > 0; --left) draw_edge(dice_.below(after), after);
    }
    Dice{std::mt19937_64(shape.edge_order)}.shuffle(edges_);
    for (const Edge& edge : edges_) (draft_.*edge.order)(edge.before, edge.after);
  }

 private:
  struct Rank {
    ResourceId pool;
    int sms;
    std::vector<ResourceId> links;
  };

  void draw_ranks() {
    const int sizes[] = {2, 20, 132};
    for (std::uint64_t rank = 0, count = 1 + dice_.below(4); rank < count; ++rank) {
      const int sms = sizes[dice_.below(3)];
      const ResourceId pool = draft_.add_pool(fmt::format("SMs {}", rank), sms);
      ranks_.push_back({pool, sms, {add_link("HBM", 100), add_link("NIC", 10)}});
    }
    if (dice_.percent(50)) {
      const ResourceId across = add_link("switch", 31.4);
      for (Rank& rank : ranks_) rank.links.push_back(across);
    }
  }

  ResourceId add_link(const std::string& name, double capacity) {
    capacities_.resize(draft_.add_link(name, capacity) + std::size_t{1});
    capacities_.back() = capacity;
    return static_cast<ResourceId>(capacities_.size() - 1);
  }

  // One task, or a barrier: a spin per rank, and the join they wait for.
  void draw_group() {
    if (!shape_.ends_wait || !dice_.percent(8)) {
      groups_.push_back({draw_task()});
      return;
    }
    const TaskId join = add({}, {});
    groups_.push_back({join});
    for (const Rank& rank : ranks_) {
      const TaskId spin = add(held(Hold::resident, rank, 1 + dice_.below(2)), {});
      edges_.push_back({&TaskGraphDraft::start_after_start, spin, join});
      edges_.push_back({&TaskGraphDraft::end_after_end, join, spin});
      groups_.back().push_back(spin);
    }
  }

  TaskId draw_task() {
    const Rank& rank = ranks_[dice_.below(ranks_.size())];
    const auto wanted = 1 + (dice_.percent(30) ? dice_.below(2) : dice_.below(static_cast<std::uint64_t>(rank.sms)));
    Task task;
    const std::uint64_t hold = dice_.below(3);
    if (hold == 1) task = held(Hold::elastic, rank, wanted);
    if (hold == 2) task = held(shape_.residents ? Hold::resident : Hold::elastic, rank, wanted);
    task.solo = draw_time(15);
    task.delay = draw_time(70);
    return add(task, draw_usages(rank));
  }

  static Task held(Hold hold, const Rank& rank, std::uint64_t sms) {
    Task task;
    task.pool = rank.pool;
    task.sms = static_cast<std::uint16_t>(sms);
    task.hold = hold;
    return task;
  }

  TaskId add(const Task& task, const std::vector<Usage>& usages) {
    return draft_.add(task, fmt::format("task {} of graph {}", draft_.size(), seed_), usages);
  }

  std::vector<Usage> draw_usages(const Rank& rank) {
    std::vector<Usage> usages;
    for (const ResourceId own : rank.links) {
      if (!dice_.percent(40)) continue;
      const Rank& other = ranks_[dice_.below(ranks_.size())];
      const ResourceId link = dice_.percent(20) ? other.links[0] : own;
      if (std::any_of(usages.begin(), usages.end(), [&](const Usage& u) { return u.link == link; })) continue;
      const double part = dice_.percent(10) ? 0 : static_cast<double>(1 + dice_.below(1000)) / 1000;
      usages.push_back({link, part * capacities_[link]});
    }
    return usages;
  }

  // Many times are whole microseconds, so that events fall on one instant; some are a few picoseconds.
  Time draw_time(std::uint64_t percent_zero) {
    if (dice_.percent(percent_zero)) return Time::zero();
    const std::uint64_t kind = dice_.below(100);
    const std::uint64_t ps = kind < 50   ? 1'000'000 * (1 + dice_.below(8))
                             : kind < 60 ? 1 + dice_.below(5)
                                         : 1 + dice_.below(10'000'000);
    return Time{static_cast<std::int64_t>(ps)} * shape_.time_scale;
  }

  void draw_edge(std::size_t before, std::size_t after) {
    const auto any_of = [&](const std::vector<TaskId>& group) { return group[dice_.below(group.size())]; };
    const std::uint64_t kind = dice_.below(100);
    const auto order = kind < 70                        ? &TaskGraphDraft::start_after_end
                       : kind < 90 || !shape_.ends_wait ? &TaskGraphDraft::start_after_start
                                                        : &TaskGraphDraft::end_after_end;
    const TaskId from = any_of(groups_[before]);
    edges_.push_back({order, from, any_of(groups_[after])});
  }

  Dice dice_;
  std::uint64_t seed_;
  Shape shape_;
  TaskGraphDraft& draft_;
  std::vector<Rank> ranks_;
  std::vector<double> capacities_;  // by resource; of pools unused
  std::vector<std::vector<TaskId>> groups_;
  std::vector<Edge> edges_;
};

TaskGraph draw(std::uint64_t seed, Shape shape = {}) {
  TaskGraphDraft draft;
  Drawing(seed, shape, draft);
  return TaskGraph(std::move(draft));
}

struct Run {
  std::uint64_t seed;
  TaskGraph graph;
  Timeline timeline;
};

// Every second graph has ends that wait; those of them that deadlock are the subject of a case of their own.
Shape shape_of(std::uint64_t seed) { return {.ends_wait = seed % 2 == 1}; }

const std::vector<Run>& runs() {
  static const std::vector<Run> all = [] {
    std::vector<Run> done;
    for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
      TaskGraph graph = draw(seed, shape_of(seed));
      try {
        Timeline timeline = simulate(graph, {.record_changes = true});
        done.push_back({seed, std::move(graph), std::move(timeline)});
      } catch (const SpecError&) {
        REQUIRE(shape_of(seed).ends_wait);
      }
    }
    return done;
  }();
  return all;
}

/// Checks `violation` of every run: the first thing found wrong, or "".
template <class Violation>
void none_in_any_run(Violation violation) {
  for (const Run& run : runs()) {
    CAPTURE(run.seed);
    CHECK(violation(run) == "");
  }
}

double ps(Time time) { return static_cast<double>(time.count()); }

std::string describe(const Run& run, TaskId id) {
  const Span& span = run.timeline.spans[id];
  return fmt::format("task {}: ready {}, start {}, end {} ps", id, span.ready.count(), span.start.count(),
                     span.end.count());
}

bool same_spans(std::span<const Span> a, std::span<const Span> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Span& x, const Span& y) {
    return x.ready == y.ready && x.start == y.start && x.end == y.end;
  });
}

Time critical_path(const TaskGraph& graph) {
  std::vector<Time> at(2 * graph.size());
  Time last{};
  for (const EventId event : graph.topological_order()) {
    const Task& task = graph.task(task_of(event));
    if (is_start(event)) at[event] += task.delay;
    for (const EventId next : graph.successors(event)) {
      const Time work = next == end_of(task_of(event)) ? task.solo : Time::zero();
      at[next] = std::max(at[next], at[event] + work);
    }
    last = std::max(last, at[event]);
  }
  return last;
}

// At full speed: the picoseconds for which each resource is busy with its work, and no other way round.
std::vector<double> busy_ps(const TaskGraph& graph) {
  std::vector<double> busy(graph.resources().size());
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Task& task = graph.task(id);
    if (task.pool != kNoPool) busy[task.pool] += ps(task.solo) * task.sms / graph.resources()[task.pool].capacity;
    for (const Usage& usage : graph.usages(id)) {
      busy[usage.link] += ps(task.solo) * usage.rate / graph.resources()[usage.link].capacity;
    }
  }
  return busy;
}

// The recorded changes, played back instant by instant.
class Replay {
 public:
  explicit Replay(const Run& run) : run_(run), tasks_(run.graph.size()) {
    for (TaskId id = 0; id < run.graph.size(); ++id) tasks_[id].left_ps = ps(run.graph.task(id).solo);
  }

  /// Applies all changes of the next instant; false after the last.
  bool next() {
    const std::vector<Change>& changes = run_.timeline.changes;
    if (position_ == changes.size()) return false;
    for (now_ = changes[position_].at; position_ < changes.size() && changes[position_].at == now_; ++position_) {
      const Change& change = changes[position_];
      Played& task = tasks_[change.task];
      task.worked_out = worked_out(change.task);  // before rounding leaves a trace of work behind
      task.left_ps -= ps(now_ - task.since) * task.speed;
      task.since = now_;
      task.speed = change.speed;
      task.sms = change.sms;
    }
    return true;
  }

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] double sms(TaskId id) const { return tasks_[id].sms; }
  [[nodiscard]] double speed(TaskId id) const { return tasks_[id].speed; }
  /// What it gets of what it wants: its speed, and of an elastic task that has done its work, what it keeps.
  [[nodiscard]] double share(TaskId id) const {
    const Task& task = run_.graph.task(id);
    return task.hold == Hold::elastic ? sms(id) / task.sms : speed(id);
  }
  [[nodiscard]] double left_ps(TaskId id) const {
    return tasks_[id].left_ps - ps(now_ - tasks_[id].since) * tasks_[id].speed;
  }
  [[nodiscard]] const Span& span(TaskId id) const { return run_.timeline.spans[id]; }
  /// Between its start and its end: a task that has started may be starved, and one whose work is done may wait.
  [[nodiscard]] bool running(TaskId id) const { return span(id).start <= now_ && now_ < span(id).end; }
  [[nodiscard]] bool waiting(TaskId id) const { return span(id).ready <= now_ && now_ < span(id).start; }
  /// Its completion has come: the first whole picosecond at which no work is left.
  [[nodiscard]] bool worked_out(TaskId id) const {
    const Played& task = tasks_[id];
    if (task.worked_out || task.left_ps == 0) return true;
    return task.speed > 0 && task.since + Time{static_cast<std::int64_t>(std::ceil(task.left_ps / task.speed))} <= now_;
  }

  /// What the tasks take of each resource. A task that has done its work uses no link, and keeps its SMs.
  [[nodiscard]] std::vector<double> taken() const {
    std::vector<double> sum(run_.graph.resources().size());
    for (TaskId id = 0; id < run_.graph.size(); ++id) {
      if (!running(id)) continue;
      if (const ResourceId pool = run_.graph.task(id).pool; pool != kNoPool) sum[pool] += sms(id);
      for (const Usage& usage : run_.graph.usages(id)) sum[usage.link] += usage.rate * speed(id);
    }
    return sum;
  }

 private:
  struct Played {
    double left_ps = 0, speed = 0, sms = 0;
    bool worked_out = false;
    Time since{};
  };
  const Run& run_;
  std::vector<Played> tasks_;
  std::size_t position_ = 0;
  Time now_{};
};

std::string overload(const Run& run) {
  for (Replay replay(run); replay.next();) {
    const std::vector<double> taken = replay.taken();
    for (ResourceId id = 0; id < taken.size(); ++id) {
      const Resource& resource = run.graph.resources()[id];
      if (taken[id] > resource.capacity * (1 + kTolerance)) {
        return fmt::format("at {} ps: {} of {} '{}'", replay.now().count(), taken[id], resource.capacity,
                           resource.name);
      }
    }
  }
  return "";
}

// Max-min fairness by its defining property (Bertsekas and Gallager, Data Networks, 6.5.2): every task below full
// speed has a bottleneck, a resource that is exhausted and on which no other task is faster.
class Fairness {
 public:
  Fairness(const Run& run, const Replay& replay)
      : run_(run), replay_(replay), left_(run.graph.resources().size()), fastest_(left_.size()) {
    const std::vector<double> taken = replay.taken();
    for (ResourceId id = 0; id < left_.size(); ++id) left_[id] = run.graph.resources()[id].capacity - taken[id];
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      const Task& task = run.graph.task(id);
      // An incomplete resident takes all that is free.
      if (task.hold == Hold::resident && replay.waiting(id)) left_[task.pool] = 0;
      each_shared(id, [&](ResourceId shared) { fastest_[shared] = std::max(fastest_[shared], replay.share(id)); });
    }
  }

  [[nodiscard]] bool has_bottleneck(TaskId id) const {
    bool found = false;
    each_shared(id, [&](ResourceId shared) {
      const bool exhausted = left_[shared] <= run_.graph.resources()[shared].capacity * kTolerance;
      found = found || (exhausted && replay_.share(id) >= fastest_[shared] - kTolerance);
    });
    return found;
  }

 private:
  template <class Action>
  void each_shared(TaskId id, Action action) const {
    const Task& task = run_.graph.task(id);
    if (task.hold == Hold::elastic) action(task.pool);
    if (replay_.worked_out(id)) return;
    for (const Usage& usage : run_.graph.usages(id)) {
      if (usage.rate > 0) action(usage.link);
    }
  }

  const Run& run_;
  const Replay& replay_;
  std::vector<double> left_, fastest_;  // by resource
};

std::string unfairness(const Run& run) {
  for (Replay replay(run); replay.next();) {
    const Fairness fairness(run, replay);
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      const bool resident = run.graph.task(id).hold == Hold::resident;
      const bool wants = replay.running(id) ? !replay.worked_out(id) || run.graph.task(id).hold == Hold::elastic
                                            : !resident && replay.waiting(id);
      if (!wants || replay.share(id) == 1 || fairness.has_bottleneck(id)) continue;
      return fmt::format("{}, gets {} at {} ps", describe(run, id), replay.share(id), replay.now().count());
    }
  }
  return "";
}

std::string sms_given_back_early(const Run& run) {
  for (Replay replay(run); replay.next();) {
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      const Task& task = run.graph.task(id);
      if (task.hold != Hold::resident || !replay.running(id)) continue;
      if (replay.sms(id) != task.sms) return describe(run, id);
    }
  }
  return "";
}

// While a resident waits, the oldest of its pool lacks SMs, has taken all that residents leave, and elastic tasks
// starve.
std::string waiting_in_vain(const Run& run) {
  for (Replay replay(run); replay.next();) {
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      const Task& task = run.graph.task(id);
      if (task.hold != Hold::resident || !replay.waiting(id)) continue;
      double left = run.graph.resources()[task.pool].capacity, wanted = task.sms;
      for (TaskId other = 0; other < run.graph.size(); ++other) {
        const Task& beside = run.graph.task(other);
        if (beside.pool != task.pool) continue;
        if (beside.hold == Hold::elastic && replay.running(other) && replay.sms(other) > 0) return describe(run, other);
        if (beside.hold == Hold::resident && replay.running(other)) left -= beside.sms;
        const bool as_old = replay.waiting(other) && replay.span(other).ready <= replay.span(id).ready;
        if (beside.hold == Hold::resident && as_old) wanted = std::max<double>(wanted, beside.sms);
      }
      if (wanted <= left) return describe(run, id);
    }
  }
  return "";
}

// Equal readiness is a tie that ids break, unless one of the two was released by what started at that same instant: then
// the other may have taken the SMs before.
bool goes_first(const Run& run, TaskId a, TaskId b) {
  const Time x = run.timeline.spans[a].ready, y = run.timeline.spans[b].ready;
  const bool tie = x == y && run.graph.task(a).delay > Time::zero() && run.graph.task(b).delay > Time::zero();
  return x < y || (tie && a < b);
}

std::string admitted_out_of_order(const Run& run) {
  std::vector<std::vector<TaskId>> residents(run.graph.resources().size());
  for (TaskId id = 0; id < run.graph.size(); ++id) {
    if (run.graph.task(id).hold == Hold::resident) residents[run.graph.task(id).pool].push_back(id);
  }
  for (const std::vector<TaskId>& of_pool : residents) {
    for (const TaskId a : of_pool) {
      for (const TaskId b : of_pool) {
        const bool late = run.timeline.spans[a].start > run.timeline.spans[b].start;
        if (goes_first(run, a, b) && late) return describe(run, a) + "; " + describe(run, b);
      }
    }
  }
  return "";
}

std::string broken_edge(const Run& run) {
  const std::vector<Span>& spans = run.timeline.spans;
  std::vector<Time> released(run.graph.size());
  for (EventId event = 0; event < 2 * run.graph.size(); ++event) {
    const Span& before = spans[task_of(event)];
    const Time at = is_start(event) ? before.start : before.end;
    for (const EventId next : run.graph.successors(event)) {
      if (is_start(next)) {
        released[task_of(next)] = std::max(released[task_of(next)], at);
      } else if (spans[task_of(next)].end < at) {
        return describe(run, task_of(event)) + "; " + describe(run, task_of(next));
      }
    }
  }
  for (TaskId id = 0; id < run.graph.size(); ++id) {
    if (spans[id].ready != released[id] + run.graph.task(id).delay) return describe(run, id);
  }
  return "";
}

std::vector<bool> ends_that_wait(const TaskGraph& graph) {
  std::vector<bool> waits(graph.size(), false);
  for (EventId event = 0; event < 2 * graph.size(); ++event) {
    for (const EventId next : graph.successors(event)) {
      if (!is_start(next) && task_of(next) != task_of(event)) waits[task_of(next)] = true;
    }
  }
  return waits;
}

std::string work_lost_or_gained(const Run& run) {
  Replay replay(run);
  std::vector<double> left(run.graph.size());
  while (replay.next()) {
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      if (replay.span(id).end == replay.now()) left[id] = replay.left_ps(id);
    }
  }
  const std::vector<bool> waits = ends_that_wait(run.graph);
  for (TaskId id = 0; id < run.graph.size(); ++id) {
    // A task ends at the first whole picosecond after its work, so it may do one picosecond too much.
    const bool right = left[id] <= kBankedPs && (waits[id] || left[id] >= -1 - kBankedPs);
    if (!right) return fmt::format("{}, ends with {} ps of work left", describe(run, id), left[id]);
  }
  return "";
}

// Claims as one domain of a graph would make them: integer demands, so that near-ties are ties.
struct ClaimSet {
  explicit ClaimSet(Dice& dice) : usages(1 + dice.below(7)) {
    for (std::size_t resource = 0; resource < kResources; ++resource) {
      available.push_back(dice.percent(10) && resource < kPools ? 0 : static_cast<double>(1 + dice.below(60)));
    }
    for (std::vector<Usage>& of_task : usages) {
      Claim claim;
      if (dice.percent(60)) claim.pool = static_cast<ResourceId>(dice.below(kPools));
      if (claim.pool != kNoPool && dice.percent(70)) claim.elastic_sms = static_cast<double>(1 + dice.below(60));
      for (ResourceId link = kPools; link < kResources; ++link) {
        if (dice.percent(40)) of_task.push_back({link, static_cast<double>(dice.below(40))});
      }
      claim.links = of_task;
      claims.push_back(claim);
    }
  }

  [[nodiscard]] double demand(std::size_t claim, std::size_t resource) const {
    double sum = claims[claim].pool == resource ? claims[claim].elastic_sms : 0;
    for (const Usage& usage : usages[claim]) sum += usage.link == resource ? usage.rate : 0;
    return sum;
  }
  [[nodiscard]] double taken(std::size_t resource, std::span<const double> speeds) const {
    double sum = 0;
    for (std::size_t claim = 0; claim < claims.size(); ++claim) sum += demand(claim, resource) * speeds[claim];
    return sum;
  }
  [[nodiscard]] bool fits(std::span<const double> speeds) const {
    for (std::size_t resource = 0; resource < kResources; ++resource) {
      if (taken(resource, speeds) > available[resource] + 1e-12) return false;
    }
    return true;
  }

  static constexpr std::size_t kPools = 2, kResources = 5;
  std::vector<std::vector<Usage>> usages;
  std::vector<double> available;
  std::vector<Claim> claims;
};

// From the definition: find by bisection how far all open speeds rise together, then close whoever cannot rise alone.
std::vector<double> fair_speeds_by_bisection(const ClaimSet& set) {
  std::vector<double> speeds(set.claims.size(), 0.0);
  std::vector<bool> open(speeds.size(), true);
  const auto raised = [&](double level) {
    std::vector<double> to = speeds;
    for (std::size_t claim = 0; claim < to.size(); ++claim) to[claim] = open[claim] ? level : to[claim];
    return to;
  };
  while (std::find(open.begin(), open.end(), true) != open.end()) {
    double low = 0, high = 1;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (set.fits(raised(middle)) ? low : high) = middle;
    }
    speeds = raised(low);
    for (std::size_t claim = 0; claim < speeds.size(); ++claim) {
      std::vector<double> more = speeds;
      more[claim] += 1e-9;
      if (more[claim] > 1 || !set.fits(more)) open[claim] = false;
    }
  }
  return speeds;
}

}  // namespace

TEST_CASE("no run is shorter than its critical path") {
  for (const Run& run : runs()) {
    CAPTURE(run.seed);
    CHECK(run.timeline.makespan >= critical_path(run.graph));
  }
}

TEST_CASE("no run is shorter than the work on any pool or link takes at full capacity") {
  for (const Run& run : runs()) {
    CAPTURE(run.seed);
    for (const double busy : busy_ps(run.graph)) CHECK(ps(run.timeline.makespan) >= busy * (1 - kTolerance));
  }
}

TEST_CASE("the makespan is the end of the last task") {
  for (const Run& run : runs()) {
    CAPTURE(run.seed);
    Time last{};
    for (const Span& span : run.timeline.spans) last = std::max(last, span.end);
    CHECK(run.timeline.makespan == last);
  }
}

TEST_CASE("no pool and no link ever gives more than it has") { none_in_any_run(overload); }

TEST_CASE("a resident holds all its SMs from its start to its end") { none_in_any_run(sms_given_back_early); }

TEST_CASE("whoever is slowed down has a bottleneck, on which nobody is faster") { none_in_any_run(unfairness); }

TEST_CASE("a resident waits only for lack of SMs, and no elastic task gets any meanwhile") {
  none_in_any_run(waiting_in_vain);
}

TEST_CASE("residents get the SMs of a pool in order of readiness, then id") { none_in_any_run(admitted_out_of_order); }

TEST_CASE("every edge is respected, and a task is ready exactly its delay after the last event it waits for") {
  none_in_any_run(broken_edge);
}

TEST_CASE("no task is faster than alone, to the picosecond") {
  none_in_any_run([](const Run& run) -> std::string {
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      const Span& span = run.timeline.spans[id];
      const bool right =
          span.ready <= span.start && span.start <= span.end && span.end - span.start >= run.graph.task(id).solo;
      if (!right) return describe(run, id);
    }
    return "";
  });
}

TEST_CASE("a task ends with the picosecond in which its work is done, and never before") {
  none_in_any_run(work_lost_or_gained);
}

TEST_CASE("speeds agree with max-min fairness computed from its definition") {
  Dice dice{std::mt19937_64(1)};
  FairShare share(ClaimSet::kResources);  // one for all sets: nothing of a set is left to the next
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    ClaimSet set(dice);
    share(set.claims, set.available);
    const std::vector<double> expected = fair_speeds_by_bisection(set);
    for (std::size_t claim = 0; claim < expected.size(); ++claim) {
      CHECK(set.claims[claim].speed == doctest::Approx(expected[claim]).epsilon(1e-8));
    }
  }
}

TEST_CASE("a second run of the same graph gives the same spans") {
  for (const Run& run : runs()) {
    CAPTURE(run.seed);
    CHECK(same_spans(run.timeline.spans, simulate(run.graph).spans));
  }
}

TEST_CASE("the order in which the edges are written does not matter") {
  for (const Run& run : runs()) {
    CAPTURE(run.seed);
    Shape shape = shape_of(run.seed);
    shape.edge_order = 1;
    CHECK(same_spans(run.timeline.spans, simulate(draw(run.seed, shape)).spans));
  }
}

TEST_CASE("graphs that share no resource do not notice each other") {
  const std::vector<Run>& all = runs();
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    CAPTURE(all[i].seed);
    TaskGraphDraft both;
    for (const Run* run : {&all[i], &all[i + 1]}) Drawing(run->seed, shape_of(run->seed), both);
    const Timeline together = simulate(TaskGraph(std::move(both)));
    const std::span<const Span> spans = together.spans;
    CHECK(same_spans(all[i].timeline.spans, spans.first(all[i].graph.size())));
    CHECK(same_spans(all[i + 1].timeline.spans, spans.subspan(all[i].graph.size())));
  }
}

// Not so with residents: whether two of them are ready in the same picosecond decides who goes first.
TEST_CASE("where no resident decides by order, twice the times make twice the makespan") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const auto makespan = [&](int scale) {
      return simulate(draw(seed, {.residents = false, .ends_wait = false, .time_scale = scale})).makespan;
    };
    CHECK(std::abs(ps(makespan(2)) - 2 * ps(makespan(1))) <= 1000);
  }
}

TEST_CASE("a graph whose ends wait for nothing never deadlocks, and a deadlock names a task") {
  std::size_t deadlocks = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    CAPTURE(seed);
    try {
      (void)simulate(draw(seed, shape_of(seed)));
    } catch (const SpecError& error) {
      ++deadlocks;
      CHECK(shape_of(seed).ends_wait);
      CHECK(std::string(error.what()).find(": 'task ") != std::string::npos);
    }
  }
  CHECK(deadlocks > 0);
  CHECK(runs().size() == kGraphs - deadlocks);
  CHECK(runs().size() > kGraphs / 2);
}
