// Which resources must be shared together.
#pragma once

#include <vector>

#include "graph/task_graph.hpp"

namespace moeline {

/// Resources that some task uses together must be shared together: domain of each resource, numbered from 0.
[[nodiscard]] std::vector<std::uint32_t> coupled_domains(const TaskGraph& graph);

}  // namespace moeline
