// What the kernels of all libraries' transfers are counted from.
#pragma once

#include <string>

#include "moe/all_to_all.hpp"

namespace moeline {

inline constexpr double kMostEqual = 1 + 1e-9;  ///< of what the busiest gets over the mean, but for rounding

/// Of a token's numbers, with their scales.
[[nodiscard]] double payload_bytes(const AllToAllWork& work, Precision precision);
[[nodiscard]] bool in_one_node(const AllToAllWork& work);
/// A kernel's family in the tables of serving stacks, which hold one node's; "": between nodes there is none.
[[nodiscard]] std::string measured_in_node(const std::string& transfer, const AllToAllWork& work);
/// What they go by beside bytes.
[[nodiscard]] Traffic sizes_of(const AllToAllWork& work);
/// Once to each destination node over RDMA, to the GPU of the same index there, and from there once to each rank over
/// NVLink: `record` bytes a copy, `payload` of them numbers and scales.
[[nodiscard]] Traffic traffic_of(const AllToAllWork& work, double payload, double record);

/// A stage of a low-latency transfer, without its name: a message of so many bytes for each token and expert, straight
/// to the expert's rank.
[[nodiscard]] Operator messages(Family family, Stage stage, const AllToAllWork& work, double message);

}  // namespace moeline
