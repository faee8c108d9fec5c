// How large messages the serving stacks' own all-reduce takes.
#pragma once

#include "curves/machine_facts.hpp"

namespace moeline {

/// Bytes up to which SGLang's custom all-reduce runs, as the steps in its tables show: beyond it calls NCCL.
[[nodiscard]] double most_custom_bytes(const MachineFacts& machine);

}  // namespace moeline
