// Which ranks do what together: groups of ranks, and the sequence of collectives that each goes through.
#pragma once

#include <string>
#include <vector>

#include "measured/operations.hpp"

namespace moeline {

/// Kernels of one name in a group's sequence: the k-th of each member is the k-th of the others.
struct GroupKernel {
  std::string kernel;  ///< its short name
  CollectiveKind kind = CollectiveKind::other;
  std::vector<Visits> visits;  ///< by member; none is longer than the others
};

struct Communicator {
  std::string name{};                  ///< as the traces state it; empty: they do not
  bool is_stated = false;              ///< else the ranks whose kernels agree in number and size
  std::size_t size = 0;                ///< ranks that it has, as stated; at least the members
  std::vector<std::size_t> members{};  ///< positions of the traces that are here, at least two, rising
  std::vector<GroupKernel> kernels{};  ///< by name
};

/// A kernel of communication that ranks do not do together, and why.
struct SeparateKernel {
  std::string kernel;
  std::string why;
  std::string group{};                 ///< empty: not stated
  std::vector<std::uint32_t> ranks{};  ///< that run it
};

struct Communicators {
  std::vector<Communicator> groups;
  std::vector<SeparateKernel> others;
};

/// Groups are those that the traces state, told apart by name and list of ranks: the members are the traces that have
/// kernels of it. Each goes through one sequence of collectives, on each of its streams or, where their numbers differ
/// from rank to rank, on all of them; where members have another number of them, or of another kind or size at the
/// same place, none of that sequence is matched. Messages between two ranks are matched apart, by number alone.
/// Where no group is stated, the fewest that make number and sizes agree: the ranks of all streams with one sequence,
/// then, kernel by kernel, the ranks that have it equally often with the same sizes.
[[nodiscard]] Communicators communicators_of(const std::vector<RankTrace>& traces);

}  // namespace moeline
