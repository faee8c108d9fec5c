// The table of published model configurations.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/data.hpp"

namespace moeline::testing {

struct PublishedConfig {
  std::string folder;
  double parameters = 0;  ///< 10^9
  std::string exception;  ///< why ours are more than 1 % off, "" where they are not
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
    std::getline(cells, each.exception);
    each.parameters = std::stod(parameters);
    list.push_back(each);
  }
  return list;
}

}  // namespace moeline::testing
