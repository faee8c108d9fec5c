// The table of published model configurations.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/data.hpp"

namespace moeline::testing {

/// A configuration that loads, or is refused for what it is made of.
struct PublishedConfig {
  std::string folder;
  double parameters = 0;  ///< 10^9; 0 where it is refused
  std::string refused_for;
};

/// Those of tests/architecture/published_configs.csv.
inline std::vector<PublishedConfig> published_configs() {
  std::ifstream file(source("tests/architecture/published_configs.csv"));
  std::vector<PublishedConfig> list;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("folder,")) continue;
    std::istringstream cells(line);
    PublishedConfig each;
    std::string parameters;
    std::getline(cells, each.folder, ',');
    std::getline(cells, parameters, ',');
    std::getline(cells, each.refused_for, ',');
    each.parameters = parameters.empty() ? 0 : std::stod(parameters);
    list.push_back(each);
  }
  return list;
}

}  // namespace moeline::testing
