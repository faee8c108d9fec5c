// The table of metrics: every number of a run that has a name. JSON, tables, sweeps, samples, pages, facts, --help and
// schemas take it from here; a new metric is a row in metrics.cpp.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace moeline {

struct Run;

enum class Better { neither, higher, lower };

/// Runs by what their outputs say: layers or a step of inference, and chunks of training; whole steps of training;
/// pipelines of given slots.
enum class RunKind { layers, training_step, given_slots };

/// Whether the JSON of a kind of runs has a metric.
enum class Has { never, sometimes, always };

struct RunCondition {
  bool (*holds)(const Run& run);
  std::array<Has, 3> in_json;  ///< by RunKind
};

/// A row of the tables that people read.
struct ShownMetric {
  const char* title = nullptr;  ///< null: no table has it
  int decimals = 0;
  double scale = 1;                                   ///< 100 where the title says per cent
  std::array<bool, 3> in_table = {true, true, true};  ///< by RunKind
};

inline constexpr int kNotInJson = -1;
inline constexpr const char* kPartOfPeak = "fraction of peak";

struct Metric {
  const char* name;
  const char* unit;
  Better better;
  int json_group;  ///< where it stands in JSON: groups come in this order, the rows of a group in the table's
  int decimals;    ///< in JSON, or kNotInJson
  const RunCondition* when;
  double (*value)(const Run& run);  ///< null: a run alone does not have it
  const char* meaning;              ///< as schemas and --help say it
  ShownMetric shown{};
  bool of_studies = true;  ///< sweeps, samples and facts have it, too

  [[nodiscard]] bool applies(const Run& run) const { return value != nullptr && when->holds(run); }
  [[nodiscard]] Has in_json(RunKind kind) const {
    return decimals == kNotInJson ? Has::never : when->in_json[static_cast<std::size_t>(kind)];
  }
  /// No fraction is above 1, but of a peak: that of FP8 is above BF16's, of which metrics are.
  [[nodiscard]] bool is_at_most_1() const {
    const std::string_view of = unit;
    return of.starts_with("fraction") && of != kPartOfPeak;
  }
};

[[nodiscard]] RunKind kind_of(const Run& run);

[[nodiscard]] std::span<const Metric> all_metrics();
/// Those that studies have as columns, samples as bands and facts by name, in the table's order.
[[nodiscard]] std::span<const Metric* const> run_metrics();
/// Those of the object `metrics` of a run's JSON, in the order of its keys.
[[nodiscard]] std::span<const Metric* const> json_metrics();
/// How the kernels' time is known: the shares of their solo time.
inline constexpr std::size_t kKnownShares = 4;
[[nodiscard]] std::span<const Metric, kKnownShares> known_shares();
/// Null where none has this name.
[[nodiscard]] const Metric* metric_named(std::string_view name);

}  // namespace moeline
