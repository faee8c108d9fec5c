// Errors of facts as they once were: what a later version of the program may not do worse.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/validate/validation.hpp"

namespace moeline {

/// Signed errors, predicted / measured - 1, by the fact's id, rounded to a hundredth of a per cent.
using FactErrorById = std::map<std::string, double>;

struct BaselineVersion {
  std::string program;  ///< as --version prints it, without the line's end
  FactErrorById errors{};
};

/// Its versions, the newest last.
struct Baseline {
  std::vector<BaselineVersion> versions;
};

/// A JSON file that --write-baseline wrote. Throws SpecError with file, line and key.
[[nodiscard]] Baseline read_baseline(const std::filesystem::path& path);

/// Of every fact that was predicted.
[[nodiscard]] FactErrorById errors_of(const Validation& validation);

/// With one version more, or in the place of the last where that is of the same program. Facts that are not predicted
/// now, for want of data of others, keep the error that they had.
void add_version(Baseline& baseline, const std::string& program, FactErrorById errors);

struct ChangedError {
  std::string id;
  double was = 0, now = 0;
  /// By how much |error| grew.
  [[nodiscard]] double growth() const;
};

/// Those whose |error| is 2 points or more away from what it was, the largest change first.
struct BaselineDifference {
  std::vector<ChangedError> worse{}, better{};
  int alike = 0;                               ///< within 2 points
  std::vector<std::string> added{}, absent{};  ///< that are new, and that are not predicted now
};
[[nodiscard]] BaselineDifference difference(const FactErrorById& was, const FactErrorById& now);

}  // namespace moeline
