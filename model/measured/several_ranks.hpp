// Traces of several ranks of one run: how far apart they reach what they do together, who comes last, who waits for
// whom.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "measured/breakdown.hpp"
#include "measured/clocks.hpp"

namespace moeline {

/// A kernel of communication that the ranks of a group do together, the k-th of each being the k-th of the others, and
/// that they leave together, as barriers and collectives are.
struct JointKernel {
  std::string kernel;
  std::string group;                 ///< its name; empty: not stated
  bool is_stated = false;            ///< the group; else its ranks are those whose kernels agree
  std::vector<std::uint32_t> ranks;  ///< of the group whose traces are here
  std::size_t group_size = 0;        ///< ranks that it has; more than those where traces are missing
  std::size_t count = 0;
  Time median_skew{}, p95_skew{};  ///< last arrival less the first one
  Time end_spread{};               ///< median of last end less the first one: what the clocks leave unexplained
};

struct RankOfSeveral {
  std::string file;
  std::uint32_t rank = 0;
  Breakdown times;
  std::optional<Time> clock_offset{};  ///< its clock less that of the first rank; nothing: cannot be told
  Time clock_residue{};                ///< how far ends then still lie apart
  std::string clock_known_by{};        ///< in words
  Time waited{};                       ///< for the last of the ranks of a group to come
  Time kept_waiting{};                 ///< what the others waited for it, on average over them, where it came last
  std::size_t last = 0;                ///< times that it came last, and not with all the others
  std::size_t met = 0;                 ///< times that it met others
};

struct SeveralRanks {
  std::vector<RankOfSeveral> ranks;  ///< by rank
  std::vector<JointKernel> joint;    ///< by what is waited in them, most first
  std::vector<SeparateKernel> separate;
  std::size_t met = 0;                   ///< times that all ranks of a group met
  std::vector<std::vector<Time>> waits;  ///< by rank, by the rank that came last: positions in `ranks`
};

/// By the groups of communicators.hpp and the clocks of clocks.hpp. A kernel whose ends then lie further apart than
/// half its median length is not left together; nor can that be told of one whose ranks have clocks that are not known
/// against each other. Throws SpecError where two traces are of one rank, or where ranks do nothing together.
[[nodiscard]] SeveralRanks analyze_several(std::vector<RankTrace> traces);

}  // namespace moeline
