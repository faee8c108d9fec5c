#include "timeline/difference.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "timeline/intervals.hpp"

namespace moeline {
namespace {

constexpr Time kLongPause = std::chrono::microseconds(10);

KernelClass family_of(KernelClass c) {
  switch (c) {
    case KernelClass::small:
    case KernelClass::other:
    case KernelClass::copy:
    case KernelClass::unclassified:
      return KernelClass::memory;
    default:
      return c;
  }
}

struct KernelFamily {
  std::size_t count = 0;
  Time sum{}, contention{};
};

// One phase of one side, taken apart. Micro-batches of a phase that are scored together are added up.
struct Parts {
  std::array<KernelFamily, kKernelClasses> families{};
  Time barrier{}, pauses{}, gaps{};
  Time parallel{};  // durations beyond their union

  void add(std::vector<Interval> intervals, const std::vector<const KernelSpan*>& kernels) {
    Time sum{};
    for (const KernelSpan* kernel : kernels) {
      KernelFamily& family = families[static_cast<std::size_t>(family_of(kernel->kernel_class))];
      ++family.count;
      family.sum += kernel->end - kernel->start;
      family.contention += kernel->contention;
      sum += kernel->end - kernel->start;
      if (kernel->kernel_class == KernelClass::barrier) barrier += kernel->end - kernel->start;
    }
    intervals = unite(std::move(intervals));
    parallel += sum - total(intervals);
    for (std::size_t i = 1; i < intervals.size(); ++i) {
      const Time pause = intervals[i].start - intervals[i - 1].end;
      (pause >= kLongPause ? pauses : gaps) += pause;
    }
  }
};

using KernelsByPhase = std::map<PhaseKey, std::vector<const KernelSpan*>>;

KernelsByPhase by_phase(const std::vector<KernelSpan>& kernels) {
  KernelsByPhase found;
  for (const KernelSpan& kernel : kernels) {
    if (!kernel.phase.empty()) {
      found[{kernel.place.layer, kernel.phase, kernel.place.micro_batch}].push_back(&kernel);
    }
  }
  return found;
}

Parts parts_of(const KernelsByPhase& kernels, const PhaseTimes& phase, bool all_micro_batches) {
  Parts parts;
  const PhaseKey first{phase.layer, phase.phase, all_micro_batches ? 0 : phase.micro_batch};
  for (auto it = kernels.lower_bound(first); it != kernels.end(); ++it) {
    const auto& [layer, name, micro_batch] = it->first;
    if (layer != phase.layer || name != phase.phase) break;
    if (!all_micro_batches && micro_batch != phase.micro_batch) break;
    std::vector<Interval> intervals;
    for (const KernelSpan* kernel : it->second) intervals.push_back({kernel->start, kernel->end});
    parts.add(std::move(intervals), it->second);
  }
  return parts;
}

// Kernels that one side has more of, at their mean time there; the rest of the difference is speed.
void compare_family(const KernelFamily& a, const KernelFamily& b, Causes& causes) {
  const Time alone_a = a.sum - a.contention;
  const Time alone_b = b.sum - b.contention;
  Time work{};
  if (a.count > b.count)
    work = alone_a / static_cast<std::int64_t>(a.count) * static_cast<std::int64_t>(a.count - b.count);
  if (b.count > a.count)
    work = -(alone_b / static_cast<std::int64_t>(b.count) * static_cast<std::int64_t>(b.count - a.count));
  causes.work += work;
  causes.contention += a.contention - b.contention;
  causes.speed += alone_a - alone_b - work;
}

PhaseDifference compare_parts(const PhasePair& pair, const Parts& a, const Parts& b) {
  PhaseDifference difference{&pair, {}, {}};
  for (std::size_t c = 0; c < a.families.size(); ++c) {
    const KernelFamily& of_a = a.families[c];
    const KernelFamily& of_b = b.families[c];
    if (of_a.count == 0 && of_b.count == 0) continue;
    const auto family = static_cast<KernelClass>(c);
    difference.families.push_back({family, of_a.count, of_b.count, of_a.sum, of_b.sum});
    if (family != KernelClass::barrier) compare_family(of_a, of_b, difference.causes);
  }
  difference.causes.waiting = a.barrier + a.pauses - b.barrier - b.pauses;
  difference.causes.gaps = a.gaps - b.gaps;
  difference.causes.parallel = b.parallel - a.parallel;
  return difference;
}

Time magnitude(Time time) { return time < Time::zero() ? -time : time; }

}  // namespace

void Causes::add(const Causes& other) {
  speed += other.speed;
  contention += other.contention;
  waiting += other.waiting;
  gaps += other.gaps;
  work += other.work;
  parallel += other.parallel;
}

std::vector<PhaseDifference> differences(const Score& score, const std::vector<KernelSpan>& a,
                                         const std::vector<KernelSpan>& b) {
  const KernelsByPhase in_a = by_phase(a);
  const KernelsByPhase in_b = by_phase(b);
  std::vector<PhaseDifference> found;
  for (const std::vector<PhasePair>* pairs : {&score.phases, &score.communication}) {
    for (const PhasePair& pair : *pairs) {
      found.push_back(compare_parts(pair, parts_of(in_a, pair.a, score.summed), parts_of(in_b, pair.b, score.summed)));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const PhaseDifference& x, const PhaseDifference& y) {
    return magnitude(x.causes.total()) > magnitude(y.causes.total());
  });
  return found;
}

std::vector<FamilyDifference> by_family(const std::vector<PhaseDifference>& differences) {
  std::array<FamilyDifference, kKernelClasses> sums{};
  for (const PhaseDifference& difference : differences) {
    for (const FamilyDifference& family : difference.families) {
      FamilyDifference& sum = sums[static_cast<std::size_t>(family.family)];
      sum.family = family.family;
      sum.a_count += family.a_count;
      sum.b_count += family.b_count;
      sum.a += family.a;
      sum.b += family.b;
    }
  }
  std::vector<FamilyDifference> list;
  std::copy_if(sums.begin(), sums.end(), std::back_inserter(list),
               [](const FamilyDifference& sum) { return sum.a_count + sum.b_count > 0; });
  std::stable_sort(list.begin(), list.end(), [](const FamilyDifference& x, const FamilyDifference& y) {
    return magnitude(x.a - x.b) > magnitude(y.a - y.b);
  });
  return list;
}

}  // namespace moeline
