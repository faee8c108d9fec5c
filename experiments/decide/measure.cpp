#include "experiments/decide/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "experiments/serve/serve_metrics.hpp"

namespace moeline {
namespace {

constexpr double kMicro = 1e6;

bool is_rate(const Measure& measure) { return measure.unit == "tokens/s"; }

bool is_among(const std::string& name, std::initializer_list<const char*> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::vector<std::string> measure_names() {
  std::vector<std::string> names = {kGpuUsPerToken};
  for (const Metric* metric : run_metrics()) names.emplace_back(metric->name);
  for (const ServeMetric& metric : serve_metrics()) names.emplace_back(metric.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Measure measure_named(const std::string& name) {
  const std::string known = expect_name("metric", name, measure_names());
  if (known == kGpuUsPerToken) return {known, "us", Better::lower};
  const ServeMetric* served = serve_metric_named(known);
  const Metric* metric = metric_named(known);
  const Measure measure =
      metric != nullptr ? Measure{known, metric->unit, metric->better} : Measure{known, served->unit, served->better};
  if (measure.better != Better::neither) return measure;
  throw SpecError(fmt::format("'{}' is neither better high nor low: there is no winner by it", known));
}

double value_of(const std::string& measure, const Run& run) {
  if (measure == kGpuUsPerToken) {
    const double tokens = tokens_per_gpu(run);
    return tokens > 0 ? to_us(run.metrics.span) / tokens : NAN;
  }
  const Metric* metric = metric_named(measure);
  return metric != nullptr && metric->applies(run) ? metric->value(run) : NAN;
}

double value_of(const std::string& measure, const ServeResult& result) {
  const ServeMetric* metric = serve_metric_named(measure);
  return metric != nullptr ? metric->value(result) : NAN;
}

double tokens_per_gpu(const Run& run) {
  const Scenario& s = run.setup.scenario;
  if (run.has_given_slots()) return 0;
  const auto gpus = static_cast<double>(s.parallelism.world());
  if (s.phase() != WorkloadPhase::train) return tokens_of_experts(s) / gpus;
  const TrainWorkload& w = as_train(s.workload);
  const double sequences = run.step() != nullptr ? w.global_batch_size / gpus
                                                 : 1.0 * w.micro_batch_size / (s.parallelism.tp * s.parallelism.cp);
  return sequences * w.seq_len;
}

TimeOf time_of(const Measure& measure, bool of_requests) {
  const std::string& name = measure.name;
  if (of_requests) {
    if (is_rate(measure) || name == "request_ms") return TimeOf::all;
    if (name == "ttft_ms") return TimeOf::first_token;
    return name == "tpot_ms" ? TimeOf::next_tokens : TimeOf::nothing;
  }
  const bool follows = is_among(
      name, {"step_ms", "tpot_ms", "ttft_ms", "tokens_per_s_per_gpu", kGpuUsPerToken, "gpu_hours_per_trillion_tokens"});
  return follows ? TimeOf::all : TimeOf::nothing;
}

double us_of(const Measure& measure, double value) {
  if (measure.unit == "us") return value;
  if (measure.unit == "ms") return 1e3 * value;
  if (measure.unit == "GPU-hours") return value * 3600 * kMicro / 1e12;
  return is_rate(measure) && value > 0 ? kMicro / value : 0;
}

std::string time_unit_of(const Measure& measure, bool of_requests) {
  if (time_of(measure, of_requests) == TimeOf::nothing) return of_requests ? "us of a request" : "us of the step";
  if (measure.unit == "ms") return "us";
  return measure.name.find("throughput") != std::string::npos && !measure.name.ends_with("_per_gpu")
             ? "us for each token"
             : "us of one GPU for each token";
}

}  // namespace moeline
