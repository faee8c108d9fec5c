#include "experiments/cli/output/serve_output.hpp"

#include <fmt/format.h>

#include "experiments/cli/output/json.hpp"

namespace moeline {
namespace {

std::string traffic(const ServeWorkload& w) {
  const std::string come =
      w.concurrency > 0 ? fmt::format("{} at a time", w.concurrency) : fmt::format("{} per second", w.rate);
  const std::string cached = w.cached_len > 0 ? fmt::format(" ({} cached)", w.cached_len) : "";
  const auto length = [](int mean, double spread) {
    return spread > 0 ? fmt::format("{} +- {:.0f}", mean, spread) : fmt::format("{}", mean);
  };
  return fmt::format("{} requests, {}, of {}{} + {} tokens", w.requests, come, length(w.input_len, w.input_len_spread),
                     cached, length(w.output_len, w.output_len_spread));
}

std::string title(const ServeResult& r) {
  const Scenario& s = r.setup.scenario;
  return fmt::format("{} on {} {} ({}), {} attention group{}\n{}; prompts {} within {} tokens a step\n\n", s.model,
                     s.parallelism.world(), s.hardware, s.kernels, r.shape.groups, r.shape.groups > 1 ? "s" : "",
                     traffic(r.workload), r.workload.order == PromptOrder::mixed ? "beside answers" : "first",
                     r.workload.tokens);
}

std::string row(const char* what, const Quantiles& q, double scale) {
  return fmt::format("{:<26} {:>11.2f} {:>11.2f} {:>11.2f} {:>11.2f}\n", what, q.p50 * scale, q.p90 * scale,
                     q.p99 * scale, q.mean * scale);
}

std::string rows(const std::string& which, const RequestTimes& times) {
  constexpr double kSeconds = 1e-3;
  std::string text = fmt::format("{:<26} {:>11} {:>11} {:>11} {:>11}\n", fmt::format("{}: {}", times.requests, which),
                                 "p50", "p90", "p99", "mean");
  text += row("TTFT, ms", times.ttft_ms, 1) + row("  in the queue", times.queue_ms, 1);
  text += row("TPOT, ms", times.tpot_ms, 1) + row("request, s", times.total_ms, kSeconds);
  return text + "\n";
}

void add(Json& json, const char* key, const Quantiles& q) {
  json.open(key).add("p50", q.p50).add("p90", q.p90).add("p99", q.p99).add("mean", q.mean).close();
}

void add(Json& json, const char* key, const RequestTimes& times) {
  json.open(key).add("requests", times.requests);
  add(json, "queue_ms", times.queue_ms);
  add(json, "ttft_ms", times.ttft_ms);
  add(json, "tpot_ms", times.tpot_ms);
  add(json, "request_ms", times.total_ms);
  json.close();
}

}  // namespace

std::string serve_table(const ServeResult& r) {
  std::string text = title(r) + rows("in the steady state", r.steady);
  if (r.first.requests > 0) text += rows("all at once at first", r.first);
  text += fmt::format("{:<26} {:>11.1f}\n", "output tokens/s per GPU", r.output_tokens_per_s);
  text += fmt::format("{:<26} {:>11.1f}   cached ones left out\n", "all tokens/s per GPU", r.total_tokens_per_s);
  text += fmt::format("{:<26} {:>11.1f}   of requests, {:.1f} wait\n", "running on average", r.mean_running,
                      r.mean_waiting);
  text += fmt::format("{:<26} {:>11.1f}   % of the time\n", "steps with prompts", 100 * r.prompt_share);
  text += fmt::format("\n{} steps in {:.1f} s; {} kinds simulated, and between them interpolated within {:.1f} %\n",
                      r.log.steps.size(), r.log.end_ms / 1e3, r.simulated_steps, 100 * r.interpolation_error);
  return text;
}

std::string serve_json(const ServeResult& r) {
  const ServeWorkload& w = r.workload;
  const Scenario& s = r.setup.scenario;
  Json json;
  json.open().add("schema_version", 1).add("model", s.model).add("hardware", s.hardware).add("kernels", s.kernels);
  json.add("gpus", static_cast<std::int64_t>(s.parallelism.world())).add("attention_groups", r.shape.groups);
  json.add("kv_tokens_per_group", r.shape.kv_tokens, 0);
  json.open("workload").add("concurrency", w.concurrency).add("rate", w.rate).add("requests", w.requests);
  json.add("input_len", w.input_len).add("cached_len", w.cached_len).add("output_len", w.output_len);
  json.add("input_len_spread", w.input_len_spread).add("output_len_spread", w.output_len_spread);
  json.add("tokens", w.tokens).add("prompts", w.order == PromptOrder::mixed ? "mixed" : "first").close();
  add(json, "steady", r.steady);
  if (r.first.requests > 0) add(json, "first", r.first);
  json.add("output_tokens_per_s_per_gpu", r.output_tokens_per_s).add("tokens_per_s_per_gpu", r.total_tokens_per_s);
  json.add("mean_running", r.mean_running).add("mean_waiting", r.mean_waiting).add("prompt_share", r.prompt_share, 6);
  json.add("steps", r.log.steps.size()).add("simulated_steps", r.simulated_steps);
  json.add("interpolation_error", r.interpolation_error, 6).add("end_ms", r.log.end_ms).close();
  return json.text();
}

std::string serve_csv(const ServeResult& r) {
  std::string text = "arrival_ms,begin_ms,first_token_ms,end_ms,group,input_len,cached_len,output_len\n";
  for (const ServedRequest& each : r.log.requests) {
    text += fmt::format("{:.6f},{:.6f},{:.6f},{:.6f},{},{},{},{}\n", each.arrival_ms, each.begin_ms,
                        each.first_token_ms, each.end_ms, each.group, each.input_len, each.cached_len, each.output_len);
  }
  return text;
}

}  // namespace moeline
