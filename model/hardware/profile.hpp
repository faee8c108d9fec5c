// A machine: facts, and kernel sets whose constants were fitted to measurements on it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "curves/machine_facts.hpp"
#include "hardware/kernel_set.hpp"

namespace moeline {

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
  /// from the profile's other sets, newest first, then from those carried over, that of the same name first; sets of
  /// serving stacks from each other before they do from the rest, and the other way round. "vllm over sglang", or
  /// "vllm" where no set is called so, is a stack's habits over another's tables. Throws SpecError with the nearest
  /// name.
  [[nodiscard]] KernelSet kernels(const std::string& set, std::string_view needed = "") const;
  /// The set that is meant: by its whole name, or by what stands before its version or date ("sglang", "open"), of
  /// which the newest is taken, own sets before those carried over. The name itself where there is none.
  [[nodiscard]] std::string set_named(const std::string& wanted) const;
  /// Each name once, own sets first.
  [[nodiscard]] std::vector<std::string> set_names() const;
  /// Own sets whose predictions were held against whole published runs, that with the least mean |error| first.
  [[nodiscard]] std::vector<const KernelSet*> nearest_to_published() const;
};

/// Reads the file and those that it carries over from, whether or not they were read before. Throws SpecError (file,
/// line, key).
[[nodiscard]] HardwareProfile read_profile(const std::filesystem::path& file);

/// `reference`: a name in hwprofiles, or a path. `overrides`: "nic_GBps=100", machine facts by key.
/// Throws SpecError (file, line, key).
[[nodiscard]] HardwareProfile load_profile(const std::string& reference, const std::vector<std::string>& overrides = {},
                                           const std::filesystem::path& written_in = {});

/// The same without a copy: profiles are large, and a sweep asks for them at every point.
[[nodiscard]] std::shared_ptr<const HardwareProfile> known_profile(const std::string& reference,
                                                                   const std::vector<std::string>& overrides = {},
                                                                   const std::filesystem::path& written_in = {});

inline constexpr std::string_view kNoKernelSet =
    "has no kernel set; `moeline hardware derive` gives it another machine's, `moeline calibrate` its own";

/// What stands behind the facts of a profile that a command of ours wrote.
inline constexpr std::string_view kProfileMark = "\n# Written by `moeline ";

/// The YAML that load_profile reads back. Constants are rounded to 5 digits, errors to 3.
[[nodiscard]] std::string to_yaml(const HardwareProfile& profile);

}  // namespace moeline
