#include "experiments/cli/output/serve_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "experiments/cli/output/memory_output.hpp"
#include "experiments/cli/output/provenance.hpp"
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

std::string where(const WhereTimeWent& w) {
  std::string text = "where a request's time goes, ms on average\n";
  const std::pair<const char*, double> parts[] = {{"queue", w.queue},
                                                  {"prefill", w.prefill},
                                                  {"waiting for a slot", w.slot},
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

Fields<Quantiles> quantile_fields() {
  return Fields<Quantiles>()
      .add("p50", "median", &Quantiles::p50)
      .add("p90", "90 % quantile", &Quantiles::p90)
      .add("p99", "99 % quantile", &Quantiles::p99)
      .add("mean", "mean", &Quantiles::mean);
}

Fields<RequestTimes> request_times_fields() {
  return Fields<RequestTimes>()
      .add("requests", "how many", &RequestTimes::requests)
      .object("queue_ms", "ms before its first step begins", &RequestTimes::queue_ms, quantile_fields())
      .object("ttft_ms", "ms to the first token", &RequestTimes::ttft_ms, quantile_fields())
      .object("tpot_ms", "ms per output token", &RequestTimes::tpot_ms, quantile_fields())
      .object("request_ms", "ms of the whole request", &RequestTimes::total_ms, quantile_fields());
}

Fields<Length> length_fields() {
  return Fields<Length>()
      .add("mean", "mean", &Length::mean)
      .add("spread", "standard deviation", &Length::spread)
      .add("least", "least", [](auto& l) { return only_if(l.most > 0, l.least); })
      .add("most", "most", [](auto& l) { return only_if(l.most > 0, l.most); });
}

Fields<ServeWorkload> asked_fields() {
  return Fields<ServeWorkload>()
      .add("concurrency", "requests at any time; 0: they come at a rate", &ServeWorkload::concurrency)
      .add("requests", "requests served", &ServeWorkload::requests)
      .object(
          "input_len", "tokens of prompts", [](auto& w) { return only_if(w.trace.empty(), w.input); }, length_fields())
      .object(
          "output_len", "tokens of answers", [](auto& w) { return only_if(w.trace.empty(), w.output); },
          length_fields())
      .add("rates", "requests per second, one after the other", &ServeWorkload::rates, {.decimals = 6})
      .add("cached_len", "tokens of each prompt that are cached", &ServeWorkload::cached_len)
      .add("traced_requests", "requests of the trace", [](auto& w) { return w.trace.size(); })
      .add("scheduler", "whose rules", [](auto& w) { return word_of(w.scheduler); }, {.words = words_of<Stack>()})
      .add("tokens", "of an attention group in a step", &ServeWorkload::tokens)
      .add("prompts", "how prompts and answers share steps", [](auto& w) { return word_of(w.order); },
           {.words = words_of<PromptOrder>()})
      .add("kv_room", "what a request must find in the cache", [](auto& w) { return word_of(w.room); },
           {.words = words_of<KvRoom>()})
      .add("router", "where a request goes", [](auto& w) { return word_of(w.router); },
           {.words = words_of<RouterRule>()})
      .add("query_len", "tokens per request and step", &ServeWorkload::query_len);
}

Fields<SchedulerDefault> default_fields() {
  return Fields<SchedulerDefault>()
      .add("key", "of the workload", &SchedulerDefault::key)
      .add("value", "what it is", &SchedulerDefault::value)
      .add("source", "where that is written", [](auto& d) { return d.source; });
}

Fields<Quantiles> bench_figure_fields() {
  return Fields<Quantiles>()
      .add("mean", "mean", &Quantiles::mean)
      .add("median", "median", &Quantiles::p50)
      .add("p99", "99th percentile", &Quantiles::p99);
}

Fields<BenchFigures> bench_fields() {
  using B = BenchFigures;
  return Fields<B>()
      .add("duration_s", "from the first request to the last end", &B::duration_s)
      .add("request_throughput", "requests a second", &B::request_throughput, {.decimals = 6})
      .add("output_throughput", "tokens of answers a second", &B::output_throughput)
      .add("total_token_throughput", "tokens of prompts, cached ones too, and answers a second",
           &B::total_token_throughput)
      .object("ttft_ms", "time to first token", &B::ttft_ms, bench_figure_fields())
      .object("tpot_ms", "time per output token but the first, of a request", &B::tpot_ms, bench_figure_fields())
      .object("itl_ms", "between two tokens", &B::itl_ms, bench_figure_fields())
      .object("e2el_ms", "of a request", &B::e2el_ms, bench_figure_fields());
}

Fields<ServePool> pool_fields() {
  return Fields<ServePool>()
      .add("hardware", "machine", [](auto& p) { return p.setup.scenario.hardware; })
      .add("kernels", "kernel set", [](auto& p) { return p.setup.scenario.kernels; })
      .add("schedule", "what runs when", [](auto& p) { return p.setup.scenario.schedule; }, {.words = schedule_names()})
      .add("replicas", "how many", &ServePool::replicas)
      .add("gpus", "GPUs of all of them", &ServePool::gpus, {.decimals = 0})
      .add("attention_groups", "of each replica", [](auto& p) { return p.shape.groups; })
      .add("batch_limit", "requests that such a group runs at a time at most; absent: as many as fit",
           [](auto& p) { return only_if(p.shape.most_running < habits::kNoLimit, p.shape.most_running); })
      .add("kv_tokens_per_group", "tokens that an attention group's cache holds",
           [](auto& p) { return p.shape.kv_tokens; }, {.decimals = 0})
      .add("simulated_steps", "kinds of steps that were simulated; others are interpolated",
           &ServePool::simulated_steps)
      .add("interpolation_error", "largest error where steps of the run were simulated as they are, a fraction",
           &ServePool::steps_error, {.decimals = 6})
      .add("interpolation_error_in_middle", "largest error in the middle of grid cells, a fraction",
           &ServePool::middles_error, {.decimals = 6})
      .all(&ServePool::known, known_fields());
}

Fields<WhereTimeWent> where_fields() {
  return Fields<WhereTimeWent>()
      .add("queue", "before its first step", &WhereTimeWent::queue)
      .add("prefill", "in steps with its prompt", &WhereTimeWent::prefill)
      .add("slot", "until there is room for it where it decodes, if that is elsewhere", &WhereTimeWent::slot)
      .add("transfer", "until its cache has moved there", &WhereTimeWent::transfer)
      .add("stalled", "without its cache, or its replica", &WhereTimeWent::stalled)
      .add("beside", "steps that are longer for others' prompts", &WhereTimeWent::beside)
      .add("decode", "decoding", &WhereTimeWent::decode);
}

struct SliceOfLog {
  const ServeLog& log;
  ServeSlice slice;
};

std::vector<SliceOfLog> series(const ServeResult& r) {
  constexpr int kSlices = 60;
  std::vector<SliceOfLog> slices;
  for (const ServeSlice& each : time_series(r.log, kSlices)) slices.push_back({r.log, each});
  return slices;
}

Fields<SliceOfLog> slice_fields() {
  const auto slice = Fields<ServeSlice>()
                         .add("begin_ms", "begin", &ServeSlice::begin_ms)
                         .add("end_ms", "end", &ServeSlice::end_ms)
                         .add("arrivals_per_s", "requests that come", &ServeSlice::arrivals_per_s)
                         .add("output_tokens_per_s", "tokens of answers, of all GPUs", &ServeSlice::output_tokens_per_s)
                         .add("waiting", "requests that wait", &ServeSlice::waiting)
                         .add("running", "requests that run", &ServeSlice::running)
                         .add("ttft_p50_ms", "median TTFT, ms", &ServeSlice::ttft_p50_ms)
                         .add("ttft_p99_ms", "99 % quantile of TTFT, ms", &ServeSlice::ttft_p99_ms)
                         .add("tpot_p50_ms", "median TPOT, ms", &ServeSlice::tpot_p50_ms);
  return Fields<SliceOfLog>().all(&SliceOfLog::slice, slice).add("replicas_on", "replicas that are on", [](auto& s) {
    return only_if(!s.log.replicas_on.empty(), s.slice.replicas_on);
  });
}

Fields<ServeResult> rate_fields() {
  return Fields<ServeResult>()
      .add("output_tokens_per_s_per_gpu", "tokens of answers",
           [](auto& r) { return r.measures.output_tokens_per_s / r.gpus(); })
      .add("tokens_per_s_per_gpu", "all tokens that are computed, cached ones left out",
           [](auto& r) { return r.measures.total_tokens_per_s / r.gpus(); });
}

Fields<ServeMeasures> measure_fields() {
  return Fields<ServeMeasures>()
      .add("mean_running", "requests that run, on average", &ServeMeasures::mean_running)
      .add("held_back_by",
           "what kept requests waiting for the longest time: room in the cache, or the limit of a batch",
           [](auto& m) { return name_of(m.held_back_by); }, {.words = words_to(HeldBack::batch_limit)})
      .add("most_running", "requests that decode in a step, at most, of an attention group",
           &ServeMeasures::most_running, {.decimals = 0})
      .add("mean_waiting", "requests that wait, on average", &ServeMeasures::mean_waiting)
      .add("prompt_share", "share of the steps' time in steps with prompts", &ServeMeasures::prompt_share,
           {.decimals = 6, .most = 1})
      .add("padding_share", "share of rows that no request has, of steps that only decode",
           &ServeMeasures::padding_share, {.decimals = 6, .most = 1})
      .add("cached_share", "share of the prompts' tokens that were cached", &ServeMeasures::cached_share,
           {.decimals = 6, .most = 1})
      .add("restarts", "of requests that lost their cache to others", &ServeMeasures::restarts)
      .add("retries", "of requests whose replica went", &ServeMeasures::retries)
      .add("rebalancings", "times that experts were placed anew", &ServeMeasures::rebalancings)
      .add("paused_ms", "ms in which steps waited for experts to move", &ServeMeasures::paused_ms, {.decimals = 6});
}

Fields<ServeResult> serve_fields() {
  return output_fields<ServeResult>()
      .add("model", "model", [](auto& r) { return r.answers.setup.scenario.model; })
      .add("gpus", "GPUs of all replicas", &ServeResult::gpus, {.decimals = 0})
      .object("workload", "what was asked", &ServeResult::workload, asked_fields())
      .list("scheduler_defaults", "what the scheduler says where the scenario does not", &ServeResult::defaults,
            default_fields())
      .object("answers", "replicas that decode", &ServeResult::answers, pool_fields())
      .object("prompts", "replicas that compute prompts, where they are apart", &ServeResult::prompts, pool_fields())
      .object("memory", "of each GPU that decodes", &ServeResult::answers, served_memory_fields())
      .object("memory_of_prompts", "of each GPU that computes prompts, where these are apart", &ServeResult::prompts,
              served_memory_fields())
      .object(
          "steady", "requests in the steady state", [](auto& r) -> auto& { return r.measures.steady; },
          request_times_fields())
      .object(
          "first", "requests that all come at once at first",
          [](auto& r) { return only_if(r.measures.first.requests > 0, r.measures.first); }, request_times_fields())
      .object(
          "where_ms", "where a request's time goes, ms on average", [](auto& r) -> auto& { return r.measures.where; },
          where_fields())
      .object(
          "bench", "the whole run, by the names of the stacks' benchmarks",
          [](auto& r) -> auto& { return r.measures.bench; }, bench_fields())
      .add("halves_differ", "of the steady state: TPOT of those that come later over that of the earlier, - 1",
           [](auto& r) { return r.measures.halves_differ; }, {.decimals = 6})
      .all(std::identity(), rate_fields())
      .all(&ServeResult::measures, measure_fields())
      .add("mean_replicas_on", "replicas that are on, on average, with scaling",
           [](auto& r) { return only_if(r.workload.scaling.applies(), r.measures.mean_replicas_on); }, {.decimals = 6})
      .add("good_share", "share of requests within the limits", [](auto& r) { return r.measures.good_share; },
           {.decimals = 6, .most = 1})
      .add("good_output_tokens_per_s_per_gpu", "output tokens of these",
           [](auto& r) { return r.measures.good_output_tokens_per_s / r.gpus(); })
      .add("steps", "steps taken", [](auto& r) { return r.log.steps.size(); })
      .add("end_ms", "ms until the last one ends", [](auto& r) { return r.log.end_ms; })
      .list("series", "the run in equal slices of time", series, slice_fields());
}

std::string held_back(const ServeResult& r) {
  const std::string most = r.answers.shape.groups > 1 ? "of an attention group" : "of requests";
  switch (r.measures.held_back_by) {
    case HeldBack::cache:
      return most + ", held back by the cache";
    case HeldBack::batch_limit:
      return most + ", held back by the limit of a batch";
    case HeldBack::nothing:
      break;
  }
  return most + ", held back by nothing";
}

}  // namespace

namespace {

// "by SGLang's scheduler: tokens 1024, prompts first_by_rank".
std::string by_scheduler(const ServeResult& r) {
  std::vector<std::string> parts;
  for (const SchedulerDefault& each : r.defaults) parts.push_back(each.key + " " + each.value);
  return fmt::format("by {}'s scheduler: {}", title_of(r.workload.scheduler), fmt::join(parts, ", "));
}

std::string bench(const BenchFigures& b) {
  std::string text = fmt::format("{:<26} {:>11} {:>11} {:>11}\n", "the whole run", "mean", "median", "p99");
  for (const auto& [what, figure] : bench_rows(b)) {
    text += fmt::format("{:<26} {:>11.2f} {:>11.2f} {:>11.2f}\n", what, figure.mean, figure.p50, figure.p99);
  }
  return text + fmt::format("  {:.3f} requests/s, {:.1f} output tokens/s, {:.1f} tokens/s in all\n\n",
                            b.request_throughput, b.output_throughput, b.total_token_throughput);
}

}  // namespace

std::vector<std::pair<const char*, Quantiles>> bench_rows(const BenchFigures& b) {
  return {{"TTFT, ms", b.ttft_ms}, {"TPOT, ms", b.tpot_ms}, {"ITL, ms", b.itl_ms}, {"E2E latency, ms", b.e2el_ms}};
}

std::vector<std::string> serve_title(const ServeResult& r) {
  const ServeWorkload& w = r.workload;
  const char* how = w.order == PromptOrder::mixed   ? "prompts beside answers"
                    : w.order == PromptOrder::first ? "prompts first"
                                                    : "prompts first in each group";
  std::vector<std::string> lines = {fmt::format("{}: {}", r.answers.setup.scenario.model, traffic(w)),
                                    pool(r.answers, r.prompts ? "answers" : how)};
  if (r.prompts) lines.push_back(pool(*r.prompts, "prompts"));
  if (!r.defaults.empty()) lines.push_back(by_scheduler(r));
  return lines;
}

std::string no_steady_state(const ServeResult& r) {
  constexpr double kUnlike = 0.05, kTimes = 10;
  const double differ = r.measures.halves_differ;
  if (std::abs(differ) <= kUnlike) return "";
  const double enough = std::max(2.0 * r.workload.requests, kTimes * r.workload.concurrency);
  return fmt::format(
      "no steady state: TPOT of the requests that come later is {:+.0f} % of that of the earlier; try {:.0f} requests",
      100 * differ, enough);
}

std::string serve_table(const ServeResult& r) {
  const ServeMeasures& m = r.measures;
  std::string text = fmt::format("{}\n\n", fmt::join(serve_title(r), "\n")) + rows("in the steady state", m.steady);
  if (m.first.requests > 0) text += rows("all at once at first", m.first);
  text += bench(m.bench) + where(m.where);
  const auto line = [](const char* what, double value, const std::string& unit) {
    return fmt::format("{:<26} {:>11.1f}   {}\n", what, value, unit);
  };
  text += line("output tokens/s per GPU", m.output_tokens_per_s / r.gpus(), fmt::format("of {} GPUs", r.gpus()));
  text += line("all tokens/s per GPU", m.total_tokens_per_s / r.gpus(), "cached ones left out");
  text += line("running on average", m.mean_running, fmt::format("of requests, {:.1f} wait", m.mean_waiting));
  text += line("at most", m.most_running, held_back(r));
  text += line("steps with prompts", 100 * m.prompt_share, "% of the steps' time");
  if (m.padding_share > 0) text += line("padding of CUDA graphs", 100 * m.padding_share, "% of the rows that decode");
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
  text += kinds(r.answers) + (r.prompts ? fmt::format("of prompts {}", kinds(*r.prompts)) : "");
  return text + memory_line(r.answers) + (r.prompts ? "of prompts " + memory_line(*r.prompts) : "");
}

std::string serve_json(const ServeResult& r) { return serve_fields().json(r); }

Describe served_requests() { return serve_fields().described(); }

std::string serve_csv(const ServeResult& r) {
  std::string text =
      "arrival_ms,begin_ms,first_token_ms,end_ms,replica,group,input_len,cached_len,output_len,slot_ms,transfer_ms,"
      "stalled_ms,"
      "beside_ms,restarts,retries\n";
  for (const ServedRequest& each : r.log.requests) {
    text += fmt::format("{:.6f},{:.6f},{:.6f},{:.6f},{},{},{},{},{},{:.6f},{:.6f},{:.6f},{:.6f},{},{}\n",
                        each.arrival_ms, each.begin_ms, each.first_token_ms, each.end_ms, each.replica, each.group,
                        each.input_len, each.cached_len, each.output_len, each.slot_ms, each.transfer_ms,
                        each.stalled_ms, each.beside_ms, each.restarts, each.retries);
  }
  return text;
}

}  // namespace moeline
