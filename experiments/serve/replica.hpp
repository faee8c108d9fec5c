// One replica, step by step: which requests are in which step, and what each of them gets from it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "experiments/serve/expert_clock.hpp"
#include "experiments/serve/prefix_cache.hpp"
#include "experiments/serve/schedulers.hpp"
#include "experiments/serve/serve_log.hpp"
#include "experiments/serve/traffic.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {

struct StepTime {
  StepTime(double time_ms, double left_after_MB = 0) : ms(time_ms), left_MB(left_after_MB) {}  // NOLINT: from a time

  double ms = 0;
  double left_MB = 0;   ///< of what moves beside it, that has not come when it ends
  int graph_batch = 0;  ///< requests whose rows each group computes; 0: of as many as it has
};

/// Of a step in which the busiest group has so much, and groups on average so much.
using StepCost = std::function<StepTime(const StepLoad& busiest, const StepLoad& mean, const StepState& state)>;

/// What it takes to place experts anew.
struct PlacementCost {
  double alone_ms = 0;  ///< while nothing else runs
  double nic_MB = 0;    ///< over the busiest NIC
};

struct ReplicaShape {
  int groups = 1;        ///< attention groups, each with requests of its own
  double kv_tokens = 0;  ///< that the KV cache of a group holds, of requests of usual length
  /// What a request with so many tokens takes of it, in such tokens: less than it has where windows or chunks end, more
  /// where a state is kept; empty: as many as it has.
  std::function<double(double tokens)> taken{};
  int most_running = habits::kNoLimit;  ///< requests of a group at a time, where the workload says nothing
};

/// Replicas that are alike.
struct ReplicaPool {
  int replicas = 1;
  ReplicaShape shape;
  StepCost step;
  double token_MB = 0;  ///< of the cache, on each GPU
  int draws = 1;        ///< of each step's state, all as likely
  /// Of experts, from where the loads before one time step place them to where those before another do; empty where
  /// loads stay.
  std::function<PlacementCost(int from, int to)> place_anew{};
};

inline constexpr double kNotYet = -1;  ///< when a request began that has not

/// What a replica does of a request.
enum class RequestPart { all, prompt, answer };

/// A request waits in its group until the cache has room for it beside those before it, and ends with its last token.
/// In a step each request that decodes gets a token, or with drafts as many as are accepted; prompts take what is left
/// of the step's tokens, the first come first, each but for what is cached. Where answers outgrow the cache, one of
/// them loses its own and computes all of it anew: the last that came, or with a share those with the fewest tokens.
class Replica {
 public:
  /// To the log it writes. All outlive it.
  Replica(const ServeWorkload& workload, const ReplicaPool& pool, RequestPart part, int number, ServeLog& log,
          int seed);

  /// In this group from now on. Throws SpecError where it could never fit.
  void wait(int group, std::size_t request, double now_ms);
  /// Where answers alone are: of those that wait, the first ones for which there is room. They wait for their caches
  /// now, which come from where their prompts were computed.
  std::vector<std::size_t> admit();
  /// The cache of an admitted request is there, or has gone.
  void cache_came(std::size_t request);
  void cache_left(std::size_t request, int group);
  /// A request whose cache will not come.
  void forget(std::size_t request);
  /// Tokens of caches that cross its links from the next step on.
  void moves(int group, double tokens) { groups_[static_cast<std::size_t>(group)].moved_MB += tokens * pool_.token_MB; }

  /// Takes up a step; whether there is anything to do. REQUIRES: it is not in one.
  bool begin(double now_ms);
  [[nodiscard]] bool in_step() const { return in_step_; }
  /// Of the step that it is in, the mean of its groups; else nothing.
  [[nodiscard]] StepLoad load() const { return in_step_ ? step_.mean : StepLoad{}; }
  [[nodiscard]] double step_end_ms() const { return step_.start_ms + step_.ms; }

  struct Finished {
    std::vector<std::size_t> ended;     ///< requests
    std::vector<std::size_t> computed;  ///< prompts whose answers go on elsewhere
  };
  /// REQUIRES: it is in a step, and that is over.
  Finished finish();

  /// Everything that it has stops, and is forgotten.
  std::vector<std::size_t> lose_all();

  [[nodiscard]] bool is_empty() const;
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] int groups() const { return static_cast<int>(groups_.size()); }
  /// Requests that a group has, those that wait too.
  [[nodiscard]] std::size_t in(int group) const { return groups_[static_cast<std::size_t>(group)].all(); }

 private:
  struct Waiting {
    std::size_t request = 0;
    int produced = 0;     ///< tokens of its answer that it has got
    double since_ms = 0;  ///< it is here
  };
  struct Prompt {
    std::size_t request = 0;
    int produced = 0;
    int length = 0;       ///< tokens: of the prompt, and of what it has got
    int computed = 0;     ///< of these, cached ones too
    bool shares = false;  ///< its prefix, from the cache
  };
  struct Answer {
    std::int64_t last = 0;  ///< decoding step of the group, counted from its first, in which it ends
    std::size_t request = 0;
    std::int64_t joined = 0;
    int produced = 0;      ///< when it joined
    double growth = 0;     ///< tokens that it gets in a step, on average
    double taken = 1;      ///< of the cache by each of them
    double beside_ms = 0;  ///< of the group, when it joined

    bool operator<(const Answer& other) const {
      return last != other.last ? last < other.last : request < other.request;
    }
  };
  struct Entering {
    std::size_t request = 0;
    int produced = 0;
  };
  struct Group {
    std::deque<Waiting> waiting;
    std::deque<Prompt> prompts;
    std::set<Answer> answers;
    std::set<std::size_t> coming;    ///< requests whose caches are on the way
    std::vector<Entering> entering;  ///< whose caches came while a step runs
    double keys = 0, growth = 0;     ///< of all answers: tokens in the cache, and what a step adds
    double taken_growth = 0;         ///< and what that takes of the cache
    std::int64_t decoded = 0;        ///< steps of decoding
    double kept = 0;                 ///< what the cache keeps for requests, but for shared prefixes
    double moved_MB = 0;
    double beside_ms = 0;           ///< by which steps so far were longer for answers because of prompts
    bool prompts_alone = false;     ///< in the step
    double decoded_ms = 0;          ///< when it last decoded
    std::vector<double> joined_ms;  ///< since then: when those that joined got their first token
    double new_token_ratio = 0;
    bool is_full = false;  ///< until one ends no prompt is looked at
    PrefixCache prefixes;
    std::vector<int> chunks;           ///< of the step: tokens of the first prompts
    std::vector<std::size_t> leaving;  ///< requests that have ended, and of which the next step does not know it yet

    [[nodiscard]] std::size_t running() const {
      return prompts.size() + answers.size() + coming.size() + entering.size();
    }
    [[nodiscard]] std::size_t all() const { return waiting.size() + running(); }
  };

  [[nodiscard]] ServedRequest& of(std::size_t request) { return log_.requests[request]; }
  [[nodiscard]] double kv_tokens() const { return pool_.shape.kv_tokens; }  // of a group
  [[nodiscard]] double taken(double tokens) const { return pool_.shape.taken ? pool_.shape.taken(tokens) : tokens; }
  [[nodiscard]] double taken_by_prefix(const ServedRequest& request) const;
  [[nodiscard]] double taken_by_answer(const ServedRequest& request) const;
  [[nodiscard]] bool has_slot(const Group& group) const;
  [[nodiscard]] double room_for(const ServedRequest& request, int produced, bool shares) const;
  [[nodiscard]] double foreseen_of(const ServedRequest& request, double written) const;
  [[nodiscard]] double foreseen(const Group& group);
  [[nodiscard]] static double written(const Group& group, const Answer& answer);
  [[nodiscard]] bool takes_more(const Group& group) const;
  /// It has SGLang's rules: where answers outgrow the cache, those with the fewest tokens make room.
  [[nodiscard]] bool drops_shortest() const { return w_.room == KvRoom::share || w_.room == KvRoom::reserve; }
  [[nodiscard]] double kept_free(const Group& group, const ServedRequest& request, int produced);
  void enter(Group& group, std::size_t request, int produced);
  void come_back(Group& group, std::size_t request, int produced);
  bool admit_first(Group& group);
  bool has_room(Group& group, const ServedRequest& request, double now, double ahead, bool shares);
  std::vector<std::size_t> admit_until(double ms);
  double place_experts(double now_ms);
  [[nodiscard]] StepTime time_of(const StepLoad& busiest, const StepLoad& mean) const;
  [[nodiscard]] bool decodes(const Group& group) const;
  void tell_beside(double ms);
  [[nodiscard]] bool delays_prompts();
  void compose(double now_ms);
  StepLoad take_up(Group& group);
  void finish_prompts(Group& group, Finished& finished);
  void decode(Group& group, Finished& finished);
  void tell_gaps(Group& group);
  void share_prefix(Group& group, const Prompt& prompt);
  void join(Group& group, std::size_t request, int produced);
  void end(Group& group, std::size_t request);
  void leave(Group& group, std::size_t request);
  void let_leave(Group& group);
  void keep_moving(double share);
  [[nodiscard]] int steps_of(int tokens);
  void make_room(Group& group);
  [[nodiscard]] std::set<Answer>::iterator victim(Group& group);
  void drop_one(Group& group);

  const ServeWorkload& w_;
  const ReplicaPool& pool_;
  RequestPart part_;
  int number_;
  ServeLog& log_;
  Random acceptance_, draws_;
  ExpertClock experts_;
  double experts_MB_ = 0;  ///< that move beside steps, over each NIC
  std::vector<Group> groups_;
  bool in_step_ = false, prompts_wait_ = false;
  int delayed_ = 0;  // steps, since prompts began to wait for those of other groups
  NewTokenRatio ratio_;
  ServedStep step_;
  HeldBack held_back_{};  // at the last admission
};

}  // namespace moeline
