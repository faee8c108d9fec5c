#include "experiments/serve/serve_log.hpp"

#include <fmt/format.h>
#include <iterator>
#include <set>

namespace moeline {

const char* name_of(HeldBack reason) {
  constexpr std::array<const char*, 3> kNames = {"nothing", "cache", "batch_limit"};
  return kNames[static_cast<std::size_t>(reason)];
}
namespace {

constexpr int kRequests = 1'000'000;  // process number, above all replicas

const char* name_of(const StepLoad& load) {
  if (load.prompts == 0) return "decode";
  return load.answers == 0 ? "prefill" : "mixed";
}

class Events {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  [[nodiscard]] std::string text() && { return text_ + "\n]}\n"; }

 private:
  std::string text_ = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  bool first_ = true;
};

void add_process(int number, const std::string& name, Events& events) {
  events.add(R"({{"ph": "M", "name": "process_name", "pid": {}, "args": {{"name": "{}"}}}})", number, name);
}

void add_step(const ServedStep& step, Events& events) {
  const StepLoad& most = step.busiest;
  const double at_us = 1e3 * step.start_ms;
  events.add(
      R"({{"ph": "X", "name": "{}", "cat": "step", "pid": {}, "tid": 0, "ts": {:.3f}, "dur": {:.3f}, "args": {{"answers": {}, "keys": {:.0f}, "prompt_tokens": {}, "keys_of_prompts": {:.0f}, "mean_answers": {:.2f}, "mean_prompt_tokens": {:.1f}, "waiting": {}, "moved_MB": {:.1f}, "paused_ms": {:.3f}}}}})",
      name_of(most), step.replica, at_us, 1e3 * step.ms, most.answers, most.keys, most.prompts, most.seen,
      step.mean.answers, step.mean.prompts, step.waiting, step.mean.moved_MB, step.paused_ms);
  events.add(R"({{"ph": "C", "name": "requests", "pid": {}, "ts": {:.3f}, "args": {{"decode": {}, "wait": {}}}}})",
             step.replica, at_us, most.answers, step.waiting);
}

void add_part(std::size_t id, const char* name, double from_ms, double to_ms, Events& events) {
  if (to_ms <= from_ms) return;
  for (const auto& [mark, at_ms] : {std::pair{'b', from_ms}, std::pair{'e', to_ms}}) {
    events.add(R"({{"ph": "{}", "cat": "request", "id": {}, "name": "{}", "pid": {}, "tid": 0, "ts": {:.3f}}})", mark,
               id, name, kRequests, 1e3 * at_ms);
  }
}

void add_request(std::size_t id, const ServedRequest& r, Events& events) {
  const std::string name = fmt::format("request {}", id);
  events.add(
      R"({{"ph": "b", "cat": "request", "id": {}, "name": "{}", "pid": {}, "tid": 0, "ts": {:.3f}, "args": {{"input_len": {}, "cached_len": {}, "output_len": {}, "replica": {}, "group": {}, "restarts": {}}}}})",
      id, name, kRequests, 1e3 * r.arrival_ms, r.input_len, r.cached_len, r.output_len, r.replica, r.group, r.restarts);
  for (const auto& [stage, from_ms, to_ms] : stages_of(r)) add_part(id, stage, from_ms, to_ms, events);
  events.add(R"({{"ph": "e", "cat": "request", "id": {}, "name": "{}", "pid": {}, "tid": 0, "ts": {:.3f}}})", id, name,
             kRequests, 1e3 * r.end_ms);
}

}  // namespace

std::string serve_trace(const ServeLog& log) {
  Events events;
  std::set<int> replicas;
  for (const ServedStep& step : log.steps) replicas.insert(step.replica);
  for (const int replica : replicas) add_process(replica, fmt::format("replica {}", replica), events);
  add_process(kRequests, "requests", events);
  for (const ServedStep& step : log.steps) add_step(step, events);
  for (std::size_t i = 0; i < log.requests.size(); ++i) add_request(i, log.requests[i], events);
  return std::move(events).text();
}

}  // namespace moeline
