// A question: which model, on which machine, doing what, in which order.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hardware/profile.hpp"
#include "moe/architecture.hpp"
#include "moe/training.hpp"

namespace moeline {

struct Parallelism {
  int tp = 1, pp = 1, ep = 1, dp = 1;  ///< world = tp x pp x dp; ep divides tp x dp
};

struct Workload {
  std::string phase;  ///< "train"
  int micro_batch_size = 1;
  int seq_len = 4096;
  int global_batch_size = 0;  ///< sequences per step; 0: not given
};

struct Comm {
  std::string mode = "normal";
  int num_sms = 20;
  std::string dispatch_dtype = "fp8";
  std::string combine_dtype = "bf16";
};

struct Routing {
  std::string distribution = "balanced";  ///< or "given": padded expert rows of this rank, per layer
  std::vector<int> forward_rows, backward_rows;
};

/// As written, with every default resolved. Sizes are per GPU unless the name says otherwise.
struct Scenario {
  std::string file;
  std::string model, hardware, kernels, schedule;
  std::vector<std::string> hardware_overrides;  ///< "nic_GBps=100"
  Parallelism parallelism;
  Workload workload;
  Comm comm;
  Routing routing;
  int layers = 0;  ///< MoE layers simulated, alone and in steady state
  std::string overlap = "default";
  std::string launch = "stream";  ///< "stream": the host reads dispatch's counts before it goes on; "graph": no host
  int seed = 1;
};

[[nodiscard]] const std::vector<std::string>& schedule_names();

/// A scenario with everything it names loaded and everything derived from it alone.
struct Setup {
  Scenario scenario;
  Architecture model;
  HardwareProfile machine;
  KernelSet kernels;
  Spread spread;
  bool free_communication = false;  ///< null model: transfers and barriers take no time, SMs or bandwidth

  /// Work of this rank in the forward or backward pass of a layer, counted in order of execution.
  [[nodiscard]] LayerWork layer_work(bool forward, int layer) const;
};

/// `assignments`: "--set" overrides, "comm.num_sms=24" or "hardware.nic_GBps=100".
/// Throws SpecError (file, line, key, nearest valid name).
[[nodiscard]] Setup load_setup(const std::filesystem::path& path, const std::vector<std::string>& assignments = {});

}  // namespace moeline
