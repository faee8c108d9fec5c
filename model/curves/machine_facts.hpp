// What is known of a machine beside its kernels, and the table of those facts.
#pragma once

#include <string>
#include <vector>

#include "base/precision.hpp"

namespace moeline {

/// What NICs are, by whose word libraries differ.
enum class Nic { infiniband, roce, efa };

/// Generations of GPUs that stacks have other kernels for.
enum class Generation { ampere, hopper, blackwell, other };

/// Per GPU; links per direction.
struct MachineFacts {
  double sms = 0;
  double sm_clock_mhz = 0;
  double fp4_tflops = 0;  ///< 0: no FP4 tensor cores
  double fp8_tflops = 0;  ///< 0: no FP8 tensor cores
  double bf16_tflops = 0;
  double hbm_GBps = 0;
  double nvlink_GBps = 0;
  double nic_GBps = 0;  ///< of one NIC
  double gpus_per_node = 0;
  double memory_gib = 0;
  double nic_latency_us = 0;  ///< one 64-byte message to another leaf switch
  double host_GBps = 0;       ///< between GPU and host; 0: not known
  double l2_mb = 0;           ///< 10^6 bytes of L2 cache; 0: not known

  double vendor = 0;  ///< 1: AMD's, whose kernels are not NVIDIA's; else NVIDIA's

  // The network (curves/topology.hpp). A profile that leaves these out means what stands here.
  double nics_per_gpu = 1;
  double nic_kind = 0;             ///< of Nic
  double nvlink_nominal_GBps = 0;  ///< of all links, where nvlink_GBps is what was reached; 0: nvlink_GBps is
  double leaf_nodes = 0;           ///< nodes under one leaf switch; 0: all
  double oversubscription = 1;
  double rail_optimized = 0;        ///< 1: a leaf takes the NICs of one index
  double leaf_latency_us = 2.8;     ///< one 64-byte message under the same leaf switch
  double nvlink_latency_us = 3.33;  ///< the same over NVLink
  double slowest_nic = 1;           ///< of the rank with the slowest one, over nic_GBps
  double slowest_nvlink = 1;

  double host_speed = 0.27;  ///< of the host at work, over a DGX H100's with one module in a loop (moe/host_work.hpp)

  // What NCCL's cost model leaves out, of collectives that leave a node (curves/nccl_tuning.hpp).
  double nccl_call_us = 10;      ///< of every call
  double nccl_peer_us = 3.6;     ///< of an all-to-all, for each rank on another node behind the first
  double nccl_ramp_us = 80;      ///< the first bytes, as many as take so long, take twice as long
  double nccl_nic_share = 0.85;  ///< of the NICs' rate, that collectives reach
  // Channels, each of which holds an SM (curves/nccl_channels.hpp). 0: not known.
  double nccl_channels = 0, nccl_channels_between = 0;  ///< inside a node, and between nodes

  // Power (hardware/power.hpp), above rest at full speed and the boost clock. 0: not known.
  double boost_clock_mhz = 0;  ///< of the SMs, for as long as power allows
  double power_cap_w = 0;
  double idle_w = 0;
  double power_exponent = 3;  ///< of the clock, by which the tensor cores' power goes
  double gemm_w = 0;
  double bf16_gemm_w = 0;  ///< of BF16 ones; 0: as gemm_w
  double attention_w = 0;
  double memory_w = 0;   ///< of kernels bound by HBM
  double copying_w = 0;  ///< of transfers, if they held all SMs

  double clock_share = 1;  ///< of the SMs' clock, which at_clock() sets: no fact of a machine, but of a price

  [[nodiscard]] double nominal_nvlink_GBps() const {
    return nvlink_nominal_GBps > 0 ? nvlink_nominal_GBps : nvlink_GBps;
  }
  /// Of the GPU, by what its tensor cores multiply.
  [[nodiscard]] Generation generation() const {
    if (vendor != 0) return Generation::other;
    return fp4_tflops > 0 ? Generation::blackwell : fp8_tflops > 0 ? Generation::hopper : Generation::ampere;
  }
  [[nodiscard]] Nic nic() const { return static_cast<Nic>(static_cast<int>(nic_kind)); }
  /// Peak of the tensor cores that multiply in this format, or in what its weights are unpacked to; 0: it has none.
  [[nodiscard]] double tflops(Precision precision) const {
    if (precision == Precision::nvfp4 && fp4_tflops > 0) return fp4_tflops;
    return number_bytes(multiplied_in(precision)) == 1 ? fp8_tflops : bf16_tflops;
  }
  [[nodiscard]] bool computes_like(const MachineFacts& other) const {
    return sms == other.sms && sm_clock_mhz == other.sm_clock_mhz && fp8_tflops == other.fp8_tflops &&
           bf16_tflops == other.bf16_tflops && hbm_GBps == other.hbm_GBps;
  }
  [[nodiscard]] bool communicates_like(const MachineFacts& other) const {
    return sms == other.sms && hbm_GBps == other.hbm_GBps && nvlink_GBps == other.nvlink_GBps &&
           nic_GBps == other.nic_GBps && nic_kind == other.nic_kind && gpus_per_node == other.gpus_per_node &&
           nics_per_gpu == other.nics_per_gpu && oversubscription == other.oversubscription &&
           slowest_nic == other.slowest_nic && slowest_nvlink == other.slowest_nvlink;
  }
};

/// The machine with its SMs at `share` of their clock. Memory and links have clocks of their own.
[[nodiscard]] inline MachineFacts at_clock(MachineFacts machine, double share) {
  machine.clock_share *= share;
  machine.sm_clock_mhz *= share;
  machine.fp4_tflops *= share;
  machine.fp8_tflops *= share;
  machine.bf16_tflops *= share;
  return machine;
}

/// One row for each fact: its key in a profile and in `--set hardware.KEY=`.
struct FactField {
  const char* key;
  double MachineFacts::*value;
  double low, high;
  const char* unit;
  bool is_count = false;
  const char* assumed = nullptr;     ///< source of the default, where a profile says nothing; null: it must say
  bool prices = true;                ///< a kernel set is fitted on a machine that has it; power only sets the clock
  std::vector<std::string> words{};  ///< of a fact that is one of several; its value is the place among them

  /// As a profile has it.
  [[nodiscard]] std::string text(double of) const;
};
[[nodiscard]] const std::vector<FactField>& fact_fields();
[[nodiscard]] std::vector<std::string> fact_names();

struct MachineFact {
  std::string key;
  std::string unit;
  double value = 0;
  bool prices = true;
  std::string text;  ///< the value, or the word that it stands for
};
[[nodiscard]] std::vector<MachineFact> list_facts(const MachineFacts& facts);

}  // namespace moeline
