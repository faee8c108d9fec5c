// Which part of a study this process takes, where many share it.
#pragma once

#include <cstddef>

namespace moeline {

/// Of `count` processes the one with this index, from 0: it takes every count-th point.
struct Share {
  std::size_t index = 0;
  std::size_t count = 1;
  [[nodiscard]] bool takes(std::size_t point) const { return point % count == index; }
};

/// From the environment that a launcher gives each of its processes: the first of these that is there, however many
/// processes it has, because mpirun starts its own over a step of srun.
///   Open MPI                   OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE
///   MPICH, Intel MPI (Hydra)   PMI_RANK of PMI_SIZE
///   srun                       SLURM_PROCID of SLURM_STEP_NUM_TASKS
/// Not of SLURM_NTASKS: an sbatch script has that, too, with SLURM_PROCID=0, and what it runs without srun runs once
/// and takes everything. A task of a Slurm job array takes its share of the study, (ID - MIN) / STEP of COUNT
/// (SLURM_ARRAY_TASK_*), and the processes launched in it theirs of that: array 0-3 with mpirun -n 8 makes 32 shares.
/// The array's indices must be equally spaced, 0-7 or 1-15:2: of 1,3,7 nobody knows which one is the second. Throws
/// SpecError where a variable is no such number.
[[nodiscard]] Share share_of_environment();

}  // namespace moeline
