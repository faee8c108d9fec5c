// At every instant of every run: no resource gives more than it has, what is scarce is shared fairly, and residents get
// SMs first, in order.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/random_runs.hpp"
#include "tests/support/replay.hpp"

TEST_SUITE("engine/sharing_properties") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr double kTolerance = 1e-9;  // of a capacity or a speed: rounding of doubles

std::string overload(const RandomRun& run) {
  for (Replay replay(run.graph, run.timeline); replay.next();) {
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
  Fairness(const RandomRun& run, const Replay& replay)
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

  const RandomRun& run_;
  const Replay& replay_;
  std::vector<double> left_, fastest_;  // by resource
};

// The most that its neighbours leave it.
double most(const RandomRun& run, const Replay& replay, TaskId id) {
  const Task& task = run.graph.task(id);
  if (task.pool == kNoPool) return 1;
  double held = 0;  // SMs of its pool that residents hold, or take while they wait
  for (TaskId other = 0; other < run.graph.size(); ++other) {
    const Task& beside = run.graph.task(other);
    if (beside.pool != task.pool || beside.hold != Hold::resident) continue;
    if (replay.running(other)) held += beside.sms;
    if (replay.waiting(other)) held = run.graph.resources()[task.pool].capacity;
  }
  const bool sms_left = held < run.graph.resources()[task.pool].capacity;
  for (TaskId other = 0; other < run.graph.size(); ++other) {
    const Task& beside = run.graph.task(other);
    const bool runs = replay.running(other) && !replay.worked_out(other);
    const bool has_sms = beside.hold == Hold::resident ? runs : sms_left && (runs || replay.waiting(other));
    if (beside.disturbs && beside.pool == task.pool && other != id && has_sms) return task.disturbed_speed;
  }
  return 1;
}

// Beside a task that disturbs nobody of its pool exceeds its disturbed speed, and without one nobody is held to it:
// then whoever is below full speed has a bottleneck (below).
std::string undisturbed(const RandomRun& run) {
  for (Replay replay(run.graph, run.timeline); replay.next();) {
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      if (replay.running(id) && !replay.worked_out(id) && replay.speed(id) > most(run, replay, id)) {
        return fmt::format("{}, runs at {} at {} ps", describe(run, id), replay.speed(id), replay.now().count());
      }
    }
  }
  return "";
}

std::string unfairness(const RandomRun& run) {
  for (Replay replay(run.graph, run.timeline); replay.next();) {
    const Fairness fairness(run, replay);
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      const bool resident = run.graph.task(id).hold == Hold::resident;
      const bool wants = replay.running(id) ? !replay.worked_out(id) || run.graph.task(id).hold == Hold::elastic
                                            : !resident && replay.waiting(id);
      if (!wants || replay.share(id) >= most(run, replay, id) - kTolerance || fairness.has_bottleneck(id)) continue;
      return fmt::format("{}, gets {} at {} ps", describe(run, id), replay.share(id), replay.now().count());
    }
  }
  return "";
}

std::string sms_given_back_early(const RandomRun& run) {
  for (Replay replay(run.graph, run.timeline); replay.next();) {
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
std::string waiting_in_vain(const RandomRun& run) {
  for (Replay replay(run.graph, run.timeline); replay.next();) {
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

// Equal readiness is a tie that ids break, unless one of the two was released by what started at that same instant:
// then the other may have taken the SMs before.
bool goes_first(const RandomRun& run, TaskId a, TaskId b) {
  const Time x = run.timeline.spans[a].ready, y = run.timeline.spans[b].ready;
  const bool tie = x == y && run.graph.task(a).delay > Time::zero() && run.graph.task(b).delay > Time::zero();
  return x < y || (tie && a < b);
}

std::string admitted_out_of_order(const RandomRun& run) {
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

}  // namespace

TEST_CASE("no pool and no link ever gives more than it has") { none_in_any_run(overload); }

TEST_CASE("a resident holds all its SMs from its start to its end") { none_in_any_run(sms_given_back_early); }

TEST_CASE("whoever is slowed down has a bottleneck, on which nobody is faster") { none_in_any_run(unfairness); }

TEST_CASE("beside a task that disturbs, none is faster than its disturbed speed") { none_in_any_run(undisturbed); }

TEST_CASE("a resident waits only for lack of SMs, and no elastic task gets any meanwhile") {
  none_in_any_run(waiting_in_vain);
}

TEST_CASE("residents get the SMs of a pool in order of readiness, then id") { none_in_any_run(admitted_out_of_order); }

}  // TEST_SUITE("engine/sharing_properties")
