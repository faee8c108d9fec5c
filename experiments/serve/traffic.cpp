#include "experiments/serve/traffic.hpp"

#include "schedules/scenario/choices.hpp"

namespace moeline {

bool is_served(const Spec& scenario) {
  if (!scenario.has("workload")) return false;
  const Spec workload = scenario.map("workload");
  if (!workload.has("phase")) return false;
  std::vector<std::string> phases = words_of<WorkloadPhase>();
  phases.emplace_back(kServePhase);
  return workload.choice("phase", phases) == kServePhase;
}

ServeWorkload read_serve(const Spec& workload) {
  constexpr int kMostRequests = 1'000'000, kMostLength = 1 << 22, kMostTogether = 1 << 20;
  constexpr double kSlowest = 1e-4, kFastest = 1e6;
  workload.expect({"phase", "concurrency", "rate", "requests", "input_len", "input_len_spread", "cached_len",
                   "output_len", "output_len_spread", "tokens", "batch_size", "prompts"});
  const bool closed = workload.stands("concurrency"), open = workload.stands("rate");
  if (closed && open) throw workload.error("rate", "says when requests come, and so does concurrency: one of them");
  if (!closed && !open) throw workload.error("concurrency", "or rate is needed: when requests come");
  ServeWorkload w;
  if (closed) w.concurrency = workload.integer("concurrency", 1, kMostTogether);
  if (open) w.rate = workload.number("rate", kSlowest, kFastest);
  w.requests = workload.integer("requests", 1, kMostRequests);
  w.input_len = workload.integer("input_len", 1, kMostLength);
  w.cached_len = workload.integer_or("cached_len", 0, w.input_len - 1, 0);
  w.output_len = workload.integer("output_len", 1, kMostLength);
  const auto spread = [&](const char* key, int mean) {
    return workload.has(key) ? workload.number(key, 0, 4.0 * mean) : 0;
  };
  w.input_len_spread = spread("input_len_spread", w.input_len);
  w.output_len_spread = spread("output_len_spread", w.output_len);
  w.tokens = workload.integer_or("tokens", 64, kMostTogether, 8192);
  w.batch_size = workload.integer_or("batch_size", 1, kMostTogether, 0);
  if (workload.has("prompts")) {
    w.order = workload.choice("prompts", {"mixed", "first"}) == "first" ? PromptOrder::first : PromptOrder::mixed;
  }
  return w;
}

}  // namespace moeline
