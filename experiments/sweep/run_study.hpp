// Which part of a study this process takes, where many share it.
#pragma once

#include <cstddef>

#include "base/progress.hpp"
#include "experiments/sweep/store.hpp"

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

// Points of a study on all cores.

/// Throws SpecError where no point of the study is a scenario: a misspelt axis is one message, not a row for every
/// point. Where some are, the others' reasons are rows. Of more than a thousand points a thousand are tried, and a
/// study is refused if none is a scenario, and all for one reason.
void check_loads(const Study& study);

/// Simulates the share's points that the store lacks. A point that fails is a row with its reason. Throws what the
/// store throws, after the other workers have ended their points, and says how many are stored.
void run_study(const Study& study, const Share& share, std::size_t workers, Store& store, const Progress& progress);

}  // namespace moeline
