// What validate prints, and the file of errors that it is held against.
#pragma once

#include <string>

#include "experiments/page/page.hpp"
#include "experiments/report/fields.hpp"
#include "experiments/validate/baseline.hpp"
#include "experiments/validate/validation.hpp"

namespace moeline {

// The errors of earlier versions: as a file, and held against those of now.

/// What stands in a file of a baseline, and in no other.
inline constexpr const char* kBaselineMark = "\n \"versions\": [\n  {\n   \"program\": ";

/// As --write-baseline writes it and --baseline reads it.
[[nodiscard]] std::string to_json(const Baseline& baseline);

/// Against the newest version of the baseline.
struct BaselineVerdict {
  std::string file, program;
  BaselineDifference changes;
};
[[nodiscard]] std::string baseline_table(const BaselineVerdict& verdict);
[[nodiscard]] Fields<BaselineVerdict> baseline_fields();

/// Signed errors over the versions, a picture for each subject.
[[nodiscard]] Page baseline_page(const Validation& validation, const Baseline& baseline);

// What validate prints.

/// `baseline`: null where none was asked for.
[[nodiscard]] std::string to_json(const Validation& validation, const BaselineVerdict* baseline = nullptr);
[[nodiscard]] std::string to_table(const Validation& validation);
[[nodiscard]] std::string validate_schema();

/// Of one study of served models, a part of these.
[[nodiscard]] Fields<ScoredServed> served_fields();
[[nodiscard]] std::string to_table(const ScoredServed& scored);

/// Of one study of pairs, a part of these.
[[nodiscard]] Fields<ScoredPairs> pairs_fields();
[[nodiscard]] std::string to_table(const ScoredPairs& scored);

}  // namespace moeline
