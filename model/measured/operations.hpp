// Kernels of communication in the order in which ranks run them, and whether those of several ranks agree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "measured/collective_kind.hpp"
#include "measured/rank_trace.hpp"

namespace moeline {

/// When a rank's clock shows that it reaches and leaves what ranks do together.
struct Visit {
  std::int64_t arrives_ns = 0, leaves_ns = 0;
};
using Visits = std::vector<Visit>;  ///< of one rank, in order

/// A kernel of communication, as far as it has to agree with those of other ranks.
struct Operation {
  std::uint32_t name = 0;  ///< of its kernel, in one list for all traces
  CollectiveKind kind = CollectiveKind::other;
  std::uint32_t stream = 0;
  std::int64_t bytes = 0;  ///< 0: not stated
  Visit visit;
};
using Operations = std::vector<Operation>;          ///< of one rank, by start
using OfRanks = std::map<std::size_t, Operations>;  ///< by position of the trace
using OfMembers = std::vector<Operations>;          ///< by member of a group

/// Adds the names of kernels to a list. Kernels of one name are looked at once.
class OperationReader {
 public:
  explicit OperationReader(std::vector<std::string>& names) : names_(names) {}

  /// REQUIRES: next_rank() before the first event of another trace.
  [[nodiscard]] Operation read(const RankTrace& rank, std::size_t event);
  void next_rank() { known_.clear(); }

 private:
  [[nodiscard]] const Operation& known_of(const RankTrace& rank, const GpuEvent& event, KernelClass kernel_class);

  std::vector<std::string>& names_;
  std::map<std::string, std::uint32_t> numbers_;
  std::map<std::tuple<std::uint32_t, std::int32_t, KernelClass>, Operation> known_;  // of this rank's trace
};

/// Messages between two ranks, or all others.
[[nodiscard]] OfRanks only(const OfRanks& all, bool messages);
[[nodiscard]] OfMembers of_members(const OfRanks& operations, const std::vector<std::size_t>& members);
[[nodiscard]] std::map<std::uint32_t, Operations> by_stream(const Operations& operations);
[[nodiscard]] std::map<std::uint32_t, Operations> by_name(const Operations& operations);

[[nodiscard]] bool are_equally_many(const OfMembers& members);
/// "10 to 12 of them on a rank".
[[nodiscard]] std::string fewest_to_most(const OfMembers& members);

/// The first place where a member does something else than the first one.
struct Mismatch {
  std::size_t member = 0, place = 0;
};
/// REQUIRES: equally many.
[[nodiscard]] std::optional<Mismatch> mismatch_of(const OfMembers& members);

/// The sequences of a group: one for each stream, where all members have the same streams with kernels that agree, else
/// one of all streams. REQUIRES: equally many.
[[nodiscard]] std::vector<OfMembers> sequences_of(const OfMembers& members);

}  // namespace moeline
