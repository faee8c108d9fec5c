// The table of metrics (experiments/run/metrics.hpp), written out.
#pragma once

#include <span>
#include <string>

#include "experiments/report/json.hpp"
#include "experiments/run/metrics.hpp"
#include "experiments/run/run.hpp"

namespace moeline {

/// What schemas say of it: with its unit.
[[nodiscard]] std::string meaning_of(const Metric& metric);

void add_metric(Json& json, const Metric& metric, double value);
/// The object "metrics" of a run.
void add_metrics(Json& json, const Run& run);
/// "memory": what a GPU's memory consists of.
void add_memory_parts(Json& json, const Memory& memory);

/// The metrics that people read, a line for each. The baseline's stand in a column beside them, where it is not null;
/// of a step of training, what a time is of the step.
[[nodiscard]] std::string metric_table(const Run& run, const Run* baseline = nullptr);

/// "NAME: meaning." of every metric in JSON or studies, for --help.
[[nodiscard]] std::string metric_definitions();

/// A schema with one more definition.
[[nodiscard]] std::string with_definition(std::string schema, const std::string& name, const std::string& definition);
/// A schema with the definitions that it refers to and that this table has: "metric_step_ms" and so on of every metric;
/// "metrics_of_layers", "metrics_of_training_step" and "metrics_of_given_slots" of the object "metrics" by the kind of
/// the run; "metric" and "metric_of_fact", the names that studies and facts may give.
[[nodiscard]] std::string with_metrics(std::string schema);

}  // namespace moeline
