// Of a replica: which requests begin, by the room that the cache has for them, and which lose theirs.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "experiments/serve/replica.hpp"

namespace moeline {

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

// What it may still write, of the cache.
double Replica::foreseen_of(const ServedRequest& request, double written) const {
  return std::min(kMostForeseen, request.output_len - written) * taken_by_answer(request);
}

// What is kept for what those that run may still write. A prompt counts with all of its answer until it decodes.
double Replica::foreseen(const Group& group) {
  double answers = 0, prompts = 0;
  for (const Answer& each : group.answers) answers += foreseen_of(of(each.request), written(group, each));
  for (const Prompt& each : group.prompts) prompts += foreseen_of(of(each.request), each.produced);
  return group.new_token_ratio * answers + prompts;
}

double Replica::written(const Group& group, const Answer& answer) {
  return answer.produced + answer.growth * static_cast<double>(group.decoded - answer.joined);
}

// Whether there is room for what it takes now and for what is foreseen; prefixes that none needs make way for the
// former.
bool Replica::has_room(Group& group, const ServedRequest& request, double now, double ahead, bool shares) {
  if (group.kept + now + ahead > kv_tokens()) return false;
  if (shares) group.prefixes.use(request.prefix, taken_by_prefix(request));
  const double needed = group.prefixes.tokens() - group.prefixes.unused_tokens();
  if (group.kept + needed + now + ahead > kv_tokens()) {
    if (shares) group.prefixes.leave(request.prefix);
    return false;
  }
  group.prefixes.free(group.kept + group.prefixes.tokens() + now - kv_tokens());
  return true;
}

// For what this request and those that run will write.
double Replica::kept_free(const Group& group, const ServedRequest& request, int produced) {
  if (w_.room == KvRoom::share) return foreseen_of(request, produced) + foreseen(group);
  if (w_.room != KvRoom::reserve || part_ == RequestPart::prompt || group.running() == 0) return 0;
  return kReserved * taken_by_answer(request) * static_cast<double>(1 + group.running());
}

// Where answers alone are, a cache that made room went to the host's memory, and comes back from there.
void Replica::come_back(Group& group, std::size_t request, int produced) {
  of(request).stalled_ms += step_end_ms();
  enter(group, request, produced);
}

bool Replica::admit_first(Group& group) {
  const Waiting next = group.waiting.front();
  ServedRequest& request = of(next.request);
  const bool shares = part_ != RequestPart::answer && request.prefix >= 0 && group.prefixes.has(request.prefix);
  const double room = room_for(request, next.produced, shares);
  if (!has_room(group, request, room, kept_free(group, request, next.produced), shares)) return false;
  group.kept += room;
  group.waiting.pop_front();
  if (part_ == RequestPart::answer) {
    next.produced == 0 ? (void)group.coming.insert(next.request) : come_back(group, next.request, next.produced);
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

// SGLang takes as many as a step has tokens for, and once the cache had no room for one looks at none until one ends.
bool Replica::takes_more(const Group& group) const {
  if (w_.room != KvRoom::share) return true;
  if (group.is_full && group.running() > 0) return false;
  int tokens = 0;
  for (const Prompt& each : group.prompts) tokens += each.length - each.computed;
  return tokens < w_.tokens;
}

std::vector<std::size_t> Replica::admit_until(double ms) {
  std::vector<std::size_t> admitted;
  held_back_ = HeldBack::nothing;
  for (Group& group : groups_) {
    if (group.running() == 0) group.new_token_ratio = ratio_.first;
    while (!group.waiting.empty() && group.waiting.front().since_ms <= ms && takes_more(group)) {
      const std::size_t request = group.waiting.front().request;
      const bool has = has_slot(group);
      if (!has && held_back_ == HeldBack::nothing) held_back_ = HeldBack::batch_limit;
      if (!has) break;
      group.is_full = !admit_first(group);
      if (group.is_full) {
        held_back_ = HeldBack::cache;
        break;
      }
      if (group.coming.contains(request)) admitted.push_back(request);
    }
  }
  return admitted;
}

// A share looks a step ahead, as a step of decode is not taken up without room.
void Replica::make_room(Group& group) {
  const auto excess = [&] {
    const double ahead = drops_shortest() ? group.taken_growth : 0;
    return group.kept + ahead + group.prefixes.tokens() - kv_tokens();
  };
  bool drops = false;
  while (excess() > 0) {
    group.prefixes.free(excess());
    if (excess() <= 0 || (group.answers.empty() && group.prompts.empty())) break;
    drop_one(group);
    drops = true;
  }
  if (!drops || w_.room != KvRoom::share) return;
  double sum = 0, most = 0;
  for (const Answer& each : group.answers) {
    sum += written(group, each);
    most += of(each.request).output_len;
  }
  group.new_token_ratio = ratio_after_retraction(sum, static_cast<double>(group.answers.size()), most);
}

// The last that came, or as SGLang has it the one with the fewest tokens of its answer, of these with the longest
// prompt.
std::set<Replica::Answer>::iterator Replica::victim(Group& group) {
  const auto later = [](const Answer& a, const Answer& b) { return a.request < b.request; };
  if (!drops_shortest()) return std::max_element(group.answers.begin(), group.answers.end(), later);
  const auto tokens = [&](const Answer& each) {
    return std::tuple(written(group, each), -of(each.request).input_len, -static_cast<double>(each.request));
  };
  return std::min_element(group.answers.begin(), group.answers.end(),
                          [&](const Answer& a, const Answer& b) { return tokens(a) < tokens(b); });
}

void Replica::drop_one(Group& group) {
  const auto answer = victim(group);
  const bool newer = !drops_shortest() && !group.prompts.empty() && answer != group.answers.end() &&
                     group.prompts.back().request > answer->request;
  Waiting dropped;
  bool shares = true;
  if (answer == group.answers.end() || newer) {
    dropped = {group.prompts.back().request, group.prompts.back().produced, 0};
    shares = group.prompts.back().shares;
    group.prompts.pop_back();
  } else {
    const double has = written(group, *answer);
    dropped = {answer->request, static_cast<int>(std::lround(has)), 0};
    group.keys -= of(answer->request).input_len + has;
    group.growth -= answer->growth;
    group.taken_growth -= answer->growth * answer->taken;
    group.kept -= (has - dropped.produced) * answer->taken;  // what is kept is what it has got
    of(answer->request).beside_ms += group.beside_ms - answer->beside_ms;
    of(answer->request).stalled_ms -= step_end_ms();
    group.answers.erase(answer);
  }
  ServedRequest& request = of(dropped.request);
  shares = shares && request.prefix >= 0;
  group.kept -= room_for(request, dropped.produced, shares);
  if (shares) group.prefixes.leave(request.prefix);
  ++request.restarts;
  group.is_full = false;
  if (w_.room == KvRoom::share) {
    group.waiting.push_back(dropped);
  } else {
    group.waiting.push_front(dropped);
  }
}

}  // namespace moeline
