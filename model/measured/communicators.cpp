#include "measured/communicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "trace/stated_ranks.hpp"

namespace moeline {
namespace {

using KernelOfRanks = std::map<std::uint32_t, OfRanks>;  // by name

struct StatedGroup {
  std::string name;
  std::size_t size = 0;                             // 0: not stated
  std::optional<std::vector<std::uint32_t>> ranks;  // nothing: not known
  OfRanks operations;
};

class CommunicatorFinder {
 public:
  explicit CommunicatorFinder(const std::vector<RankTrace>& traces) : traces_(traces) { read(); }

  Communicators find() {
    for (auto& [key, group] : stated_) {
      // A name alone does not tell groups apart that are of one size and have the same name.
      const bool is_several = !group.ranks && group.size > 0 && group.operations.size() > group.size;
      if (is_several) {
        infer(group.name, group.operations);
      } else {
        add_stated(group);
      }
    }
    infer("", unstated_);
    return std::move(found_);
  }

 private:
  // The text of a list that is abbreviated is the same on all of its ranks.
  void read() {
    OperationReader reader(names_);
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      const Trace& trace = traces_[rank].trace;
      reader.next_rank();
      for (std::size_t i = 0; i < trace.gpu_events.size(); ++i) {
        if (!is_communication(traces_[rank].classes[i])) continue;
        operations_of(trace, trace.gpu_events[i])[rank].push_back(reader.read(traces_[rank], i));
      }
    }
  }

  OfRanks& operations_of(const Trace& trace, const GpuEvent& event) {
    if (event.collective < 0) return unstated_;
    const std::int32_t number = trace.collectives[static_cast<std::size_t>(event.collective)].group;
    if (number < 0) return unstated_;
    const TraceGroup& group = trace.groups[static_cast<std::size_t>(number)];
    StatedGroup& stated = stated_[{group.name, group.ranks}];
    if (stated.operations.empty()) {
      const std::optional<StatedRanks> ranks = stated_ranks(group.ranks);
      stated.name = one_line(!group.name.empty() || !ranks ? group.name : group.ranks, 40);
      stated.ranks = ranks ? all_ranks(*ranks, group.size) : std::nullopt;
      stated.size = std::max<std::size_t>(group.size, stated.ranks ? stated.ranks->size() : 0);
    }
    return stated.operations;
  }

  [[nodiscard]] std::vector<std::uint32_t> ranks_at(const std::vector<std::size_t>& members) const {
    std::vector<std::uint32_t> ranks;
    for (const std::size_t member : members) ranks.push_back(rank_of(traces_[member]));
    return ranks;
  }

  static std::vector<std::size_t> ranks_of(const OfRanks& operations) {
    std::vector<std::size_t> ranks;
    for (const auto& [rank, own] : operations) ranks.push_back(rank);
    return ranks;
  }

  // Those whose trace is here and has nothing of the group, although its list names them.
  [[nodiscard]] std::vector<std::size_t> absent_from(const StatedGroup& group) const {
    std::vector<std::size_t> absent;
    if (!group.ranks) return absent;
    const std::set<std::uint32_t> listed(group.ranks->begin(), group.ranks->end());
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      const bool is_listed = listed.contains(rank_of(traces_[rank]));
      const bool takes_part = group.operations.contains(rank);
      if (takes_part && !is_listed) return {};  // the ranks of these traces are numbered by others than the list
      if (is_listed && !takes_part) absent.push_back(rank);
    }
    return absent;
  }

  void add_stated(const StatedGroup& group) {
    Communicator communicator;
    communicator.name = group.name;
    communicator.is_stated = true;
    communicator.members = ranks_of(group.operations);
    communicator.size = std::max(group.size, communicator.members.size());
    const std::vector<std::size_t> absent = absent_from(group);
    if (!absent.empty()) {
      report(communicator.name, group.operations,
             fmt::format("rank {} of the group has none of its kernels", rank_of(traces_[absent.front()])));
    }
    if (communicator.members.size() < 2) {
      if (absent.empty()) report(communicator.name, group.operations, "no other rank of its group is here");
      return;
    }
    add_collectives(group.operations, communicator);
    add_messages(group.operations, communicator);
    keep(std::move(communicator));
  }

  void keep(Communicator communicator) {
    if (communicator.kernels.empty()) return;
    std::stable_sort(communicator.kernels.begin(), communicator.kernels.end(),
                     [](const GroupKernel& a, const GroupKernel& b) { return a.kernel < b.kernel; });
    found_.groups.push_back(std::move(communicator));
  }

  // Each kernel that there is.
  void report(const std::string& group, const OfRanks& operations, const std::string& why) {
    std::map<std::uint32_t, std::vector<std::size_t>> kernels;
    for (const auto& [rank, own] : operations) {
      for (const auto& [name, each] : by_name(own)) kernels[name].push_back(rank);
    }
    for (const auto& [name, ranks] : kernels) {
      found_.others.push_back({names_[name], why, group, ranks_at(ranks)});
    }
  }

  void add_collectives(const OfRanks& operations, Communicator& group) {
    const OfMembers members = of_members(only(operations, false), group.members);
    if (!are_equally_many(members)) {
      return report(group.name, only(operations, false), "its group: " + fewest_to_most(members));
    }
    for (const OfMembers& sequence : sequences_of(members)) {
      if (const auto mismatch = mismatch_of(sequence)) {
        report_mismatch(sequence, *mismatch, group);
      } else {
        add_matched(sequence, group);
      }
    }
  }

  void report_mismatch(const OfMembers& sequence, const Mismatch& at, const Communicator& group) {
    const Operation& one = sequence[0][at.place];
    const Operation& other = sequence[at.member][at.place];
    const auto words = [&](const Operation& of) {
      return one.kind == other.kind ? fmt::format("of {} bytes", of.bytes) : name_of(of.kind);
    };
    const std::string why =
        fmt::format("number {} of its group's sequence is {} on rank {}, {} on rank {}", at.place + 1, words(one),
                    rank_of(traces_[group.members[0]]), words(other), rank_of(traces_[group.members[at.member]]));
    OfRanks operations;
    for (std::size_t m = 0; m < sequence.size(); ++m) operations[group.members[m]] = sequence[m];
    report(group.name, operations, why);
  }

  // Kernels of one name may be on several streams.
  void add_matched(const OfMembers& sequence, Communicator& group) {
    for (std::size_t k = 0; k < sequence.front().size(); ++k) {
      GroupKernel& kernel = kernel_of(sequence.front()[k], group);
      for (std::size_t m = 0; m < sequence.size(); ++m) kernel.visits[m].push_back(sequence[m][k].visit);
    }
  }

  GroupKernel& kernel_of(const Operation& operation, Communicator& group) const {
    const std::string& name = names_[operation.name];
    const auto known = std::find_if(group.kernels.begin(), group.kernels.end(), [&](const GroupKernel& kernel) {
      return kernel.kernel == name && kernel.kind == operation.kind;
    });
    if (known != group.kernels.end()) return *known;
    group.kernels.push_back({name, operation.kind, std::vector<Visits>(group.members.size())});
    return group.kernels.back();
  }

  void add_messages(const OfRanks& operations, Communicator& group) {
    KernelOfRanks kernels = by_kernel(only(operations, true));
    for (auto& [name, of_ranks] : kernels) {
      const OfMembers members = of_members(of_ranks, group.members);
      if (are_equally_many(members)) {
        add_matched(members, group);
      } else {
        found_.others.push_back({names_[name], fewest_to_most(members), group.name, ranks_at(ranks_of(of_ranks))});
      }
    }
  }

  static KernelOfRanks by_kernel(const OfRanks& operations) {
    KernelOfRanks kernels;
    for (const auto& [rank, own] : operations) {
      for (auto& [name, each] : by_name(own)) kernels[name][rank] = std::move(each);
    }
    return kernels;
  }

  // Groups that nobody states.

  void infer(const std::string& name, const OfRanks& operations) {
    if (operations.empty()) return;
    const std::vector<std::size_t> ranks = ranks_of(operations);
    if (ranks.size() < 2) {
      return report(name, operations, fmt::format("{} to {} of them on a rank", 0, longest(operations)));
    }
    OfRanks left = only(operations, false);
    infer_streams(name, ranks, left);
    for (auto& [kernel, of_ranks] : by_kernel(left)) infer_kernel(name, ranks, kernel, of_ranks);
    Communicator messages{.name = name, .size = ranks.size(), .members = ranks};
    add_messages(operations, messages);
    keep(std::move(messages));
  }

  static std::size_t longest(const OfRanks& operations) {
    std::size_t most = 0;
    for (const auto& [rank, own] : operations) most = std::max(most, own.size());
    return most;
  }

  using Signature = std::vector<std::tuple<std::uint32_t, CollectiveKind, std::int64_t>>;
  static Signature signature_of(const Operations& operations) {
    Signature signature;
    for (const Operation& each : operations) {
      signature.emplace_back(each.name, each.kind, has_one_size(each.kind) ? each.bytes : 0);
    }
    return signature;
  }

  // A communicator has a stream of its own as a rule. Takes what it finds from what is left.
  void infer_streams(const std::string& name, const std::vector<std::size_t>& ranks, OfRanks& left) {
    std::map<Signature, std::map<std::size_t, std::vector<std::uint32_t>>> streams;  // by rank
    for (const auto& [rank, own] : left) {
      for (const auto& [stream, operations] : by_stream(own)) streams[signature_of(operations)][rank].push_back(stream);
    }
    for (const auto& [signature, of_ranks] : streams) {
      if (of_ranks.size() < ranks.size()) continue;
      const std::vector<std::uint32_t>& first = of_ranks.begin()->second;
      const auto has_same = [&](const auto& other) { return other.second == first; };
      const auto has_one = [](const auto& other) { return other.second.size() == 1; };
      if (std::all_of(of_ranks.begin(), of_ranks.end(), has_one)) {
        add_inferred(name, ranks, take_streams(of_ranks, 0, left));
      } else if (std::all_of(of_ranks.begin(), of_ranks.end(), has_same)) {
        for (std::size_t i = 0; i < first.size(); ++i) add_inferred(name, ranks, take_streams(of_ranks, i, left));
      } else {
        report_alike(name, of_ranks, left);
      }
    }
  }

  static OfRanks take_streams(const std::map<std::size_t, std::vector<std::uint32_t>>& streams, std::size_t which,
                              OfRanks& left) {
    OfRanks taken;
    for (const auto& [rank, numbers] : streams) {
      Operations& own = left[rank];
      const auto end = std::stable_partition(
          own.begin(), own.end(), [&, at = numbers[which]](const Operation& each) { return each.stream != at; });
      taken[rank].assign(end, own.end());
      own.erase(end, own.end());
    }
    return taken;
  }

  void report_alike(const std::string& name, const std::map<std::size_t, std::vector<std::uint32_t>>& streams,
                    OfRanks& left) {
    OfRanks taken;
    for (const auto& [rank, numbers] : streams) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        OfRanks one = take_streams({{rank, numbers}}, i, left);
        Operations& all = taken[rank];
        all.insert(all.end(), one[rank].begin(), one[rank].end());
      }
    }
    report(name, taken, "cannot be told: several streams of a rank have the same sequence");
  }

  void add_inferred(const std::string& name, const std::vector<std::size_t>& ranks, const OfRanks& operations) {
    Communicator group{.name = name, .size = ranks.size(), .members = ranks};
    add_matched(of_members(operations, ranks), group);
    keep(std::move(group));
  }

  // Ranks that have a kernel equally often, with the same sizes. Some of the ranks that end a library's own all-to-all
  // equally often may do so by chance: they need not leave it together, so that nothing would show it.
  void infer_kernel(const std::string& name, const std::vector<std::size_t>& ranks, std::uint32_t kernel,
                    const OfRanks& operations) {
    std::map<Signature, std::vector<std::size_t>> alike;
    for (const auto& [rank, own] : operations) alike[signature_of(own)].push_back(rank);
    OfRanks alone;
    for (const auto& [signature, members] : alike) {
      const bool is_all = members.size() == ranks.size();
      const CollectiveKind kind = std::get<CollectiveKind>(signature.front());
      if (is_all || (members.size() > 1 && leave_together(kind))) {
        add_inferred(name, members, operations);
      } else {
        for (const std::size_t rank : members) alone[rank] = operations.at(rank);
      }
    }
    if (alone.empty()) return;
    const OfMembers all = of_members(operations, ranks);
    const std::string why = are_equally_many(all) ? "its sizes differ from rank to rank" : fewest_to_most(all);
    found_.others.push_back({names_[kernel], why, name, ranks_at(ranks_of(alone))});
  }

  const std::vector<RankTrace>& traces_;
  std::vector<std::string> names_;
  std::map<std::pair<std::string, std::string>, StatedGroup> stated_;  // by name and list of ranks
  OfRanks unstated_;
  Communicators found_;
};

}  // namespace

Communicators communicators_of(const std::vector<RankTrace>& traces) { return CommunicatorFinder(traces).find(); }

}  // namespace moeline
