#include "curves/machine_facts.hpp"

#include <fmt/format.h>

namespace moeline {
namespace {

constexpr const char* kUnknownPower = "not known";
constexpr const char* kOfNcclTests = "fitted to public logs of nccl-tests (calib/fit/nccl_between_nodes.py)";

constexpr const char* kUnknownChannels = "not known: none are charged";
const std::vector<FactField>& all_facts() {
  static const std::vector<FactField> kFacts = {
      {"sms", &MachineFacts::sms, 1, 4096, "", true},
      {"sm_clock_mhz", &MachineFacts::sm_clock_mhz, 1, 1e5, "MHz"},
      {"fp8_tflops", &MachineFacts::fp8_tflops, 0, 1e6, "TFLOP/s"},
      {"bf16_tflops", &MachineFacts::bf16_tflops, 1e-3, 1e6, "TFLOP/s"},
      {"hbm_GBps", &MachineFacts::hbm_GBps, 1e-3, 1e7, "GB/s"},
      {"nvlink_GBps", &MachineFacts::nvlink_GBps, 1e-3, 1e7, "GB/s"},
      {"nic_GBps", &MachineFacts::nic_GBps, 1e-3, 1e7, "GB/s"},
      {"gpus_per_node", &MachineFacts::gpus_per_node, 1, 1024, "", true},
      {"memory_gib", &MachineFacts::memory_gib, 1e-3, 1e5, "GiB"},
      {"nic_latency_us", &MachineFacts::nic_latency_us, 0, 1e6, "us"},
      {"fp4_tflops", &MachineFacts::fp4_tflops, 0, 1e6, "TFLOP/s", false, "assumed: has no FP4 tensor cores", false},
      {"l2_mb", &MachineFacts::l2_mb, 0, 1e5, "MB", false, "not known", false},
      {"vendor", &MachineFacts::vendor, 0, 1, "", true, "assumed: NVIDIA's", false, {"nvidia", "amd"}},
      {"host_GBps", &MachineFacts::host_GBps, 0, 1e6, "GB/s", false, "not known", false},
      {"nics_per_gpu", &MachineFacts::nics_per_gpu, 1, 64, "", true, "assumed: one NIC per GPU"},
      {"nvlink_nominal_GBps", &MachineFacts::nvlink_nominal_GBps, 0, 1e7, "GB/s", false, "assumed: nvlink_GBps", false},
      {"nic", &MachineFacts::nic_kind, 0, 2, "", true, "assumed: InfiniBand", false, {"infiniband", "roce", "efa"}},
      {"leaf_nodes", &MachineFacts::leaf_nodes, 0, 1e6, "", true, "assumed: all nodes under one leaf"},
      {"oversubscription", &MachineFacts::oversubscription, 1, 1e3, "", false, "assumed: uplinks as wide as the NICs"},
      {"rail_optimized", &MachineFacts::rail_optimized, 0, 1, "", true, "assumed: a leaf takes whole nodes"},
      {"leaf_latency_us", &MachineFacts::leaf_latency_us, 0, 1e6, "us", false,
       "InfiniBand, 64 bytes, same leaf (arXiv 2505.09343, table 5)"},
      {"nvlink_latency_us", &MachineFacts::nvlink_latency_us, 0, 1e6, "us", false,
       "NVLink, 64 bytes (arXiv 2505.09343, table 5)", false},
      {"slowest_nic", &MachineFacts::slowest_nic, 1e-3, 1, "", false, "assumed: all NICs alike"},
      {"slowest_nvlink", &MachineFacts::slowest_nvlink, 1e-3, 1, "", false, "assumed: all NVLinks alike"},
      {"host_speed", &MachineFacts::host_speed, 1e-2, 100, "", false,
       "assumed: between two clusters, of H100 and of B300", false},
      {"nccl_call_us", &MachineFacts::nccl_call_us, 0, 1e6, "us", false, kOfNcclTests},
      {"nccl_peer_us", &MachineFacts::nccl_peer_us, 0, 1e6, "us", false, kOfNcclTests},
      {"nccl_ramp_us", &MachineFacts::nccl_ramp_us, 0, 1e6, "us", false, kOfNcclTests},
      {"nccl_nic_share", &MachineFacts::nccl_nic_share, 1e-3, 1, "", false, kOfNcclTests},
      {"nccl_channels", &MachineFacts::nccl_channels, 0, 256, "", true, kUnknownChannels, false},
      {"nccl_channels_between", &MachineFacts::nccl_channels_between, 0, 256, "", true, kUnknownChannels, false},
      {"boost_clock_mhz", &MachineFacts::boost_clock_mhz, 0, 1e5, "MHz", false, kUnknownPower, false},
      {"power_cap_w", &MachineFacts::power_cap_w, 0, 1e5, "W", false, kUnknownPower, false},
      {"idle_w", &MachineFacts::idle_w, 0, 1e5, "W", false, kUnknownPower, false},
      {"power_exponent", &MachineFacts::power_exponent, 1, 3, "", false, "assumed: voltage goes with the clock", false},
      {"gemm_w", &MachineFacts::gemm_w, 0, 1e5, "W", false, kUnknownPower, false},
      {"bf16_gemm_w", &MachineFacts::bf16_gemm_w, 0, 1e5, "W", false, "assumed: as gemm_w", false},
      {"attention_w", &MachineFacts::attention_w, 0, 1e5, "W", false, kUnknownPower, false},
      {"memory_w", &MachineFacts::memory_w, 0, 1e5, "W", false, kUnknownPower, false},
      {"copying_w", &MachineFacts::copying_w, 0, 1e5, "W", false, kUnknownPower, false},
  };
  return kFacts;
}

}  // namespace

std::string FactField::text(double of) const {
  return words.empty() ? fmt::format("{}", of) : words[static_cast<std::size_t>(of)];
}

const std::vector<FactField>& fact_fields() { return all_facts(); }

std::vector<std::string> fact_names() {
  std::vector<std::string> names;
  for (const FactField& field : fact_fields()) names.emplace_back(field.key);
  return names;
}

std::vector<MachineFact> list_facts(const MachineFacts& facts) {
  std::vector<MachineFact> list;
  for (const FactField& field : fact_fields()) {
    const double value = facts.*field.value;
    list.push_back({field.key, field.unit, value, field.prices, field.text(value)});
  }
  return list;
}

}  // namespace moeline
