#include "experiments/cli/output/metrics_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>
#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "experiments/validate/predictor.hpp"

namespace moeline {
namespace {

// A name may have a row for each kind of runs.
bool is_first_of_name(const Metric& metric) { return metric_named(metric.name) == &metric; }

bool is_shown(const Metric& metric, const Run& run) {
  return metric.shown.title != nullptr && metric.shown.in_table[static_cast<std::size_t>(kind_of(run))] &&
         metric.applies(run);
}

// Of a time other than the step's own, in a step of training.
std::string share_of_step(const Metric& metric, const Run& run) {
  const std::string_view unit = metric.unit;
  if (run.step() == nullptr || metric.json_group == 0 || (unit != "ms" && unit != "us")) return "";
  const double us = metric.value(run) * (unit == "ms" ? 1e3 : 1);
  return fmt::format(" {:>7.1f} %", 100 * us / to_us(run.metrics.span));
}

std::vector<std::string> names_of(std::span<const Metric* const> metrics) {
  std::vector<std::string> names;
  for (const Metric* metric : metrics) names.emplace_back(metric->name);
  return names;
}

std::string one_of_names(const std::vector<std::string>& names) {
  return fmt::format(R"({{"description": "name of a metric", "type": "string", "enum": ["{}"]}})",
                     fmt::join(names, "\", \""));
}

using Definition = std::pair<std::string, std::string>;

std::vector<Definition> definitions() {
  return {{"metric", one_of_names(names_of(run_metrics()))}, {"metric_of_fact", one_of_names(metrics_of_facts())}};
}

// A schema with one more definition.
std::string with_definition(std::string schema, const std::string& name, const std::string& definition) {
  const std::string_view place = "\"definitions\": {";
  const std::size_t at = schema.find(place);
  MOELINE_CHECK(at != std::string::npos, "a schema that refers to others has definitions");
  const std::size_t inside = at + place.size();
  const bool is_only = schema[inside] == '}';
  return schema.insert(inside, fmt::format("\n  \"{}\": {}{}", name, definition, is_only ? "" : ","));
}

// In lines of at most 120 characters.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 120;
  std::istringstream words(text);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line + "\n";
}

}  // namespace

std::string meaning_of(const Metric& metric) { return fmt::format("{} ({})", metric.meaning, metric.unit); }

As as_of(const Metric& metric) {
  As as{.decimals = metric.decimals};
  if (metric.is_at_most_1()) as.most = 1;
  return as;
}

namespace {

template <class Get>
void add_value(Fields<Run>& fields, const Metric& metric, Has has, Get get) {
  if (has == Has::always) {
    fields.add(metric.name, meaning_of(metric), get, as_of(metric));
    return;
  }
  const auto if_applies = [=, &metric](const Run& run) {
    return metric.applies(run) ? std::optional(get(run)) : std::nullopt;
  };
  fields.add(metric.name, meaning_of(metric), if_applies, as_of(metric));
}

}  // namespace

// One without decimals is a count.
void add_metric(Fields<Run>& fields, const Metric& metric, Has has) {
  if (metric.decimals > 0) return add_value(fields, metric, has, metric.value);
  const auto count = [value = metric.value](const Run& run) {
    return static_cast<std::int64_t>(std::nearbyint(value(run)));
  };
  add_value(fields, metric, has, count);
}

Fields<Run> metric_fields(RunKind kind) {
  Fields<Run> fields;
  for (const Metric* metric : json_metrics()) {
    if (metric->in_json(kind) != Has::never) add_metric(fields, *metric, metric->in_json(kind));
  }
  return fields;
}

std::string metric_table(const Run& run, const Run* baseline) {
  std::string text;
  if (baseline != nullptr)
    text = fmt::format("{:<32} {:>17} {:>12}\n", "", run.setup.scenario.schedule, baseline->setup.scenario.schedule);
  for (const Metric& metric : all_metrics()) {
    if (!is_shown(metric, run)) continue;
    const auto& [title, decimals, scale, in_table] = metric.shown;
    text += fmt::format("{:<32} {:>17.{}f}", title, scale * metric.value(run), decimals);
    if (baseline != nullptr) text += fmt::format(" {:>12.{}f}", scale * metric.value(*baseline), decimals);
    text += share_of_step(metric, run) + "\n";
  }
  return text;
}

std::string metric_definitions() {
  std::string text;
  for (const Metric& metric : all_metrics()) {
    const bool is_printed = metric.value != nullptr && (metric.of_studies || metric.decimals != kNotInJson);
    if (is_printed && is_first_of_name(metric)) text += wrapped(fmt::format("{}: {}.", metric.name, metric.meaning));
  }
  return text;
}

std::string with_metrics(std::string schema) {
  for (const auto& [name, definition] : definitions()) {
    if (schema.find(fmt::format("#/definitions/{}\"", name)) == std::string::npos) continue;
    schema = with_definition(std::move(schema), name, definition);
  }
  return schema;
}

}  // namespace moeline
