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

bool has_both(const StepLoad& load) { return load.answers > 0 && load.prompts > 0 && !load.apart; }

// Keys that all answers, or all tokens of prompts, see; and those of all prompts, each once.
double seen_by_answers(const StepLoad& load) { return load.answers * load.keys; }
double seen_by_prompts(const StepLoad& load) { return load.prompts * load.seen; }
double of_prompts(const StepLoad& load) { return load.parts * load.seen; }

double share_of(double sum, double count) { return count > 0 ? sum / count : 0; }

// Of each kind of work the most that a group has: long prompts are not as many as another group's short ones.
StepLoad busier(const StepLoad& a, const StepLoad& b) {
  const auto most = [&](const auto& work) { return std::max(work(a), work(b)); };
  StepLoad load{.answers = std::max(a.answers, b.answers),
                .prompts = std::max(a.prompts, b.prompts),
                .moved_MB = std::max(a.moved_MB, b.moved_MB)};
  load.keys = share_of(most(seen_by_answers), load.answers);
  load.seen = share_of(most(seen_by_prompts), load.prompts);
  load.parts = share_of(most(of_prompts), load.seen);
  load.apart = load.answers > 0 && load.prompts > 0 && !has_both(a) && !has_both(b);
  return load;
}

// Keys as tokens have them, not groups.
StepLoad mean_of(const std::vector<StepLoad>& loads) {
  StepLoad sum;
  double keys = 0, seen = 0, parts = 0;
  for (const StepLoad& load : loads) {
    sum.answers += load.answers;
    sum.prompts += load.prompts;
    sum.moved_MB += load.moved_MB;
    keys += seen_by_answers(load);
    seen += seen_by_prompts(load);
    parts += of_prompts(load);
  }
  const auto groups = static_cast<double>(loads.size());
  const double mean_seen = share_of(seen, sum.prompts);
  return {.answers = sum.answers / groups,
          .keys = share_of(keys, sum.answers),
          .prompts = sum.prompts / groups,
          .seen = mean_seen,
          .parts = share_of(parts, mean_seen) / groups,
          .moved_MB = sum.moved_MB / groups};
}

StepLoad without_prompts(StepLoad load) {
  load.prompts = load.seen = load.parts = 0;
  load.apart = false;
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
      groups_(static_cast<std::size_t>(pool.shape.groups)),
      ratio_(new_token_ratio(workload.conservativeness, pool.shape.groups)) {
  for (Group& group : groups_) group.new_token_ratio = ratio_.first;
}

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

// Where nothing runs, no step will learn that the last ones have ended.
std::vector<std::size_t> Replica::admit() {
  const auto runs = [](const Group& group) { return group.running() > 0; };
  if (!in_step_ && std::none_of(groups_.begin(), groups_.end(), runs)) {
    for (Group& group : groups_) let_leave(group);
  }
  return admit_until(std::numeric_limits<double>::infinity());
}

// SGLang does not know yet that the last ones have ended, and takes up one more step of them.
bool Replica::decodes(const Group& group) const {
  return !group.answers.empty() || (w_.scheduler == Stack::sglang && !group.leaving.empty());
}

// A step that is made up while the one before runs has those that came before that one began; where nothing runs, all.
void Replica::compose(double now_ms) {
  const bool follows = w_.overlapped && now_ms == step_end_ms();
  if (follows) admit_until(std::nextafter(step_.start_ms, 0));
  const auto runs = [&](const Group& group) { return group.running() > 0 || decodes(group); };
  if (follows && std::any_of(groups_.begin(), groups_.end(), runs)) return;
  for (Group& group : groups_) let_leave(group);
  admit_until(now_ms);
}

void Replica::cache_came(std::size_t request) {
  Group& group = groups_[static_cast<std::size_t>(of(request).group)];
  group.coming.erase(request);
  if (w_.room != KvRoom::whole) group.kept += taken_by_answer(of(request));  // of its first token
  enter(group, request, 1);
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
  if (!group.prompts_alone && decodes(group)) {
    double keys = group.keys;
    for (const std::size_t each : group.leaving) keys += of(each).kv_tokens();
    load.answers = static_cast<double>(group.answers.size() + group.leaving.size());
    load.keys = keys / load.answers;
  }
  load.moved_MB = group.moved_MB + experts_MB_;
  int left = prompts_wait_ ? 0 : w_.tokens - static_cast<int>(load.answers) * w_.query_len;
  double seen = 0, keys = 0;
  group.chunks.clear();
  for (auto each = group.prompts.begin(); each != group.prompts.end() && left > 0; ++each) {
    const int chunk = std::min(left, each->length - each->computed);
    keys += each->computed + chunk;
    seen += static_cast<double>(chunk) * (each->computed + chunk);
    load.prompts += chunk;
    left -= chunk;
    group.chunks.push_back(chunk);
  }
  load.seen = share_of(seen, load.prompts);
  load.parts = share_of(keys, load.seen);
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

// By how much a step of so many ms is longer for answers.
void Replica::tell_beside(double ms) {
  const StepLoad &busiest = step_.busiest, &mean = step_.mean;
  if (busiest.prompts == 0) return;
  const double without = busiest.answers > 0 ? time_of(without_prompts(busiest), without_prompts(mean)).ms : 0;
  for (Group& group : groups_) group.beside_ms += group.prompts_alone ? ms : ms - without;
}

// Once they have waited for long enough they do not wait again until they have been computed.
bool Replica::delays_prompts() {
  const auto count = [&](const auto& has) { return std::count_if(groups_.begin(), groups_.end(), has); };
  const auto with_prompts = count([](const Group& group) { return !group.prompts.empty(); });
  const bool some = with_prompts > 0 && with_prompts < std::ssize(groups_);
  const bool decodes = count([](const Group& group) { return !group.answers.empty(); }) > 0;
  const bool delays = some && decodes && delayed_ < w_.prefill_delay;
  delayed_ = delays ? delayed_ + 1 : 0;
  return delays;
}

bool Replica::begin(double now_ms) {
  if (part_ != RequestPart::answer) compose(now_ms);
  const auto any = [&](const auto& has) { return std::any_of(groups_.begin(), groups_.end(), has); };
  prompts_wait_ = delays_prompts();
  const auto has_prompts = [](const Group& group) { return !group.prompts.empty(); };
  const bool all_alone = w_.order == PromptOrder::first && any(has_prompts);
  for (Group& group : groups_) {
    const bool alone = all_alone || (w_.order == PromptOrder::first_by_rank && has_prompts(group));
    group.prompts_alone = alone && !prompts_wait_;
  }
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
  tell_beside(time.ms);
  keep_moving(step_.mean.moved_MB > 0 ? time.left_MB / step_.mean.moved_MB : 0);
  log_.steps.push_back(step_);
  return in_step_ = true;
}

Replica::Finished Replica::finish() {
  Finished finished;
  in_step_ = false;
  for (Group& group : groups_) {
    let_leave(group);
    if (!group.prompts_alone) decode(group, finished);
    finish_prompts(group, finished);
    for (const Entering& each : std::exchange(group.entering, {})) join(group, each.request, each.produced);
    make_room(group);
  }
  return finished;
}

void Replica::decode(Group& group, Finished& finished) {
  if (group.answers.empty()) return;
  tell_gaps(group);
  ++group.decoded;
  group.keys += group.growth;
  if (w_.room != KvRoom::whole) group.kept += group.taken_growth;
  group.new_token_ratio = std::max(ratio_.least, group.new_token_ratio - ratio_.decay);
  while (!group.answers.empty() && group.answers.begin()->last == group.decoded) {
    const Answer answer = *group.answers.begin();
    group.answers.erase(group.answers.begin());
    ServedRequest& request = of(answer.request);
    group.growth -= answer.growth;
    group.taken_growth -= answer.growth * answer.taken;
    group.keys -= request.kv_tokens();
    request.beside_ms += group.beside_ms - answer.beside_ms;
    end(group, answer.request);
    finished.ended.push_back(answer.request);
  }
  if (group.answers.empty()) group.keys = group.growth = group.taken_growth = 0;  // of rounding nothing stays
}

void Replica::tell_gaps(Group& group) {
  const auto fresh = static_cast<int>(group.joined_ms.size()), all = static_cast<int>(group.answers.size());
  for (const double since_ms : group.joined_ms) log_.gaps.push_back({step_end_ms() - since_ms, 1});
  if (all > fresh) log_.gaps.push_back({step_end_ms() - group.decoded_ms, all - fresh});
  group.joined_ms.clear();
  group.decoded_ms = step_end_ms();
}

void Replica::end(Group& group, std::size_t request) {
  of(request).end_ms = step_end_ms();
  w_.overlapped ? group.leaving.push_back(request) : leave(group, request);
}

void Replica::leave(Group& group, std::size_t request) {
  const ServedRequest& ended = of(request);
  const bool shares = part_ != RequestPart::answer && ended.prefix >= 0;
  group.kept -= room_for(ended, ended.output_len, shares);
  group.is_full = false;
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
    if (w_.room != KvRoom::whole && part_ == RequestPart::all) group.kept += taken_by_answer(request);
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

// The step that runs has not had it.
void Replica::enter(Group& group, std::size_t request, int produced) {
  in_step_ ? group.entering.push_back({request, produced}) : join(group, request, produced);
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
                      .beside_ms = group.beside_ms};
  group.answers.insert(answer);
  group.joined_ms.push_back(produced == 1 ? joins.first_token_ms : step_end_ms());
  group.keys += joins.input_len + produced;
  group.growth += answer.growth;
  group.taken_growth += answer.growth * answer.taken;
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
    for (const Entering& each : group.entering) lost.push_back(each.request);
    lost.insert(lost.end(), group.coming.begin(), group.coming.end());
    group = Group{};
    group.new_token_ratio = ratio_.first;
  }
  in_step_ = false;
  return lost;
}

}  // namespace moeline
