// What the kernels of a step say of it: by their names, and by whom they met.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>

#include "experiments/learn/kernel_sequences.hpp"
#include "trace/name_regex.hpp"
#include "trace/step_windows.hpp"

namespace moeline {

/// REQUIRES: both outlive it.
class StepEvidence {
 public:
  StepEvidence(const Measured& measured, const ObservedStep& step) : measured_(measured), step_(step) {}

  [[nodiscard]] const Trace& trace() const { return measured_.trace; }
  [[nodiscard]] const ObservedStep& step() const { return step_; }

  /// The first kernel of one of these kinds whose name has the pattern in it; empty: none.
  [[nodiscard]] std::string kernel_named(const char* pattern, std::initializer_list<KernelKind> kinds = {}) const {
    const NameRegex regex(pattern);
    for (const ObservedKernel& kernel : step_.kernels) {
      const bool is_of = kinds.size() == 0 || std::any_of(kinds.begin(), kinds.end(),
                                                          [&](KernelKind kind) { return kernel.kinds.has(kind); });
      const std::string& name = trace().name(trace().gpu_events[kernel.event]);
      if (is_of && regex.found_in(name)) return name;
    }
    return "";
  }
  [[nodiscard]] bool has(KernelKind kind) const {
    return std::any_of(step_.kernels.begin(), step_.kernels.end(),
                       [&](const ObservedKernel& kernel) { return kernel.kinds.has(kind); });
  }
  /// Ranks of the group that most of the kernels of a kind meet in; 0: the trace does not say.
  [[nodiscard]] std::uint32_t group_of(KernelKind kind) const {
    std::map<std::uint32_t, int> sizes;
    for (const ObservedKernel& kernel : step_.kernels) {
      const std::int32_t collective = trace().gpu_events[kernel.event].collective;
      if (!kernel.kinds.has(kind) || collective < 0) continue;
      const std::int32_t group = trace().collectives[static_cast<std::size_t>(collective)].group;
      if (group >= 0) ++sizes[trace().groups[static_cast<std::size_t>(group)].size];
    }
    const auto most =
        std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == sizes.end() ? 0 : most->first;
  }
  /// How often the step's layers repeat; 0: they do not.
  [[nodiscard]] std::size_t layers() const {
    std::size_t most = 0;
    for (const StepWindow& window : step_windows(trace(), measured_.meaning))
      most = std::max(most, window.layers.size());
    return most;
  }

 private:
  const Measured& measured_;
  const ObservedStep& step_;
};

}  // namespace moeline
