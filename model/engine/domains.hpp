// Which resources must be shared together.
#pragma once

#include <span>
#include <vector>

#include "graph/task_graph.hpp"

namespace moeline {

/// Resources that some task uses together must be shared together: domain of each resource, numbered from 0.
[[nodiscard]] std::vector<std::uint32_t> coupled_domains(const TaskGraph& graph);

inline constexpr std::uint32_t kNoDomain = ~std::uint32_t{0};

/// That of a task, whose resources are all in one; kNoDomain: it uses none. `domains`: as coupled_domains has them.
[[nodiscard]] inline std::uint32_t domain_of(ResourceId pool, std::span<const Usage> usages,
                                             std::span<const std::uint32_t> domains) {
  if (pool != kNoPool) return domains[pool];
  return usages.empty() ? kNoDomain : domains[usages.front().link];
}

}  // namespace moeline
