// A training job as it is asked for: which model, on how many GPUs, in which batches; and what is searched.
//
//   schema: 1
//   model: qwen3-235b-a22b
//   hardware: {h100: {usd_per_gpu_hour: 2}}      # as of a plan for serving; of several machines each needs its price
//   training: {gpus: 256, global_batch_size: 1024, seq_len: 4096, tokens: 1.0e+12}
//   memory_reserve: 0.1                          # of a GPU's memory: CUDA, NCCL, fragmentation
//   search:                                      # lists; layout.hpp has the defaults
//     {tp: [1, 2], cp: [1], pp: [4, 8], ep: [8, 16], micro_batch_size: [1, 2], schedule: [1f1b, zbv],
//      virtual_pp: [2, 4], overlap: [none, combined], recompute: [none, full],
//      offload: [none, "[core_attn, moe_act]"], offload_optimizer: [false, true]}
//   set: [precision.linear=bf16]                 # changes to the scenarios, as after simulate --set
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/memory/parts.hpp"
#include "experiments/plan/plan_keys.hpp"

namespace moeline {

/// Empty: a default.
struct LayoutSpace {
  std::vector<int> tp, cp, pp, ep, micro_batch_size, virtual_pp;
  std::vector<std::string> schedule, overlap, recompute, offload;
  std::vector<bool> offload_optimizer = {false};
};

struct TrainingJob {
  std::filesystem::path file;
  std::string model;
  std::vector<PlanHardware> hardware;
  int gpus = 0;
  std::int64_t global_batch_size = 0;  ///< sequences of a step
  int seq_len = 0;                     ///< tokens
  double tokens = 0;                   ///< of the whole training; 0: not given
  double memory_reserve = kMemoryReserve;
  LayoutSpace space;
  std::vector<std::string> set;
};

/// The plan is one for training: it has the key `training`.
[[nodiscard]] bool is_training_job(const std::filesystem::path& file);

/// Throws SpecError (file, line, key, nearest valid name).
[[nodiscard]] TrainingJob load_training_job(const std::filesystem::path& file);

}  // namespace moeline
