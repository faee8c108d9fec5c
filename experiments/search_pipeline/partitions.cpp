#include "experiments/search_pipeline/partitions.hpp"

namespace moeline {
namespace {

void add_partitions(int layers, int stages, Partition& first, std::vector<Partition>& all) {
  if (stages == 1) {
    all.push_back(first);
    all.back().push_back(layers);
    return;
  }
  for (int here = 1; here <= layers - stages + 1; ++here) {
    first.push_back(here);
    add_partitions(layers - here, stages - 1, first, all);
    first.pop_back();
  }
}

}  // namespace

double partition_count(int layers, int stages) {
  double count = layers < stages ? 0 : 1;
  for (int i = 1; i < stages; ++i) count = count * (layers - i) / i;
  return count;
}

std::vector<Partition> all_partitions(int layers, int stages) {
  std::vector<Partition> all;
  Partition first;
  if (layers >= stages) add_partitions(layers, stages, first, all);
  return all;
}

std::vector<Partition> neighbours_of(const Partition& partition) {
  std::vector<Partition> all;
  for (std::size_t from = 0; from < partition.size(); ++from) {
    for (std::size_t to = 0; to < partition.size(); ++to) {
      if (from == to || partition[from] == 1) continue;
      all.push_back(partition);
      --all.back()[from];
      ++all.back()[to];
    }
  }
  return all;
}

}  // namespace moeline
