// The table of metrics (experiments/run/metrics.hpp), written out.
#pragma once

#include <span>
#include <string>

#include "experiments/report/fields.hpp"
#include "experiments/run/metrics.hpp"
#include "experiments/run/run.hpp"

namespace moeline {

/// What schemas say of it: with its unit.
[[nodiscard]] std::string meaning_of(const Metric& metric);

/// How JSON writes it, and within which range.
[[nodiscard]] As as_of(const Metric& metric);
/// The key of a metric with what `get` finds, in an object that is no run's.
template <class T, class Get>
void add_metric(Fields<T>& fields, const char* name, Get get) {
  const Metric& metric = *metric_named(name);
  fields.add(name, meaning_of(metric), get, as_of(metric));
}
/// The same with the run's own value, where the metric applies; `has`: whether that is so of all such runs.
void add_metric(Fields<Run>& fields, const Metric& metric, Has has);
/// The object "metrics" of a run.
[[nodiscard]] Fields<Run> metric_fields(RunKind kind);

/// The metrics that people read, a line for each. The baseline's stand in a column beside them, where it is not null;
/// of a step of training, what a time is of the step.
[[nodiscard]] std::string metric_table(const Run& run, const Run* baseline = nullptr);

/// "NAME: meaning." of every metric in JSON or studies, for --help.
[[nodiscard]] std::string metric_definitions();

/// A schema with the definitions that it refers to and that this table has: "metric" and "metric_of_fact", the names
/// that studies and facts may give.
[[nodiscard]] std::string with_metrics(std::string schema);

}  // namespace moeline
