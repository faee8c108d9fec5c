// Ways to share decoder layers out among the stages of a pipeline.
#pragma once

#include <vector>

namespace moeline {

/// Decoder layers of each stage, in the order of the forward pass; one at least.
using Partition = std::vector<int>;

[[nodiscard]] double partition_count(int layers, int stages);
/// All of them. REQUIRES: they are few.
[[nodiscard]] std::vector<Partition> all_partitions(int layers, int stages);
/// One layer fewer on one stage, and one more on another.
[[nodiscard]] std::vector<Partition> neighbours_of(const Partition& partition);

}  // namespace moeline
