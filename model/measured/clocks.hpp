// How far the clocks of ranks are apart, as far as what they leave together tells.
#pragma once

#include <string>
#include <vector>

#include "measured/communicators.hpp"

namespace moeline {

/// What a rank's clock is known by.
enum class ClockSource : std::uint8_t {
  reference,  ///< it is the one that others are compared with
  one_file,   ///< its trace is in the file of the other one
  ends,       ///< of what both leave together
  assumed,    ///< nothing: both traces count from 0, and so by one clock
  unknown,    ///< nothing at all
};

struct RankClock {
  std::int64_t ahead_ns = 0;    ///< of the clock of `reference`
  std::int64_t residue_ns = 0;  ///< how far ends then still lie apart in 95 % of cases, summed along the way there
  std::size_t reference = 0;    ///< position of a rank: the first of those that this one's clock is known against
  ClockSource source = ClockSource::reference;
  std::size_t through = 0;  ///< of ends: the rank that this one leaves things together with
  std::string kernel{};     ///< of ends: which, the first of them
  std::size_t ends = 0;     ///< of ends: how many
};

/// By trace. The ends of a kernel that a group leaves together give the difference of two clocks: the median over its
/// repetitions; where they scatter by more than half the kernel's length they give none. Ranks are joined by the
/// surest of these differences, a spanning tree: groups that are stated before others, ten ends or more before fewer,
/// then the smallest scatter. An offset within the scatter is none: equal clocks explain the ends as well.
/// Where groups are not stated, kernels that contradict each other about the clocks of two ranks say nothing of them:
/// one of the groups that agree in number and size is then none. Nor does a kernel, where all traces count from 0, that
/// several groups with one clock explain as well as one group with clocks that differ.
/// Ranks that no such way joins have clocks with a reference of their own; if all traces count from 0 and nothing
/// speaks against it, all clocks are taken to be one.
[[nodiscard]] std::vector<RankClock> clocks_of(const std::vector<RankTrace>& traces, const Communicators& found);

}  // namespace moeline
