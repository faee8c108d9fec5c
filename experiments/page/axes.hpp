// Which axes a table of settings has.
#pragma once

#include <string>
#include <vector>

#include "experiments/page/page.hpp"

namespace moeline {

struct AxesOfSettings {
  std::vector<PageAxis> axes;
  std::vector<std::string> notes;  ///< "parallelism.dp = parallelism.ep", "layers = 4": keys that are no axes
};

/// Of points, each with a value for every key. Keys whose values change together, as a study's `zip` makes them, are
/// one axis: by the name of the first where the values are equal, else by all their names. Axes of numbers ascend,
/// names keep their order; a key with one value is none, nor is one that another determines.
[[nodiscard]] AxesOfSettings axes_of_settings(const std::vector<std::string>& keys,
                                              const std::vector<const std::vector<std::string>*>& points);

}  // namespace moeline
