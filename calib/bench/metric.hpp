// What is measured of one case: the time of a kernel, or the times that a fact consists of.
#pragma once

#include <string>
#include <vector>

namespace moeline::bench {

struct Metric {
  std::string name;
  std::string unit;
  std::vector<double> samples;  ///< in the order in which they were taken
};

}  // namespace moeline::bench
