// Which requests come when, and what serves them: the workload of a scenario whose phase is `serve`.
#pragma once

#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/spec.hpp"
#include "schedules/scenario/choices.hpp"

namespace moeline {

inline constexpr const char* kServePhase = "serve";

/// How prompts and answers share steps.
enum class PromptOrder {
  mixed,          ///< a chunk of prompts is computed in a step in which requests decode
  first,          ///< steps of prompts alone, before any of decoding
  first_by_rank,  ///< the same of each attention group by itself: others decode in that step
};

/// What a request must find in the KV cache before its first step.
enum class KvRoom {
  whole,    ///< room for its prompt and all of its answer
  prompt,   ///< for its prompt: where answers outgrow the cache the last come begins anew ("preempt")
  reserve,  ///< for its prompt, and for 512 tokens more of it and of each that runs: where answers outgrow the cache,
            ///< those with the fewest tokens make room
  share,  ///< for its prompt and its answer, and of what those that run may still write for a share that falls step by
          ///< step: where answers outgrow the cache those with the fewest tokens begin anew ("retract")
};

/// Where a request goes.
enum class RouterRule {
  least_loaded,   ///< to the attention group that has the fewest, of equals the first
  round_robin,    ///< to each replica in turn
  ranks_in_turn,  ///< to each attention group of all replicas in turn
  cache_aware,    ///< to where its prefix was sent before, unless too much is there
};

template <>
inline constexpr std::array kWords<PromptOrder> = {"mixed", "first", "first_by_rank"};
template <>
inline constexpr std::array kWords<KvRoom> = {"whole", "prompt", "reserve", "share"};
template <>
inline constexpr std::array kWords<RouterRule> = {"least_loaded", "round_robin", "ranks_in_turn", "cache_aware"};

/// Of tokens.
struct Length {
  int mean = 0;
  double spread = 0;        ///< above 0: log-normal, with this standard deviation
  int least = 0, most = 0;  ///< above 0: evenly drawn between them, both included
};

/// Than which few are longer: three standard deviations above the mean, or none.
[[nodiscard]] int long_one(const Length& length);

/// What a request asks for.
struct Asked {
  int input_len = 0;   ///< tokens of the prompt
  int cached_len = 0;  ///< of these, in the KV cache wherever it comes to; 0 with a prefix
  int output_len = 0;
  int prefix = -1;     ///< which of those that requests share; -1: none
  int prefix_len = 0;  ///< tokens of it
};

/// Of a table of requests.
struct TracedRequest {
  double arrival_ms = 0;
  Asked asked;
};

/// Prompts that begin alike.
struct Prefixes {
  int count = 0;    ///< 0: none do
  int len = 0;      ///< tokens
  double zipf = 0;  ///< the k-th is asked for k^-zipf as often as the first; 0: all alike
};

/// GPUs that only compute prompts, whose KV caches go on to those that decode.
struct PrefillPool {
  int replicas = 0;              ///< 0: prompts are computed where answers are
  std::vector<std::string> set;  ///< what is different in their scenario
};

/// A replica is not there for a while.
struct Outage {
  int replica = 0;
  bool of_prefill = false;  ///< it is one of those that only compute prompts
  double at_ms = 0, until_ms = 0;
  bool drains = false;  ///< it ends what it has and gets nothing new; else what it has begins anew elsewhere
};

/// Replicas that answer are switched on and off, by how many requests there are.
struct Scaling {
  int least = 0;                       ///< that are always on
  double on_above = 0, off_below = 0;  ///< requests in the system for each attention group of those that are on: above,
                                       ///< one more starts; below, of all but one, that one drains
  double start_ms = 0;                 ///< until one that starts gets requests

  [[nodiscard]] bool applies() const { return least > 0; }
};

/// The loads of experts change with time, and their places with them.
struct LoadCourse {
  double step_ms = 0;         ///< that each time step of the scenario's file of loads holds; 0: loads stay
  std::vector<int> steps;     ///< as numbered there; the last holds on
  bool places = false;        ///< experts are placed by loads, by those before the first time step at first
  int rebalance_every = 0;    ///< time steps; 0: they stay there
  bool moves_beside = false;  ///< experts move while steps run, in the old places until all have come; else steps wait
};

/// What a request must keep to be counted as good, ms; 0: anything.
struct ServeLimits {
  double ttft_ms = 0, tpot_ms = 0;
};

/// What the server's host does for each step, ms: it schedules, prepares inputs, and takes up what was chosen.
struct StepHost {
  double step_ms = 0;
  double request_ms = 0;  ///< for each request of an attention group that decodes

  [[nodiscard]] double ms(double requests) const { return step_ms + request_ms * requests; }
};

struct ServeWorkload {
  int concurrency = 0;        ///< closed loop: so many requests at any time; 0: they come by themselves
  std::vector<double> rates;  ///< of these, requests per second, of all GPUs together, for `rate_ms` each, and again
                              ///< from the start; none: they come when the trace says
  double rate_ms = 3.6e6;
  double burstiness = 1;             ///< shape of the gamma distribution of the times between; 1: Poisson
  int requests = 0;                  ///< that are served
  std::vector<TracedRequest> trace;  ///< in turn, again from the start after the last; none: lengths are drawn
  bool trace_has_times = false;
  Length input, output;
  int cached_len = 0;  ///< tokens of each prompt
  Prefixes prefixes;
  int tokens = 8192;   ///< of prompts and answers together in a step, of each attention group
  int batch_size = 0;  ///< requests of an attention group at a time; 0: as many as memory holds
  int replicas = 1;
  std::vector<Outage> outages;  ///< by time
  Scaling scaling;
  LoadCourse loads;
  ServeLimits limits;
  PrefillPool prefill;
  /// A step is made up while the one before runs: it has those that came before that one began, and requests that ended
  /// with it once more.
  bool overlapped = true;
  StepHost host;  ///< hidden behind the step before where they overlap, as far as that is as long
  RouterRule router = RouterRule::least_loaded;
  PromptOrder order = PromptOrder::mixed;
  KvRoom room = KvRoom::whole;
  int prefill_delay = 0;           ///< steps for which prompts wait at most until every attention group has some
  double conservativeness = 1;     ///< of KvRoom::share: times the share that it begins with
  Stack scheduler = Stack::none;   ///< whose rules they are
  int query_len = 1;               ///< tokens that a step of decode has of each request
  int draft_layers = 0;            ///< of a draft model; 0: the model's own MTP modules draft
  std::vector<double> acceptance;  ///< of each drafted token, if those before it were
  GraphBatch graph_choice = GraphBatch::by_stack;
  int graph_batch = 0;  ///< of GraphBatch::given: requests whose rows each step of decode computes
};

// read_serve.cpp

/// Whether a scenario asks for that, rather than for a step.
[[nodiscard]] bool is_served(const Spec& scenario);

/// Throws SpecError, also for a table of requests that is absent or has a cell that makes no sense.
[[nodiscard]] ServeWorkload read_serve(const Spec& workload);

// Requests as they come: when the next one does, and what it asks for.

class RequestSource {
 public:
  /// `seed`: of arrivals, of lengths and of prefixes, each a sequence of its own.
  RequestSource(const ServeWorkload& workload, int seed);

  [[nodiscard]] bool more() const { return taken_ < workload_.requests; }
  /// Of requests that come by themselves. REQUIRES: more().
  [[nodiscard]] double next_ms() const { return next_ms_; }
  /// Lengths that are log-normal are at most eight times their mean; a prompt has at least one token that is not
  /// cached. REQUIRES: more().
  Asked take();

 private:
  [[nodiscard]] double until_next_ms();
  [[nodiscard]] double time_of_arrivals(double count) const;
  [[nodiscard]] Asked drawn();
  [[nodiscard]] int drawn_prefix();

  const ServeWorkload& workload_;
  Random arrivals_, lengths_, prefixes_;
  std::vector<double> popularity_;  // of prefixes, summed up
  int taken_ = 0;
  double next_ms_ = 0;
};

}  // namespace moeline
