// Who gets how much: SM pools and links, at one instant.
//
// SMs of a pool go to residents first, in order of start, then id: only the oldest incomplete one takes, it keeps
// what it took, and it runs once it has all it wants. What residents do not hold is shared by the elastic tasks.
//
// Speeds are max-min fair: maximise the smallest speed, then the next, subject to
//     sum over tasks of demand(task, resource) * speed(task) <= what is free of the resource,   speed <= 1
// by progressive filling: raise all speeds together; where a resource is exhausted, freeze the tasks that use it, and
// a task with disturbing neighbours at the speed that these leave it. What it does not use is left to the others.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/task_graph.hpp"

namespace moeline {

/// The residents of one SM pool.
class SmPool {
 public:
  explicit SmPool(int capacity = 0) : free_(capacity) {}

  struct Waiting {
    TaskId task = 0;
    Time ready{};
    int wanted = 0;
    int held = 0;
    [[nodiscard]] bool complete() const { return held == wanted; }
  };
  [[nodiscard]] int free() const { return free_; }
  void enqueue(const Waiting& resident);
  void release(int sms) { free_ += sms; }
  /// The oldest resident that waits takes what is free of what it still wants; once complete it leaves the queue. Null:
  /// nobody took anything.
  [[nodiscard]] std::optional<Waiting> admit_next();

 private:
  int free_;
  std::vector<Waiting> waiting_;  // by (ready, task), behind one that holds SMs already
};

/// What one running task asks of the resources of its domain, and the speed it gets.
struct Claim {
  TaskId task = 0;
  double elastic_sms = 0;  ///< SMs shared with others; 0 for residents, which hold theirs
  ResourceId pool = kNoPool;
  std::span<const Usage> links{};
  double most = 1;  ///< no speed above this, however much is free
  double speed = 0;
  ResourceId limit = kNoPool;  ///< the exhausted resource that keeps it below `most`; kNoPool: none does
};

/// Sets Claim::speed and Claim::limit of all claims. `available` is indexed by resource. Keeps its scratch space
/// between calls.
class FairShare {
 public:
  explicit FairShare(std::size_t resources) : demand_(resources, 0), touched_(resources), left_(resources, 0) {}
  void operator()(std::span<Claim* const> claims, std::span<const double> available);

 private:
  void add_demand(ResourceId resource, double amount) {
    if (amount <= 0) return;
    double& demand = demand_[resource];
    if (demand == 0) touched_[touched_count_++] = resource;
    demand += amount;
  }
  [[nodiscard]] std::span<const ResourceId> touched() const { return {touched_.data(), touched_count_}; }
  void sum_demands(std::span<Claim* const> claims);
  template <class Is>
  void freeze(Is is_frozen, double level, ResourceId limit);
  [[nodiscard]] bool all_fit(std::span<const double> left) const;

  std::vector<double> demand_;       // of the claims still open, by resource
  std::vector<ResourceId> touched_;  // resources with a demand come first
  std::size_t touched_count_ = 0;    // so many have one
  std::vector<double> left_;
  std::vector<Claim*> open_;
};

}  // namespace moeline
