// Which part of a study this process takes, where many share it.
#pragma once

#include <optional>

namespace moeline {

/// Of `count` processes the one with this index, from 0: it takes every count-th point.
struct Share {
  int index = 0;
  int count = 1;
  [[nodiscard]] bool takes(std::size_t point) const {
    return point % static_cast<std::size_t>(count) == static_cast<std::size_t>(index);
  }
};

/// From the environment of a Slurm job array (SLURM_ARRAY_TASK_ID, _MIN, _COUNT, steps of one), of srun (SLURM_PROCID,
/// SLURM_NTASKS), of Open MPI (OMPI_COMM_WORLD_RANK, _SIZE) or of PMI (PMI_RANK, PMI_SIZE), the first of these that has
/// more than one process. Throws SpecError where a variable is no such number.
[[nodiscard]] Share share_of_environment();

}  // namespace moeline
