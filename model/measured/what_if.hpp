// What to change in a replay, by name.
#pragma once

#include <string>
#include <vector>

#include "measured/release.hpp"

namespace moeline {

/// What to change before replaying. Times are those measured, contention included: a kernel that has more of the GPU
/// for itself after the change is not made faster.
struct WhatIf {
  struct Scale {
    std::string what;  ///< a phase; compute, transfer, barrier, dispatch, combine (by kernel); kernel:CLASS; gaps; host
    double factor = 1;
  };
  struct Removed {
    std::string before, after;  ///< phases; `after` empty: `before` is a reason
  };
  std::vector<Scale> scales;
  std::vector<Removed> removed;
};

/// "transfer=1.4"; throws SpecError.
[[nodiscard]] WhatIf::Scale parse_scale(const std::string& text);
/// "combine(B)->mlp(B)" or a reason's name; throws SpecError.
[[nodiscard]] WhatIf::Removed parse_removed(const std::string& text);

/// Factors that scales come to: of every event's duration, of the gaps before kernels, of the host's time. Throws
/// SpecError, naming what there is, for a scale that means nothing. REQUIRES: `m` outlives it.
class ScaleFactors {
 public:
  ScaleFactors(const Measured& m, const std::vector<WhatIf::Scale>& scales);
  [[nodiscard]] double of(std::uint32_t event) const { return events_[event]; }
  double gaps = 1;
  double host = 1;

 private:
  void apply(const WhatIf::Scale& scale);
  bool apply_to_events(const WhatIf::Scale& scale);
  [[nodiscard]] bool means(const std::string& what, std::uint32_t event) const;
  [[noreturn]] void refuse(const std::string& what) const;

  const Measured& m_;
  std::vector<double> events_;
};

/// By dependency: none of what is removed. Throws SpecError, naming what there is, for what removes nothing.
[[nodiscard]] std::vector<bool> kept_dependencies(const Measured& m, const std::vector<WhatIf::Removed>& removed);

/// Exactly `time` by a factor of 1.
[[nodiscard]] Time scaled(Time time, double factor);

}  // namespace moeline
