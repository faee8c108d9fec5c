#include "schedules/scenario/fold.hpp"

#include <algorithm>

#include "architecture/blocks.hpp"

namespace moeline {

int layer_period(const Architecture& model) {
  constexpr int kLongest = 8;
  const std::vector<Block> layers = main_layers_alone(model, model.main_layers());
  for (int period = 1; period <= kLongest; ++period) {
    bool repeats = true;
    for (std::size_t i = 0; i + static_cast<std::size_t>(period) < layers.size(); ++i) {
      repeats = repeats && are_alike(layers[i], layers[i + static_cast<std::size_t>(period)]);
    }
    if (repeats) return period;
  }
  return 0;
}

Setup folded(Setup setup) {
  const int period = layer_period(setup.model);
  const int kept = std::max(8, 4 * period);
  const bool as_it_is = setup.scenario.phase() == WorkloadPhase::train || is_staged(setup.scenario) ||
                        kv_transfer_MB(setup.scenario.workload) > 0;
  if (as_it_is || setup.every_rank || setup.experts_differ() || period == 0) return setup;
  setup.fold.left_out = std::max(0, setup.scenario.layers - kept) / period * period;
  setup.fold.period = period;
  // Not the last ones, behind which something else may follow.
  setup.fold.first = setup.first_main_layer() + setup.simulated_layers() - 2 * period;
  return setup;
}

Setup unfolded(Setup setup) {
  setup.fold = {};
  return setup;
}

}  // namespace moeline
