// As much of a model as routing looks at.
#pragma once

#include "architecture/architecture.hpp"

namespace moeline::testing {

/// Every token chooses 8 of `experts`, out of `kept` of `groups` groups.
inline Architecture routed_model(int experts, int groups, int kept) {
  Architecture model;
  model.n_routed_experts = experts;
  model.num_experts_per_tok = 8;
  model.n_group = groups;
  model.topk_group = kept;
  return model;
}

}  // namespace moeline::testing
