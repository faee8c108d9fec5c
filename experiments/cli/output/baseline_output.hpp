// The errors of earlier versions: as a file, and held against those of now.
#pragma once

#include <string>

#include "experiments/page/page.hpp"
#include "experiments/report/fields.hpp"
#include "experiments/validate/baseline.hpp"

namespace moeline {

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

}  // namespace moeline
