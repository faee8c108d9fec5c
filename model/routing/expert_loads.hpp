// How much each expert gets to do, in every MoE layer: from a distribution, or from a file of counts.
#pragma once

#include <filesystem>
#include <vector>

namespace moeline {

/// Of each expert. Only ratios count, unless a reader says otherwise.
using LayerLoads = std::vector<double>;
/// Of each layer; all have equally many experts, no load below 0, and no layer whose loads are all 0.
using Loads = std::vector<LayerLoads>;

enum class LoadDistribution { balanced, power_law, file };

struct LoadSource {
  LoadDistribution distribution = LoadDistribution::balanced;
  double alpha = 1;            ///< of power_law, not negative; 0 is balanced
  unsigned seed = 1;           ///< of power_law
  std::filesystem::path file;  ///< of loads or a router map (load_file.hpp), one time step
};

/// balanced and power_law have mean 1 in each layer; a file's loads are as they stand there. power_law: the expert of
/// rank r, from 1, gets a load proportional to r^-alpha; which expert has which rank is drawn in each layer anew.
/// Equal seeds give equal loads with every compiler and library.
/// Throws SpecError where the file has other layers or experts.
[[nodiscard]] Loads expert_loads(const LoadSource& source, int layers, int experts);

}  // namespace moeline
