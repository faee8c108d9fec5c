// Equal layers once: what most layers of a model do is what the one before did.
#pragma once

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Layers after which a model's main layers repeat; 0: they do not.
[[nodiscard]] int layer_period(const Architecture& model);

/// The same setup with Setup::fold: of a step of inference whose MoE layers repeat (every one, or every second where
/// windows alternate) eight, one period of which stands for all that are left out. Unchanged where layers are given
/// loads of their own, where all ranks are simulated, on the stages of a pipeline, beside a transfer of KV caches, or
/// where there are hardly more.
///
/// The program is shorter; its sums (kernels, FLOPs, gaps) are those of all layers. Times are not: whoever simulates it
/// adds the periods left out, once it has seen that the last ones took equally long.
[[nodiscard]] Setup folded(Setup setup);

[[nodiscard]] Setup unfolded(Setup setup);

}  // namespace moeline
