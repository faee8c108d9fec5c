#include "timeline/gradient.hpp"

#include <algorithm>
#include <utility>

#include "engine/domains.hpp"

namespace moeline {
namespace {

// A task while the walk backwards is between its end and its start.
struct Active {
  double wait = 0, start = 0, done = 0, end = 0;  // blame that these events have been handed
  double work = 0;                                // blame for each ps of work; 0 until its work is done
  double speed = 0;                               // at the instant of the walk
  double share = 0;                               // the same, and what it holds of its SMs once its work is done
  ResourceId limit = kNoPool;
};

class Backwards {
 public:
  Backwards(const TaskGraph& graph, const Timeline& timeline, const History& history)
      : graph_(graph),
        timeline_(timeline),
        history_(history),
        tasks_(graph.size()),
        running_(graph.resources().size()),
        until_(graph.resources().size(), timeline.makespan),
        first_usage_(graph.size() + 1),
        price_(graph.resources().size()) {
    for (TaskId task = 0; task < graph.size(); ++task) {
      first_usage_[task + 1] = first_usage_[task] + graph.usages(task).size();
    }
    gradient_.solo.resize(graph.size());
    gradient_.delay.resize(graph.size());
    gradient_.sms.resize(graph.size());
    gradient_.disturbed.resize(graph.size());
    gradient_.usage.resize(first_usage_.back());
    gradient_.capacity.resize(graph.resources().size());
  }

  Gradient run(Time since) && {
    if (graph_.size() == 0) return std::move(gradient_);
    blame(last_event(timeline_), 1);
    if (since > Time::zero()) blame(first_start(since), -1);
    for (auto at = static_cast<Position>(timeline_.changes.size()); at-- > 0;) undo(at);
    return std::move(gradient_);
  }

 private:
  [[nodiscard]] EventId first_start(Time since) const {
    const auto& spans = timeline_.spans;
    const auto found = std::find_if(spans.begin(), spans.end(), [&](const Span& span) { return span.start == since; });
    return found == spans.end() ? kNoEvent : start_of(static_cast<TaskId>(found - spans.begin()));
  }

  void blame(EventId event, double share) {
    if (event == kNoEvent) return;
    Active& task = tasks_[task_of(event)];
    (is_start(event) ? task.start : task.end) += share;
  }

  void blame_cause(Position at, double share) {
    const Position cause = history_[at].cause;
    if (cause == kNowhere || share == 0) return;
    Active& task = tasks_[timeline_.changes[cause].task];
    switch (history_[cause].kind) {
      case History::Kind::wait:
        task.wait += share;
        break;
      case History::Kind::start:
        task.start += share;
        break;
      case History::Kind::done:
        task.done += share;
        break;
      case History::Kind::end:
        task.end += share;
        break;
      case History::Kind::speed:  // causes nothing
        break;
    }
  }

  void undo(Position at) {
    const Change& change = timeline_.changes[at];
    const std::uint32_t domain = history_.domain_of(change.task);
    if (domain != kNoDomain) back_to(change.at, domain);
    switch (history_[at].kind) {
      case History::Kind::end:
        undo_end(change.task, domain);
        break;
      case History::Kind::done:
        undo_done(at);
        break;
      case History::Kind::speed:
        undo_speed(at);
        break;
      case History::Kind::start:
        undo_speed(at);
        if (domain != kNoDomain) std::erase(running_[domain], change.task);
        undo_beginning(at, tasks_[change.task].start);
        break;
      case History::Kind::wait:
        undo_beginning(at, std::exchange(tasks_[change.task].wait, 0));
        break;
    }
    set_back(at);
  }

  void undo_end(TaskId id, std::uint32_t domain) {
    if (domain != kNoDomain) running_[domain].push_back(id);
    const EventId held_up_by = history_.releases().of_end(id);
    if (held_up_by == kNoEvent) {
      tasks_[id].done += tasks_[id].end;
    } else {
      blame(held_up_by, tasks_[id].end);
    }
  }

  void undo_done(Position at) {
    const TaskId id = timeline_.changes[at].task;
    Active& task = tasks_[id];
    task.work = task.done / timeline_.changes[history_[at].previous].speed;
    gradient_.solo[id] = task.work;
  }

  // A task that goes faster from then on ends the later, the later then is.
  void undo_speed(Position at) {
    const Change& change = timeline_.changes[at];
    const History::Entry& entry = history_[at];
    Active& task = tasks_[change.task];
    const double speed_before = entry.previous == kNowhere ? 0 : timeline_.changes[entry.previous].speed;
    const double share = task.work * (change.speed - speed_before);
    if (entry.kind == History::Kind::start) {
      task.start += share;
    } else {
      blame_cause(at, share);
    }
  }

  // It came when SMs were freed, or else when it was released.
  void undo_beginning(Position at, double share) {
    const Change& change = timeline_.changes[at];
    const Time ready = timeline_.spans[change.task].ready;
    if (change.at > ready) return blame_cause(at, share);
    gradient_.delay[change.task] += share;
    blame(history_.releases().of_start(change.task), share);
  }

  void set_back(Position at) {
    const History::Entry& entry = history_[at];
    if (entry.previous == kNowhere) return;
    const Change& before = timeline_.changes[entry.previous];
    Active& task = tasks_[before.task];
    task.speed = task.share = before.speed;
    task.limit = before.limit;
    const Task& wants = graph_.task(before.task);
    if (before.speed == 0 && wants.hold == Hold::elastic) task.share = before.sms / wants.sms;
  }

  // What happened between `at` and what the domain has been walked back to.
  void back_to(Time at, std::uint32_t domain) {
    const auto ps = static_cast<double>((until_[domain] - at).count());
    until_[domain] = at;
    if (ps <= 0) return;
    limited_.clear();
    bool matters = false;
    for (const TaskId id : running_[domain]) {
      const Active& task = tasks_[id];
      if (task.share == 0 || task.share == 1) continue;
      limited_.push_back(id);
      matters = matters || task.work != 0;
    }
    if (matters) blame_shares(ps);
  }

  // Backwards through the filling of the resources: the fastest were frozen last.
  void blame_shares(double ps) {
    std::stable_sort(limited_.begin(), limited_.end(), [&](TaskId a, TaskId b) {
      const Active &one = tasks_[a], &other = tasks_[b];
      return one.share != other.share ? one.share > other.share : one.limit < other.limit;
    });
    for (auto first = limited_.begin(); first != limited_.end();) {
      const ResourceId limit = tasks_[*first].limit;
      const auto end = std::find_if(first, limited_.end(), [&](TaskId id) { return tasks_[id].limit != limit; });
      limit == kNoPool ? blame_disturbed({first, end}, ps) : blame_limited({first, end}, limit, ps);
      first = end;
    }
    for (const ResourceId resource : priced_) {
      gradient_.capacity[resource] += price_[resource] * graph_.resources()[resource].capacity;
      price_[resource] = 0;
    }
    priced_.clear();
  }

  // Those that all go at the speed that `limit` leaves them: what is left of it over what they want of it.
  void blame_limited(std::span<const TaskId> ids, ResourceId limit, double ps) {
    double of_speed = 0, wanted = 0;
    for (const TaskId id : ids) {
      of_speed -= tasks_[id].work * ps;
      each_demand(id, [&](ResourceId resource, double amount, double) {
        resource == limit ? wanted += amount : of_speed -= price_[resource] * amount;
      });
    }
    const double of_left = of_speed / wanted;
    for (const TaskId id : ids) {
      each_demand(id, [&](ResourceId resource, double amount, double& gradient) {
        const double of_amount = resource == limit ? of_left : price_[resource];
        gradient -= of_amount * tasks_[id].share * amount;
      });
    }
    price_[limit] = of_left;
    priced_.push_back(limit);
  }

  // Those that go no faster beside what disturbs them.
  void blame_disturbed(std::span<const TaskId> ids, double ps) {
    for (const TaskId id : ids) {
      double of_speed = -tasks_[id].work * ps;
      each_demand(id, [&](ResourceId resource, double amount, double& gradient) {
        of_speed -= price_[resource] * amount;
        gradient -= price_[resource] * tasks_[id].share * amount;
      });
      gradient_.disturbed[id] += of_speed * tasks_[id].share;
    }
  }

  // visit(resource, amount, gradient of it)
  template <class Visit>
  void each_demand(TaskId id, Visit visit) {
    const Task& task = graph_.task(id);
    if (task.hold == Hold::elastic) visit(task.pool, task.sms, gradient_.sms[id]);
    if (tasks_[id].speed == 0) return;  // its work is done
    std::size_t index = first_usage_[id];
    for (const Usage& usage : graph_.usages(id)) visit(usage.link, usage.rate, gradient_.usage[index++]);
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const History& history_;
  std::vector<Active> tasks_;
  std::vector<std::vector<TaskId>> running_;  // by domain
  std::vector<Time> until_;                   // by domain: what follows has been walked through
  std::vector<std::size_t> first_usage_;      // by task
  std::vector<TaskId> limited_;
  std::vector<double> price_;  // by resource: blame for each unit of what is left of it
  std::vector<ResourceId> priced_;
  Gradient gradient_;
};

}  // namespace

Gradient span_gradient(const TaskGraph& graph, const Timeline& timeline, const History& history, Time since) {
  return Backwards(graph, timeline, history).run(since);
}

}  // namespace moeline
