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

}  // namespace

std::vector<std::string> measure_names() {
  std::vector<std::string> names;
  for (const Metric* metric : run_metrics()) names.emplace_back(metric->name);
  for (const ServeMetric& metric : serve_metrics()) names.emplace_back(metric.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Measure measure_named(const std::string& name) {
  const std::string known = expect_name("metric", name, measure_names());
  const ServeMetric* served = serve_metric_named(known);
  const Metric* metric = metric_named(known);
  const Measure measure =
      metric != nullptr ? Measure{known, metric->unit, metric->better} : Measure{known, served->unit, served->better};
  if (measure.better != Better::neither) return measure;
  throw SpecError(fmt::format("'{}' is neither better high nor low: there is no winner by it", known));
}

double value_of(const std::string& measure, const Run& run) {
  const Metric* metric = metric_named(measure);
  return metric != nullptr && metric->applies(run) ? metric->value(run) : NAN;
}

double value_of(const std::string& measure, const ServeResult& result) {
  const ServeMetric* metric = serve_metric_named(measure);
  return metric != nullptr ? metric->value(result) : NAN;
}

double us_of(const Measure& measure, double value) {
  if (measure.unit == "us") return value;
  if (measure.unit == "ms") return 1e3 * value;
  if (measure.unit == "s") return kMicro * value;
  return is_rate(measure) && value > 0 ? kMicro / value : 0;
}

std::string time_unit_of(const Measure& measure) {
  if (!is_rate(measure)) return "us";
  return measure.name.ends_with("_per_gpu") ? "us of one GPU for each token" : "us for each token";
}

}  // namespace moeline
