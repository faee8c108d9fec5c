// Why a phase takes longer on one side than on the other.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "timeline/comparison.hpp"
#include "timeline/kernel_spans.hpp"

namespace moeline {

/// Parts of a difference in time, a - b. They add up to the difference of the spans.
struct Causes {
  Time speed{};       ///< the same kernels take longer, beyond contention
  Time contention{};  ///< other kernels beside them
  Time waiting{};     ///< barriers, and pauses of 10 us and more inside the phase
  Time gaps{};        ///< shorter pauses between kernels
  Time work{};        ///< kernels that only one side has
  Time parallel{};    ///< kernels that run beside each other on two streams, counted negative

  [[nodiscard]] Time total() const { return speed + contention + waiting + gaps + work + parallel; }
  void add(const Causes& other);
};

/// Every cause by its name in results, in the order of the tables.
struct NamedCause {
  const char* name;
  Time Causes::*time;
};
inline constexpr std::array<NamedCause, 6> kCauses = {{{"speed", &Causes::speed},
                                                       {"contention", &Causes::contention},
                                                       {"waiting", &Causes::waiting},
                                                       {"gaps", &Causes::gaps},
                                                       {"work", &Causes::work},
                                                       {"parallel", &Causes::parallel}}};

/// Kernels of one family on both sides. Memory-bound, small and routing kernels are one family, since names tell them
/// apart differently on each side.
struct FamilyDifference {
  KernelClass family = KernelClass::unclassified;
  std::size_t a_count = 0, b_count = 0;
  Time a{}, b{};  ///< sums of durations
};

struct PhaseDifference {
  const PhasePair* pair = nullptr;
  Causes causes;
  std::vector<FamilyDifference> families;
};

/// Of every phase pair of the score, largest difference first. REQUIRES that `score` outlives it.
[[nodiscard]] std::vector<PhaseDifference> differences(const Score& score, const std::vector<KernelSpan>& a,
                                                       const std::vector<KernelSpan>& b);

/// The families of all of them, largest difference first.
[[nodiscard]] std::vector<FamilyDifference> by_family(const std::vector<PhaseDifference>& differences);

}  // namespace moeline
