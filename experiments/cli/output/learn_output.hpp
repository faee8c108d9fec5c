// How `moeline learn` says what a trace taught.
#pragma once

#include <string>

#include "experiments/learn/learn.hpp"
#include "experiments/page/page.hpp"
#include "experiments/report/fields.hpp"
#include "experiments/timeline_page/picture.hpp"

namespace moeline {

/// What `learn` prints: the answer, settings, operators, what is left over.
struct LearnReport {
  const Learning& learning;
  std::string folder;
  /// A layer in the middle of the step, measured and simulated, as a picture.
  std::string picture{};
};

[[nodiscard]] std::string to_json(const LearnReport& report);
[[nodiscard]] std::string to_csv(const LearnReport& report);
[[nodiscard]] std::string to_table(const LearnReport& report);
[[nodiscard]] Page learn_page(const LearnReport& report);
[[nodiscard]] std::string learn_schema();

// How `moeline compare SCENARIO TRACE` says it of a step that has none of the scenario's phases: by operators.

[[nodiscard]] std::string operators_json(const LearntTrace& trace);
[[nodiscard]] std::string operators_csv(const LearntTrace& trace);
[[nodiscard]] std::string operators_table(const LearntTrace& trace);
[[nodiscard]] Page operators_page(const LearntTrace& trace, const std::string& picture);
[[nodiscard]] Describe operators_described();
/// A layer in the middle of the step, measured and predicted.
[[nodiscard]] std::vector<Picture> layer_pictures(const LearntTrace& trace);

}  // namespace moeline
