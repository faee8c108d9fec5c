// Which combinations of axes make sense, as a study writes it: "256 % parallelism.ep == 0".
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace moeline {

/// Numbers, keys of axes, + - * / %, brackets, and one of == != < <= > >= between two sides. % is of whole numbers.
class Condition {
 public:
  /// Throws SpecError (without place) for text that is none, or that names a key which is not among `keys`; `what`
  /// these are.
  Condition(std::string text, const std::vector<std::string>& keys, const char* what = "axis");

  /// REQUIRES: a value for every key that it names. Throws SpecError for one that is no number, and a division by 0.
  [[nodiscard]] bool holds(const std::map<std::string, std::string>& values) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A study: one scenario, and what is varied in it.
//
//   schema: 1
//   scenario: ../decode_deepseek_v3_h800_ep128/scenario.yaml    # relative to the study
//   set: [kernels=open-2025-late]                               # of all points
//   axes:                                                       # crossed; the last one varies fastest
//     parallelism.ep: [32, 64, 128]
//     parallelism.dp: [32, 64, 128]
//     workload.batch_size: {from: 16, to: 256, step: 16}        # or factor: 2
//   zip: ["parallelism.ep parallelism.dp"]                      # these go together
//   where: ["workload.batch_size * parallelism.ep <= 16384",    # other combinations are no points
//           "tpot_ms <= 50"]                                    # and others are not the best
//   metrics: [tpot_ms, tokens_per_s_per_gpu, memory_gib]        # by default all that any point has

struct Axis {
  std::string key;  ///< as in `simulate --set`
  std::vector<std::string> values;
};

struct Study {
  std::filesystem::path file;
  std::filesystem::path scenario;
  std::vector<std::string> assignments;            ///< of all points
  std::vector<std::string> keys;                   ///< of the axes, in the order of the file
  std::vector<std::vector<std::string>> zipped{};  ///< keys that go together
  std::vector<std::vector<std::string>> points;    ///< values of the keys
  std::vector<std::string> metrics;
  std::vector<Condition> limits{};  ///< conditions on metrics: a point that breaks one is in the table, and never best
  std::string text;                 ///< of study and scenario: what a stored table must agree with

  /// With its metrics' values, in their order, NaN where one does not apply, which then breaks a limit.
  [[nodiscard]] bool is_within_limits(std::size_t point, const std::vector<double>& values) const;
  /// "--set" of one point.
  [[nodiscard]] std::vector<std::string> assignments_of(std::size_t point) const;
};

inline constexpr std::size_t kMostPoints = 10'000'000, kMostPointValues = 20'000'000;

/// Throws SpecError (file, line, key): an axis without values, keys that go together with different numbers of values,
/// a condition that is none, an unknown metric, no point left, or more than kMostPoints or kMostPointValues.
[[nodiscard]] Study load_study(const std::filesystem::path& file);

}  // namespace moeline
