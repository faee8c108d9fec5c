// Which phase sits beside which: the order of the streams within one layer, read from YAML.
#pragma once

#include <string>
#include <vector>

namespace moeline {

struct OverlapPlan {
  std::string file;
  std::vector<std::string> compute;        ///< phases of the compute stream, in order
  std::vector<std::string> communication;  ///< of the communication stream
  std::vector<std::string> side;           ///< phases whose independent GEMMs also use a side stream
};

/// `overlap`: "default" for the plan that belongs to the schedule, or the path of another.
/// Throws SpecError unless every training phase stands exactly once.
[[nodiscard]] OverlapPlan load_overlap_plan(const std::string& schedule, const std::string& overlap);

}  // namespace moeline
