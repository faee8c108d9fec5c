// Draft models that stand beside a model and are not in its checkpoint.
#pragma once

#include "architecture/architecture.hpp"

namespace moeline {

/// The model with a draft of `layers` decoder layers in the place of its MTP modules, as EAGLE has it (arXiv
/// 2401.15077, section 3): token embedding and last hidden state are projected together, the layers have the model's
/// own attention to all keys and a dense feed-forward network, and embedding and LM head are the model's. The network
/// is as wide as the model's dense layers, or as the experts of one token where it has none. All of the draft is BF16.
[[nodiscard]] Architecture with_draft(Architecture model, int layers);

}  // namespace moeline
