#include "experiments/serve/replica.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace moeline {
namespace {

const LoadCourse kLoadsStay;

// Those before are of the requests (traffic).
constexpr std::uint64_t kAcceptanceStream = 16, kDrawsStream = 1 << 20;

StepLoad busier(const StepLoad& a, const StepLoad& b) {
  return {.answers = std::max(a.answers, b.answers),
          .keys = std::max(a.keys, b.keys),
          .prompts = std::max(a.prompts, b.prompts),
          .seen = std::max(a.seen, b.seen),
          .moved_MB = std::max(a.moved_MB, b.moved_MB)};
}

// Keys as tokens have them, not groups.
StepLoad mean_of(const std::vector<StepLoad>& loads) {
  StepLoad sum;
  for (const StepLoad& load : loads) {
    sum.answers += load.answers;
    sum.keys += load.answers * load.keys;
    sum.prompts += load.prompts;
    sum.seen += load.prompts * load.seen;
    sum.moved_MB += load.moved_MB;
  }
  const auto groups = static_cast<double>(loads.size());
  return {.answers = sum.answers / groups,
          .keys = sum.answers > 0 ? sum.keys / sum.answers : 0,
          .prompts = sum.prompts / groups,
          .seen = sum.prompts > 0 ? sum.seen / sum.prompts : 0,
          .moved_MB = sum.moved_MB / groups};
}

StepLoad without_prompts(StepLoad load) {
  load.prompts = load.seen = 0;
  return load;
}

}  // namespace

Replica::Replica(const ServeWorkload& workload, const ReplicaPool& pool, RequestPart part, int number, ServeLog& log,
                 int seed)
    : w_(workload),
      pool_(pool),
      part_(part),
      number_(number),
      log_(log),
      acceptance_(static_cast<std::uint64_t>(seed), kAcceptanceStream + static_cast<std::uint64_t>(number)),
      draws_(static_cast<std::uint64_t>(seed), kDrawsStream + static_cast<std::uint64_t>(number)),
      experts_(pool.place_anew ? workload.loads : kLoadsStay),
      groups_(static_cast<std::size_t>(pool.shape.groups)) {}

void Replica::wait(int group, std::size_t request, double now_ms) {
  groups_[static_cast<std::size_t>(group)].waiting.push_back({request, 0, now_ms});
  ServedRequest& asked = of(request);
  asked.replica = number_;
  asked.group = group;
  const double tokens = part_ == RequestPart::prompt ? asked.input_len : asked.kv_tokens();
  if (taken(tokens) <= kv_tokens()) return;
  throw SpecError(
      fmt::format("a request of {:.0f} tokens does not fit: the KV cache holds {:.0f}", tokens, kv_tokens()));
}

bool Replica::has_slot(const Group& group) const {
  const int most = w_.batch_size > 0 ? w_.batch_size : pool_.shape.most_running;
  return part_ == RequestPart::prompt || group.running() + group.leaving.size() < static_cast<std::size_t>(most);
}

// A state is each request's own.
double Replica::taken_by_prefix(const ServedRequest& request) const { return taken(request.prefix_len) - taken(0); }

// Of the cache by each token of its answer, on average.
double Replica::taken_by_answer(const ServedRequest& request) const {
  return (taken(request.kv_tokens()) - taken(request.input_len)) / request.output_len;
}

// What an admitted request keeps of the cache.
double Replica::room_for(const ServedRequest& request, int produced, bool shares) const {
  const double prompt = taken(request.input_len) - (shares ? taken_by_prefix(request) : 0);
  if (part_ == RequestPart::prompt) return prompt;
  const int tokens = w_.room == KvRoom::whole ? request.output_len : produced;
  return prompt + tokens * taken_by_answer(request);
}

bool Replica::admit_first(Group& group) {
  const Waiting next = group.waiting.front();
  ServedRequest& request = of(next.request);
  const bool shares = part_ != RequestPart::answer && request.prefix >= 0 && group.prefixes.has(request.prefix);
  const double room = room_for(request, next.produced, shares);
  if (group.kept + room > kv_tokens()) return false;  // even with no prefix kept that none needs
  if (shares) group.prefixes.use(request.prefix, taken_by_prefix(request));
  group.prefixes.free(group.kept + group.prefixes.tokens() + room - kv_tokens());
  if (group.kept + group.prefixes.tokens() + room > kv_tokens()) {
    if (shares) group.prefixes.leave(request.prefix);
    return false;
  }
  group.kept += room;
  group.waiting.pop_front();
  if (part_ == RequestPart::answer) {
    group.coming.insert(next.request);
    return true;
  }
  if (request.prefix >= 0)
    request.cached_len = shares ? request.prefix_len : 0;  // elsewhere it may have been otherwise
  group.prompts.push_back({.request = next.request,
                           .produced = next.produced,
                           .length = request.input_len + next.produced,
                           .computed = request.cached_len,
                           .shares = shares});
  return true;
}

std::vector<std::size_t> Replica::admit_until(double ms) {
  std::vector<std::size_t> admitted;
  held_back_ = HeldBack::nothing;
  for (Group& group : groups_) {
    while (!group.waiting.empty() && group.waiting.front().since_ms <= ms) {
      const std::size_t request = group.waiting.front().request;
      const bool has = has_slot(group);
      if (!has && held_back_ == HeldBack::nothing) held_back_ = HeldBack::batch_limit;
      if (!has) break;
      if (!admit_first(group)) {
        held_back_ = HeldBack::cache;
        break;
      }
      admitted.push_back(request);
    }
  }
  return admitted;
}

// Where nothing runs, no step will learn that the last ones have ended.
std::vector<std::size_t> Replica::admit() {
  const auto runs = [](const Group& group) { return group.running() > 0; };
  if (!in_step_ && std::none_of(groups_.begin(), groups_.end(), runs)) {
    for (Group& group : groups_) let_leave(group);
  }
  return admit_until(std::numeric_limits<double>::infinity());
}

// A step that is made up while the one before runs has those that came before that one began; where nothing runs, all.
void Replica::compose(double now_ms) {
  const auto runs = [](const Group& group) { return group.running() > 0; };
  const bool follows = w_.overlapped && now_ms == step_end_ms();
  if (follows) admit_until(std::nextafter(step_.start_ms, 0));
  if (follows && std::any_of(groups_.begin(), groups_.end(), runs)) return;
  for (Group& group : groups_) let_leave(group);
  admit_until(now_ms);
}

void Replica::cache_came(std::size_t request) {
  Group& group = groups_[static_cast<std::size_t>(of(request).group)];
  group.coming.erase(request);
  join(group, request, 1);
}

void Replica::cache_left(std::size_t request, int group) {
  Group& from = groups_[static_cast<std::size_t>(group)];
  const ServedRequest& gone = of(request);
  from.kept -= room_for(gone, 0, gone.prefix >= 0);
  if (gone.prefix >= 0) from.prefixes.leave(gone.prefix);
}

void Replica::forget(std::size_t request) {
  Group& group = groups_[static_cast<std::size_t>(of(request).group)];
  std::erase_if(group.waiting, [&](const Waiting& each) { return each.request == request; });
  if (group.coming.erase(request) > 0) group.kept -= room_for(of(request), 0, false);
}

StepLoad Replica::take_up(Group& group) {
  StepLoad load;
  if (!prompts_alone_ && !group.answers.empty()) {
    load.keys = group.keys / static_cast<double>(group.answers.size());
    load.answers = static_cast<double>(group.answers.size() + group.leaving.size());
  }
  load.moved_MB = group.moved_MB + experts_MB_;
  int left = prompts_wait_ ? 0 : w_.tokens - static_cast<int>(load.answers) * w_.query_len;
  double seen = 0;
  group.chunks.clear();
  for (auto each = group.prompts.begin(); each != group.prompts.end() && left > 0; ++each) {
    const int chunk = std::min(left, each->length - each->computed);
    seen += static_cast<double>(chunk) * (each->computed + chunk);
    load.prompts += chunk;
    left -= chunk;
    group.chunks.push_back(chunk);
  }
  if (load.prompts > 0) load.seen = seen / load.prompts;
  return load;
}

// Experts that are to be elsewhere make the next step wait, or move beside it and those behind it.
double Replica::place_experts(double now_ms) {
  experts_.tell(now_ms);
  if (!experts_.is_due()) return 0;
  experts_.set_out();
  const PlacementCost cost = pool_.place_anew(experts_.placed(), experts_.next());
  step_.placed_anew = cost.alone_ms > 0;
  if (w_.loads.moves_beside) {
    experts_MB_ = cost.nic_MB;
    return 0;
  }
  experts_.arrive();
  return cost.alone_ms;
}

// What is left of everything that moves.
void Replica::keep_moving(double share) {
  for (Group& group : groups_) group.moved_MB *= share;
  experts_MB_ *= share;
  if (experts_MB_ == 0) experts_.arrive();
}

// With its host's part: behind the GPU's, or where a step is made up beside the one before, whichever is longer.
StepTime Replica::time_of(const StepLoad& busiest, const StepLoad& mean) const {
  StepTime time = pool_.step(busiest, mean, step_.state);
  const double host_ms = w_.host.ms(busiest.answers);
  time.ms = w_.overlapped ? std::max(time.ms, host_ms) : time.ms + host_ms;
  return time;
}

void Replica::keep_pace(double ms) {
  if (step_.busiest.prompts > 0) {
    owed_steps_ += std::max(0.0, ms - w_.pace.spared_ms) * w_.pace.steps_per_ms;
  } else {
    owed_steps_ = prompts_wait_ ? owed_steps_ - 1 : 0;
  }
}

bool Replica::begin(double now_ms) {
  if (part_ != RequestPart::answer) compose(now_ms);
  const auto any = [&](const auto& has) { return std::any_of(groups_.begin(), groups_.end(), has); };
  prompts_wait_ = owed_steps_ >= 1 && any([](const Group& group) { return !group.answers.empty(); });
  const bool has_prompts = !prompts_wait_ && any([](const Group& group) { return !group.prompts.empty(); });
  prompts_alone_ = w_.order == PromptOrder::first && has_prompts;
  step_ = {.start_ms = now_ms, .held_back = held_back_, .replica = number_};
  step_.paused_ms = place_experts(now_ms);
  std::vector<StepLoad> loads;
  for (Group& group : groups_) {
    loads.push_back(take_up(group));
    step_.busiest = busier(step_.busiest, loads.back());
    step_.waiting += static_cast<int>(group.waiting.size());
  }
  if (step_.busiest.answers == 0 && step_.busiest.prompts == 0) {
    keep_moving(0);
    return false;
  }
  step_.mean = mean_of(loads);
  step_.state = experts_.state();
  step_.state.draw = pool_.draws == 1 ? 0 : static_cast<int>(draws_.uniform() * pool_.draws);
  const StepTime time = time_of(step_.busiest, step_.mean);
  step_.ms = step_.paused_ms + time.ms;
  step_.graph_batch = time.graph_batch;
  if (prompts_alone_) {
    beside_ms_ += time.ms;
  } else if (step_.busiest.prompts > 0 && step_.busiest.answers > 0) {
    beside_ms_ += time.ms - time_of(without_prompts(step_.busiest), without_prompts(step_.mean)).ms;
  }
  keep_moving(step_.mean.moved_MB > 0 ? time.left_MB / step_.mean.moved_MB : 0);
  keep_pace(time.ms);
  log_.steps.push_back(step_);
  return in_step_ = true;
}

Replica::Finished Replica::finish() {
  Finished finished;
  in_step_ = false;
  for (Group& group : groups_) {
    let_leave(group);
    if (!prompts_alone_) decode(group, finished);
    finish_prompts(group, finished);
    while (group.kept + group.prefixes.tokens() > kv_tokens()) {
      group.prefixes.free(group.kept + group.prefixes.tokens() - kv_tokens());
      if (group.kept + group.prefixes.tokens() > kv_tokens()) drop_last(group);
    }
  }
  return finished;
}

void Replica::decode(Group& group, Finished& finished) {
  if (group.answers.empty()) return;
  ++group.decoded;
  group.keys += group.growth;
  if (w_.room == KvRoom::prompt) group.kept += group.taken_growth;
  while (!group.answers.empty() && group.answers.begin()->last == group.decoded) {
    const Answer answer = *group.answers.begin();
    group.answers.erase(group.answers.begin());
    ServedRequest& request = of(answer.request);
    group.growth -= answer.growth;
    group.taken_growth -= answer.growth * answer.taken;
    group.keys -= request.kv_tokens();
    request.beside_ms += beside_ms_ - answer.beside_ms;
    end(group, answer.request);
    finished.ended.push_back(answer.request);
  }
  if (group.answers.empty()) group.keys = group.growth = group.taken_growth = 0;  // of rounding nothing stays
}

void Replica::end(Group& group, std::size_t request) {
  of(request).end_ms = step_end_ms();
  w_.overlapped ? group.leaving.push_back(request) : leave(group, request);
}

void Replica::leave(Group& group, std::size_t request) {
  const ServedRequest& ended = of(request);
  const bool shares = part_ != RequestPart::answer && ended.prefix >= 0;
  group.kept -= room_for(ended, ended.output_len, shares);
  if (shares) group.prefixes.leave(ended.prefix);
}

void Replica::let_leave(Group& group) {
  for (const std::size_t request : std::exchange(group.leaving, {})) leave(group, request);
}

// Prompts that are computed give their first token with the step, or the next one of those that lost their cache.
void Replica::finish_prompts(Group& group, Finished& finished) {
  for (std::size_t i = 0; i < group.chunks.size(); ++i) {
    Prompt& each = group.prompts[i];
    ServedRequest& request = of(each.request);
    if (request.begin_ms == kNotYet) request.begin_ms = step_.start_ms;
    each.computed += group.chunks[i];
  }
  while (!group.prompts.empty() && group.prompts.front().computed == group.prompts.front().length) {
    const Prompt prompt = group.prompts.front();
    group.prompts.pop_front();
    ServedRequest& request = of(prompt.request);
    if (prompt.produced == 0) request.first_token_ms = step_end_ms();
    if (prompt.produced > 0) request.stalled_ms += step_end_ms();  // since it was dropped
    share_prefix(group, prompt);
    const int produced = prompt.produced + 1;
    if (w_.room == KvRoom::prompt && part_ == RequestPart::all) group.kept += taken_by_answer(request);
    if (produced == request.output_len) {
      end(group, prompt.request);
      finished.ended.push_back(prompt.request);
    } else if (part_ == RequestPart::prompt) {
      finished.computed.push_back(prompt.request);
    } else {
      join(group, prompt.request, produced);
    }
  }
}

// From here on the prefix is the cache's, and one copy of it is enough.
void Replica::share_prefix(Group& group, const Prompt& prompt) {
  const ServedRequest& request = of(prompt.request);
  if (request.prefix < 0 || prompt.shares) return;
  const double prefix = taken_by_prefix(request);
  group.prefixes.use(request.prefix, prefix);
  group.kept -= prefix;
}

// Steps in which a request gets so many tokens, some of which are drafted.
int Replica::steps_of(int tokens) {
  if (w_.query_len == 1) return tokens;
  int steps = 0;
  for (; tokens > 0; ++steps) {
    --tokens;
    for (const double accepted : w_.acceptance) {
      if (acceptance_.uniform() >= accepted) break;
      --tokens;
    }
  }
  return steps;
}

void Replica::join(Group& group, std::size_t request, int produced) {
  const ServedRequest& joins = of(request);
  const int left = joins.output_len - produced, steps = steps_of(left);
  const Answer answer{.last = group.decoded + steps,
                      .request = request,
                      .joined = group.decoded,
                      .produced = produced,
                      .growth = static_cast<double>(left) / steps,
                      .taken = taken_by_answer(joins),
                      .beside_ms = beside_ms_};
  group.answers.insert(answer);
  group.keys += joins.input_len + produced;
  group.growth += answer.growth;
  group.taken_growth += answer.growth * answer.taken;
}

void Replica::drop_last(Group& group) {
  const auto later = [](const Answer& a, const Answer& b) { return a.request < b.request; };
  const auto answer = std::max_element(group.answers.begin(), group.answers.end(), later);
  const bool of_prompts =
      answer == group.answers.end() || (!group.prompts.empty() && group.prompts.back().request > answer->request);
  Waiting dropped;
  bool shares = true;
  if (of_prompts) {
    dropped = {group.prompts.back().request, group.prompts.back().produced, 0};
    shares = group.prompts.back().shares;
    group.prompts.pop_back();
  } else {
    const double got = answer->growth * static_cast<double>(group.decoded - answer->joined);
    dropped = {answer->request, answer->produced + static_cast<int>(std::lround(got)), 0};
    group.keys -= of(answer->request).input_len + answer->produced + got;
    group.growth -= answer->growth;
    group.taken_growth -= answer->growth * answer->taken;
    group.kept -= (answer->produced + got - dropped.produced) * answer->taken;  // what is kept is what it has got
    of(answer->request).beside_ms += beside_ms_ - answer->beside_ms;
    of(answer->request).stalled_ms -= step_end_ms();
    group.answers.erase(answer);
  }
  ServedRequest& request = of(dropped.request);
  shares = shares && request.prefix >= 0;
  group.kept -= room_for(request, dropped.produced, shares);
  if (shares) group.prefixes.leave(request.prefix);
  ++request.restarts;
  group.waiting.push_front(dropped);
}

bool Replica::is_empty() const {
  return !in_step_ && std::all_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.all() == 0; });
}

std::vector<std::size_t> Replica::lose_all() {
  std::vector<std::size_t> lost;
  for (Group& group : groups_) {
    for (const Waiting& each : group.waiting) lost.push_back(each.request);
    for (const Prompt& each : group.prompts) lost.push_back(each.request);
    for (const Answer& each : group.answers) lost.push_back(each.request);
    lost.insert(lost.end(), group.coming.begin(), group.coming.end());
    group = Group{};
  }
  in_step_ = false;
  return lost;
}

}  // namespace moeline
