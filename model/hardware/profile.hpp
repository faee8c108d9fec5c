// A machine: facts, and kernel sets whose constants were fitted to measurements on it.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/constants.hpp"
#include "hardware/measured_range.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// Per GPU; links per direction.
struct MachineFacts {
  double sms = 0;
  double sm_clock_mhz = 0;
  double fp8_tflops = 0;  ///< 0: no FP8 tensor cores
  double bf16_tflops = 0;
  double hbm_GBps = 0;
  double nvlink_GBps = 0;
  double nic_GBps = 0;  ///< of one NIC
  double gpus_per_node = 0;
  double memory_gib = 0;
  double nic_latency_us = 0;  ///< one 64-byte message to another leaf switch

  // The network (hardware/topology.hpp). A profile that leaves these out means what stands here.
  double nics_per_gpu = 1;
  double leaf_nodes = 0;  ///< nodes under one leaf switch; 0: all
  double oversubscription = 1;
  double rail_optimized = 0;     ///< 1: a leaf takes the NICs of one index
  double leaf_latency_us = 2.8;  ///< one 64-byte message under the same leaf switch
  double slowest_nic = 1;        ///< of the rank with the slowest one, over nic_GBps
  double slowest_nvlink = 1;

  [[nodiscard]] bool computes_like(const MachineFacts& other) const {
    return sms == other.sms && sm_clock_mhz == other.sm_clock_mhz && fp8_tflops == other.fp8_tflops &&
           bf16_tflops == other.bf16_tflops && hbm_GBps == other.hbm_GBps;
  }
  [[nodiscard]] bool communicates_like(const MachineFacts& other) const {
    return sms == other.sms && hbm_GBps == other.hbm_GBps && nvlink_GBps == other.nvlink_GBps &&
           nic_GBps == other.nic_GBps && gpus_per_node == other.gpus_per_node && nics_per_gpu == other.nics_per_gpu &&
           oversubscription == other.oversubscription && slowest_nic == other.slowest_nic &&
           slowest_nvlink == other.slowest_nvlink;
  }
};

/// Which output tiles the FP8 GEMMs of a kernel set have (hardware/gemm_tiles.hpp).
enum class TileSet {
  narrow,  ///< up to 128x128: DeepSeek's training kernels, and DeepGEMM until March 2025
  wide     ///< up to 256x128 and 128x192: DeepGEMM since April 2025
};

/// How well a family's curve meets measurements, and where those lie.
struct FamilyFit {
  int kernels = 0;
  MeasuredRange range;
  bool held_out = false;        ///< errors of kernels left out of the fit; else of the fitted ones
  double median_abs_error = 0;  ///< of predicted / measured - 1
  double p95_abs_error = 0;
  double worst_error = 0;    ///< signed
  double mean_error = 0;     ///< signed
  double jitter = kUnknown;  ///< standard deviation of a kernel's time over its mean, from one execution to the next
  std::string kernel_set;  ///< it was fitted for; another set's name where borrowed, "h800: NAME" from another machine
  TileSet tiles = TileSet::wide;  ///< of that set
  bool other_machine = false;     ///< carried over from another profile
};

/// One body of kernels at one date.
struct KernelSet {
  std::string name;
  std::string date;
  std::string source;
  TileSet tiles = TileSet::wide;
  bool by_name_only = false;  ///< neither a default nor a lender: its measurements are too few, or of another time
  MachineFacts fitted_on;     ///< the machine that the measurements were made on
  Constants constants{};
  std::array<std::string, kConstants> origins;  ///< set that a constant was fitted for, named as in FamilyFit
  std::map<std::string, FamilyFit> fits;        ///< by family name

  [[nodiscard]] double operator[](Constant c) const { return constants[static_cast<std::size_t>(c)]; }
  [[nodiscard]] bool knows(std::string_view group) const;
  [[nodiscard]] int known_constants() const;
  /// Of a family's kernels: its own where it was measured, else that of all; 0 where neither is known.
  [[nodiscard]] double jitter(const std::string& family) const;
};

/// "gemm_fp8" and how many of its constants are known, in their order.
[[nodiscard]] std::vector<std::pair<std::string_view, int>> known_by_group(const Constants& constants);

struct HardwareProfile {
  std::string name;
  std::string file;
  MachineFacts facts;
  std::map<std::string, std::string> sources;  ///< of each fact, by key
  std::vector<KernelSet> kernel_sets;          ///< newest last
  std::string carried_over_from;               ///< another profile whose kernel sets fill gaps, or ""
  std::vector<KernelSet> carried_over;  ///< those it has and, before them, those it carries over itself; newest last

  /// The set of that name, the profile's own or else one carried over; with "" the newest own that knows `needed`, of
  /// the sets carried over where there is none of its own. Groups of constants and families that it lacks are borrowed:
  /// from the profile's other sets, newest first, then from those carried over, that of the same name first. Throws
  /// SpecError with the nearest name.
  [[nodiscard]] KernelSet kernels(const std::string& set, std::string_view needed = "") const;
  /// Each name once, own sets first.
  [[nodiscard]] std::vector<std::string> set_names() const;
};

struct MachineFact {
  std::string key;
  std::string unit;
  double value = 0;
};
[[nodiscard]] std::vector<MachineFact> list_facts(const MachineFacts& facts);

/// `reference`: a name in hwprofiles, or a path. `overrides`: "nic_GBps=100", machine facts by key.
/// Throws SpecError (file, line, key).
[[nodiscard]] HardwareProfile load_profile(const std::string& reference, const std::vector<std::string>& overrides = {},
                                           const std::filesystem::path& written_in = {});

/// The same without a copy: profiles are large, and a sweep asks for them at every point.
[[nodiscard]] std::shared_ptr<const HardwareProfile> known_profile(const std::string& reference,
                                                                   const std::vector<std::string>& overrides = {},
                                                                   const std::filesystem::path& written_in = {});

/// What stands before the kernel sets of a profile that calibrate wrote.
inline constexpr std::string_view kProfileMark = "\n# Written by `moeline calibrate`; ";

/// The YAML that load_profile reads back. Constants are rounded to 5 digits, errors to 3.
[[nodiscard]] std::string to_yaml(const HardwareProfile& profile);

}  // namespace moeline
