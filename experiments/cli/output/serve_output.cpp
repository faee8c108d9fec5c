#include "experiments/cli/output/serve_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/cli/output/provenance.hpp"
#include "experiments/report/json.hpp"
#include "experiments/serve/measures.hpp"

namespace moeline {
namespace {

std::string length(const Length& of) {
  if (of.most > 0) return fmt::format("{} to {}", of.least, of.most);
  return of.spread > 0 ? fmt::format("{} +- {:.0f}", of.mean, of.spread) : fmt::format("{}", of.mean);
}

std::string traffic(const ServeWorkload& w) {
  const std::string come = w.concurrency > 0  ? fmt::format("{} at a time", w.concurrency)
                           : !w.rates.empty() ? fmt::format("{} per second", fmt::join(w.rates, ", "))
                                              : "as in the trace";
  std::string lengths = fmt::format("of {} requests in a trace", w.trace.size());
  if (w.trace.empty()) {
    const std::string cached = w.cached_len > 0 ? fmt::format(" ({} cached)", w.cached_len)
                               : w.prefixes.count > 0
                                   ? fmt::format(" ({} of {} prefixes)", w.prefixes.len, w.prefixes.count)
                                   : "";
    lengths = fmt::format("of {}{} + {} tokens", length(w.input), cached, length(w.output));
  }
  return fmt::format("{} requests, {}, {}", w.requests, come, lengths);
}

std::string pool(const ServePool& p, const char* what) {
  const Scenario& s = p.setup.scenario;
  return fmt::format("{} of {} {} ({}, {}), {} attention group{}: {}",
                     p.replicas > 1 ? fmt::format("{} replicas", p.replicas) : "one replica", s.parallelism.world(),
                     s.hardware, s.kernels, s.schedule, p.shape.groups, p.shape.groups > 1 ? "s each" : "", what);
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

void add_series(Json& json, const ServeLog& log) {
  constexpr int kSlices = 60;
  json.open_list("series");
  for (const ServeSlice& each : time_series(log, kSlices)) {
    json.open().add("begin_ms", each.begin_ms).add("end_ms", each.end_ms);
    json.add("arrivals_per_s", each.arrivals_per_s).add("output_tokens_per_s", each.output_tokens_per_s);
    json.add("waiting", each.waiting).add("running", each.running).add("ttft_p50_ms", each.ttft_p50_ms);
    json.add("ttft_p99_ms", each.ttft_p99_ms).add("tpot_p50_ms", each.tpot_p50_ms);
    if (!log.replicas_on.empty()) json.add("replicas_on", each.replicas_on);
    json.close();
  }
  json.close_list();
}

std::string where(const WhereTimeWent& w) {
  std::string text = "where a request's time goes, ms on average\n";
  const std::pair<const char*, double> parts[] = {{"queue", w.queue},
                                                  {"prefill", w.prefill},
                                                  {"transfer of its cache", w.transfer},
                                                  {"decoding", w.decode},
                                                  {"longer for others' prompts", w.beside},
                                                  {"without its cache", w.stalled}};
  for (const auto& [what, ms] : parts) {
    if (ms > 0) text += fmt::format("  {:<26} {:>9.1f}\n", what, ms);
  }
  return text + "\n";
}

std::string kinds(const ServePool& p) {
  return fmt::format(
      "{} kinds simulated; between them interpolated, within {:.1f} % in the middle, {:.1f} % where checked\n{}\n",
      p.simulated_steps, 100 * p.middles_error, 100 * p.steps_error, known_line("their kernels'", p.known));
}

void add(Json& json, const char* key, const ServePool& p) {
  const Scenario& s = p.setup.scenario;
  json.open(key).add("hardware", s.hardware).add("kernels", s.kernels).add("schedule", s.schedule);
  json.add("replicas", p.replicas).add("gpus", p.gpus(), 0).add("attention_groups", p.shape.groups);
  json.add("kv_tokens_per_group", p.shape.kv_tokens, 0).add("simulated_steps", p.simulated_steps);
  json.add("interpolation_error", p.steps_error, 6).add("interpolation_error_in_middle", p.middles_error, 6);
  add_known_shares(json, p.known);
  json.close();
}

void add(Json& json, const char* key, const Length& of) {
  json.open(key).add("mean", of.mean).add("spread", of.spread);
  if (of.most > 0) json.add("least", of.least).add("most", of.most);
  json.close();
}

void add(Json& json, const ServeWorkload& w) {
  json.open("workload").add("concurrency", w.concurrency).add("requests", w.requests);
  if (w.trace.empty()) {
    add(json, "input_len", w.input);
    add(json, "output_len", w.output);
  }
  json.add("rates", w.rates, 6)
      .add("cached_len", w.cached_len)
      .add("traced_requests", w.trace.size())
      .add("tokens", w.tokens);
  json.add("query_len", w.query_len).close();
}

}  // namespace

std::vector<std::string> serve_title(const ServeResult& r) {
  const ServeWorkload& w = r.workload;
  const char* how = w.order == PromptOrder::mixed ? "prompts beside answers" : "prompts first";
  std::vector<std::string> lines = {fmt::format("{}: {}", r.answers.setup.scenario.model, traffic(w)),
                                    pool(r.answers, r.prompts ? "answers" : how)};
  if (r.prompts) lines.push_back(pool(*r.prompts, "prompts"));
  return lines;
}

std::string serve_table(const ServeResult& r) {
  const ServeMeasures& m = r.measures;
  std::string text = fmt::format("{}\n\n", fmt::join(serve_title(r), "\n")) + rows("in the steady state", m.steady);
  if (m.first.requests > 0) text += rows("all at once at first", m.first);
  text += where(m.where);
  const auto line = [](const char* what, double value, const std::string& unit) {
    return fmt::format("{:<26} {:>11.1f}   {}\n", what, value, unit);
  };
  text += line("output tokens/s per GPU", m.output_tokens_per_s / r.gpus(), fmt::format("of {} GPUs", r.gpus()));
  text += line("all tokens/s per GPU", m.total_tokens_per_s / r.gpus(), "cached ones left out");
  text += line("running on average", m.mean_running, fmt::format("of requests, {:.1f} wait", m.mean_waiting));
  text += line("steps with prompts", 100 * m.prompt_share, "% of the steps' time");
  if (m.cached_share > 0) text += line("cached", 100 * m.cached_share, "% of the prompts' tokens");
  if (m.restarts > 0) text += line("restarts", m.restarts, "of requests that lost their cache to others");
  if (m.retries > 0) text += line("retries", m.retries, "of requests whose replica went");
  if (r.workload.scaling.applies()) {
    text += line("replicas that are on", m.mean_replicas_on, fmt::format("of {} that answer", r.answers.replicas));
  }
  if (m.rebalancings > 0)
    text += line("rebalancings", m.rebalancings, fmt::format("stopped {:.3f} s", m.paused_ms / 1e3));
  const ServeLimits& limits = r.workload.limits;
  if (limits.ttft_ms > 0 || limits.tpot_ms > 0) {
    text += line("good", 100 * m.good_share, "% of requests are within the limits");
    text += line("good output tokens/s/GPU", m.good_output_tokens_per_s / r.gpus(), "of these");
  }
  text += fmt::format("\n{} steps in {:.1f} s; ", r.log.steps.size(), r.log.end_ms / 1e3);
  return text + kinds(r.answers) + (r.prompts ? fmt::format("of prompts {}", kinds(*r.prompts)) : "");
}

std::string serve_json(const ServeResult& r) {
  const ServeMeasures& m = r.measures;
  Json json;
  json.open().add("schema_version", 1).add("model", r.answers.setup.scenario.model).add("gpus", r.gpus(), 0);
  add(json, r.workload);
  add(json, "answers", r.answers);
  if (r.prompts) add(json, "prompts", *r.prompts);
  add(json, "steady", m.steady);
  if (m.first.requests > 0) add(json, "first", m.first);
  json.open("where_ms").add("queue", m.where.queue).add("prefill", m.where.prefill);
  json.add("transfer", m.where.transfer).add("stalled", m.where.stalled).add("beside", m.where.beside);
  json.add("decode", m.where.decode).close();
  json.add("output_tokens_per_s_per_gpu", m.output_tokens_per_s / r.gpus());
  json.add("tokens_per_s_per_gpu", m.total_tokens_per_s / r.gpus());
  json.add("mean_running", m.mean_running).add("mean_waiting", m.mean_waiting).add("prompt_share", m.prompt_share, 6);
  json.add("cached_share", m.cached_share, 6).add("restarts", m.restarts).add("retries", m.retries);
  json.add("rebalancings", m.rebalancings).add("paused_ms", m.paused_ms, 6);
  if (r.workload.scaling.applies()) json.add("mean_replicas_on", m.mean_replicas_on, 6);
  json.add("good_share", m.good_share, 6);
  json.add("good_output_tokens_per_s_per_gpu", m.good_output_tokens_per_s / r.gpus());
  json.add("steps", r.log.steps.size()).add("end_ms", r.log.end_ms);
  add_series(json, r.log);
  json.close();
  return json.text();
}

std::string serve_csv(const ServeResult& r) {
  std::string text =
      "arrival_ms,begin_ms,first_token_ms,end_ms,replica,group,input_len,cached_len,output_len,transfer_ms,stalled_ms,"
      "beside_ms,restarts,retries\n";
  for (const ServedRequest& each : r.log.requests) {
    text += fmt::format("{:.6f},{:.6f},{:.6f},{:.6f},{},{},{},{},{},{:.6f},{:.6f},{:.6f},{},{}\n", each.arrival_ms,
                        each.begin_ms, each.first_token_ms, each.end_ms, each.replica, each.group, each.input_len,
                        each.cached_len, each.output_len, each.transfer_ms, each.stalled_ms, each.beside_ms,
                        each.restarts, each.retries);
  }
  return text;
}

}  // namespace moeline
