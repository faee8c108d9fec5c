#include "engine/domains.hpp"

#include <numeric>

namespace moeline {

// Union-find with path halving. (Boost's disjoint_sets does not compile beside its compressed sparse row graph.)
std::vector<std::uint32_t> coupled_domains(const TaskGraph& graph) {
  const std::size_t count = graph.resources().size();
  std::vector<std::uint32_t> parent(count);
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root = [&](std::uint32_t resource) {
    while (parent[resource] != resource) resource = parent[resource] = parent[parent[resource]];
    return resource;
  };
  for (TaskId task = 0; task < graph.size(); ++task) {
    ResourceId previous = graph.task(task).pool;
    for (const Usage& usage : graph.usages(task)) {
      if (previous != kNoPool) parent[root(usage.link)] = root(previous);
      previous = usage.link;
    }
  }
  std::vector<std::uint32_t> number(count, 0);
  std::vector<std::uint32_t> domain(count);
  std::uint32_t domains = 0;
  for (std::uint32_t resource = 0; resource < count; ++resource) {
    std::uint32_t& assigned = number[root(resource)];
    if (assigned == 0) assigned = ++domains;
    domain[resource] = assigned - 1;
  }
  return domain;
}

}  // namespace moeline
