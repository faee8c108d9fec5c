// All facts, in the order in which a run measures them.
#pragma once

#include <vector>

#include "bench.hpp"

namespace moeline::bench {

[[nodiscard]] Fact streaming_fact();

[[nodiscard]] std::vector<Fact> all_facts();

}  // namespace moeline::bench
