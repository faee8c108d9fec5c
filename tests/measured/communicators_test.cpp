// Groups of ranks and their clocks, in traces whose groups, clocks and waits follow from how they are made.
#include "measured/communicators.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "measured/several_ranks.hpp"
#include "tests/support/data.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/trace_text.hpp"
#include "trace/stated_ranks.hpp"

TEST_SUITE("measured/communicators") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr const char* kReduces = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";
constexpr const char* kGathers = "ncclDevKernel_AllGather_RING_LL";
constexpr const char* kSends = "ncclDevKernel_SendRecv";

Time in_us(std::int64_t value) { return std::chrono::microseconds(value); }

// What a kernel of communication states; empty: nothing.
struct Stated {
  std::string group, ranks;
  std::uint32_t size = 0;
  std::string collective{};
};

// Kernels of one rank, by a clock that is so far ahead.
class RankOfRun {
 public:
  explicit RankOfRun(std::uint32_t rank, std::int64_t ahead_us = 0) {
    made_.file = "rank" + std::to_string(rank) + ".json";
    made_.trace.gpus = {{"0", rank}};
    made_.trace.time_zero_ns = 1'700'000'000'000'000'000 + 1000 * ahead_us;
  }

  RankOfRun& runs(const std::string& kernel, std::int64_t from_us, std::int64_t to_us, const Stated& stated = {},
                  std::int64_t bytes = 4096, std::uint32_t stream = 20) {
    GpuEvent event;
    event.start_ns = 1000 * from_us;
    event.end_ns = 1000 * to_us;
    event.bytes = bytes;
    event.stream = stream;
    event.name = name_number(kernel);
    event.collective = collective_number(stated);
    made_.trace.gpu_events.push_back(event);
    made_.classes.push_back(KernelClass::collective);
    return *this;
  }
  RankOfRun& counts_from_zero() {
    made_.trace.time_zero_ns = 0;
    made_.trace.counts_from_zero = true;
    return *this;
  }

  [[nodiscard]] RankTrace made() const {
    RankTrace sorted = made_;  // all kernels are of one class
    std::stable_sort(sorted.trace.gpu_events.begin(), sorted.trace.gpu_events.end(),
                     [](const GpuEvent& a, const GpuEvent& b) { return a.start_ns < b.start_ns; });
    return sorted;
  }

 private:
  std::uint32_t name_number(const std::string& kernel) {
    std::vector<KernelName>& names = made_.trace.names;
    const auto known = std::find_if(names.begin(), names.end(), [&](const KernelName& n) { return n.name == kernel; });
    const auto number = static_cast<std::uint32_t>(known - names.begin());
    if (known == names.end()) names.push_back({kernel, ""});
    return number;
  }
  std::int32_t collective_number(const Stated& stated) {
    if (stated.group.empty() && stated.ranks.empty() && stated.collective.empty()) return -1;
    Trace& trace = made_.trace;
    trace.collectives.push_back({stated.collective, -1});
    if (!stated.group.empty() || !stated.ranks.empty()) {
      trace.groups.push_back({stated.group, "", stated.ranks, stated.size});
      trace.collectives.back().group = static_cast<std::int32_t>(trace.groups.size() - 1);
    }
    return static_cast<std::int32_t>(trace.collectives.size() - 1);
  }

  RankTrace made_;
};

std::vector<RankTrace> traces_of(const std::vector<RankOfRun>& ranks) {
  std::vector<RankTrace> traces;
  for (const RankOfRun& rank : ranks) traces.push_back(rank.made());
  return traces;
}

// All of them leave it at the same time, each after it has waited.
void meet(std::vector<RankOfRun>& ranks, const std::vector<std::size_t>& members, const std::string& kernel,
          std::int64_t leave_us, const std::vector<std::int64_t>& stay_us, const Stated& stated = {},
          std::int64_t bytes = 4096, std::uint32_t stream = 20) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    ranks[members[i]].runs(kernel, leave_us - stay_us[i], leave_us, stated, bytes, stream);
  }
}

const JointKernel* joint_of(const SeveralRanks& all, const std::string& group) {
  const auto found =
      std::find_if(all.joint.begin(), all.joint.end(), [&](const JointKernel& k) { return k.group == group; });
  return found == all.joint.end() ? nullptr : &*found;
}

std::string why_not(const SeveralRanks& all, const std::string& kernel) {
  const auto found = std::find_if(all.separate.begin(), all.separate.end(),
                                  [&](const SeparateKernel& k) { return k.kernel == kernel; });
  return found == all.separate.end() ? "" : found->why;
}

std::string list(const std::vector<std::size_t>& ranks) {
  std::string text;
  for (const std::size_t rank : ranks) text += (text.empty() ? "[" : ", ") + std::to_string(rank);
  return text + "]";
}

// Tensor parallel groups of `tp` neighbours and data parallel ones across them: rank = tp * replica + place. The last
// of a tensor parallel group comes 7 us after the others, each group 300 us after the one before.
std::vector<RankOfRun> tensor_and_data_parallel(std::size_t tp, std::size_t dp,
                                                const std::vector<std::int64_t>& ahead_us, bool states) {
  std::vector<RankOfRun> ranks;
  for (std::size_t rank = 0; rank < tp * dp; ++rank) ranks.emplace_back(rank, ahead_us[rank]);
  for (std::size_t replica = 0; replica < dp; ++replica) {
    std::vector<std::size_t> members;
    for (std::size_t place = 0; place < tp; ++place) members.push_back(tp * replica + place);
    std::vector<std::int64_t> stays(tp, 57);
    stays.back() = 50;
    const Stated group{"tp" + std::to_string(replica), list(members), static_cast<std::uint32_t>(tp)};
    for (int k = 0; k < 12; ++k) {
      const auto leave = 1000 * k + static_cast<std::int64_t>(300 * replica + 100);
      meet(ranks, members, kReduces, leave, stays, states ? group : Stated());
    }
  }
  for (std::size_t place = 0; place < tp; ++place) {
    std::vector<std::size_t> members;
    for (std::size_t replica = 0; replica < dp; ++replica) members.push_back(tp * replica + place);
    std::vector<std::int64_t> stays(dp, 40);
    stays.front() = 45;
    const Stated group{"dp" + std::to_string(place), list(members), static_cast<std::uint32_t>(dp)};
    for (int k = 0; k < 11; ++k) {
      const auto leave = 1000 * k + static_cast<std::int64_t>(13 * place + 950);
      meet(ranks, members, kGathers, leave, stays, states ? group : Stated(), 8192, 24);
    }
  }
  return ranks;
}

}  // namespace

TEST_CASE("clocks that differ are found through groups that share ranks, and no group waits for another") {
  for (const std::size_t dp : {2U, 3U}) {
    const std::vector<std::int64_t> ahead = {0, 730, -12'000, 4'000'000, 55, -8};
    const SeveralRanks all = analyze_several(traces_of(tensor_and_data_parallel(2, dp, ahead, true)));
    REQUIRE(all.ranks.size() == 2 * dp);
    for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
      CAPTURE(rank);
      CHECK(all.ranks[rank].clock_offset == in_us(ahead[rank]));
      CHECK(all.ranks[rank].clock_residue == Time::zero());
    }
    CHECK(all.separate.empty());
    CHECK(all.joint.size() == dp + 2);
    for (const JointKernel& kernel : all.joint) CHECK(kernel.end_spread == Time::zero());
    for (std::size_t replica = 0; replica < dp; ++replica) {
      CHECK(all.waits[2 * replica][2 * replica + 1] == in_us(12 * 7));  // within its tensor parallel group
    }
    CHECK(all.waits[0][2] == in_us(11 * 5));  // the second of the data parallel group is the last that comes
    CHECK(all.waits[0][1] == in_us(12 * 7));
    CHECK(all.waits[1][0] == Time::zero());
    CHECK(joint_of(all, "tp1")->ranks == std::vector<std::uint32_t>{2, 3});
    CHECK(joint_of(all, "tp1")->median_skew == in_us(7));
  }
}

TEST_CASE("groups across each other that run the same and are not stated contradict each other, and tell nothing") {
  const SeveralRanks all = analyze_several(traces_of(tensor_and_data_parallel(2, 2, {0, 730, -12'000, 400}, false)));
  CHECK(all.ranks[1].clock_offset == in_us(730));
  CHECK_FALSE(all.ranks[2].clock_offset);
  CHECK(all.joint.empty());
  CHECK(why_not(all, kReduces).starts_with("cannot be told"));
}

TEST_CASE("a clock that differs by less than ends scatter is left alone") {
  std::vector<RankOfRun> ranks = {RankOfRun(0), RankOfRun(1, 3), RankOfRun(2, 300)};
  for (int k = 0; k < 20; ++k) {
    const std::int64_t scatter = k % 3 == 0 ? 0 : k % 3 == 1 ? 9 : -9;
    ranks[0].runs(kReduces, 1000 * k, 1000 * k + 100);
    ranks[1].runs(kReduces, 1000 * k + 20, 1000 * k + 100 + scatter);
    ranks[2].runs(kReduces, 1000 * k + 20, 1000 * k + 100 - scatter);
  }
  const SeveralRanks all = analyze_several(traces_of(ranks));
  CHECK(all.ranks[1].clock_offset == Time::zero());
  CHECK(all.ranks[1].clock_residue == in_us(9));
  CHECK(all.ranks[2].clock_offset == in_us(300));
}

TEST_CASE("two communicators of the same ranks, interleaved in another order on each, have a sequence each") {
  std::vector<RankOfRun> ranks = {RankOfRun(0), RankOfRun(1, 400)};
  const auto run = [&](bool states) {
    for (int k = 0; k < 10; ++k) {
      const Stated one = states ? Stated{"one", "[0, 1]", 2} : Stated();
      const Stated two = states ? Stated{"two", "[0, 1]", 2} : Stated();
      ranks[0].runs(kReduces, 1000 * k, 1000 * k + 500, one, 4096, 20);
      ranks[0].runs(kReduces, 1000 * k + 10, 1000 * k + 700, two, 1024, 21);
      ranks[1].runs(kReduces, 1000 * k + 90, 1000 * k + 700, two, 1024, 21);  // first here, second there
      ranks[1].runs(kReduces, 1000 * k + 120, 1000 * k + 500, one, 4096, 20);
    }
    const SeveralRanks all = analyze_several(traces_of(ranks));
    CHECK(all.separate.empty());
    CHECK(all.ranks[1].clock_offset == in_us(400));
    REQUIRE(all.joint.size() == 2);
    for (const JointKernel& kernel : all.joint) CHECK(kernel.end_spread == Time::zero());
    CHECK(all.waits[0][1] == in_us(10 * (120 + 80)));
  };
  SUBCASE("as the traces state") { run(true); }
  SUBCASE("by the sizes in each stream's sequence") { run(false); }
}

TEST_CASE("a communicator whose kernels change streams from rank to rank has one sequence") {
  std::vector<RankOfRun> ranks = {RankOfRun(0), RankOfRun(1)};
  const Stated both{"0", "[0, 1]", 2};
  for (int k = 0; k < 10; ++k) {
    const std::uint32_t odd = k % 2 == 0 ? 0 : 1;
    const std::int64_t bytes = odd == 0 ? 64 : 128;
    ranks[0].runs(kReduces, 1000 * k, 1000 * k + 100, both, bytes, 20 + odd);
    ranks[1].runs(kReduces, 1000 * k + 30, 1000 * k + 100, both, bytes, 21 - odd);
  }
  const SeveralRanks all = analyze_several(traces_of(ranks));
  CHECK(all.separate.empty());
  CHECK(all.waits[0][1] == in_us(300));
}

TEST_CASE("an abbreviated list of ranks names a group as well as a whole one") {
  std::vector<RankOfRun> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) ranks.emplace_back(rank, 10 * rank);
  for (int k = 0; k < 10; ++k) {
    // Groups of one name, as torch.distributed's split_group makes them.
    meet(ranks, {0, 1}, kReduces, 1000 * k + 100, {60, 50}, {"split", "[0, 1, 8, ..., 99]", 32});
    meet(ranks, {2, 3}, kReduces, 1000 * k + 777, {50, 60}, {"split", "[2, 3, 10, ..., 101]", 32});
    meet(ranks, {0, 2}, kGathers, 1000 * k + 900, {50, 50}, {"across", "[0, 2, 20, ..., 510]", 256});
  }
  const SeveralRanks all = analyze_several(traces_of(ranks));
  CHECK(all.joint.size() == 3);
  CHECK(joint_of(all, "across")->group_size == 256);
  for (const JointKernel& kernel : all.joint) CHECK(kernel.ranks.size() == 2);
  CHECK(all.waits[0][1] == in_us(100));
  CHECK(all.waits[3][2] == in_us(100));
  CHECK(all.ranks[3].clock_offset == in_us(30));
  CHECK(all.separate.empty());
}

TEST_CASE("ranks that a list leaves out are known where those it has are equally far apart") {
  const auto all = [](const char* text, std::uint32_t size) {
    return all_ranks(stated_ranks(text).value_or(StatedRanks()), size).value_or(std::vector<std::uint32_t>());
  };
  CHECK(all("[3, 1, 2]", 0) == std::vector<std::uint32_t>{3, 1, 2});
  CHECK(all("[0, 8, ..., 32]", 5) == std::vector<std::uint32_t>{0, 8, 16, 24, 32});
  CHECK(all("[0, 8, ..., 32]", 6).empty());
  CHECK(all("[0, 8, 9, ..., 32]", 5).empty());
  CHECK(all("[0, ..., 32]", 5).empty());
  CHECK(all("[8, 0, ..., 32]", 5).empty());
  CHECK(all("[0, 1, ..., 4294967295]", 4294967295).empty());
}

TEST_CASE("where groups are not stated, ranks whose kernels agree in number and size are one") {
  std::vector<RankOfRun> ranks;
  for (std::uint32_t rank = 0; rank < 5; ++rank) ranks.emplace_back(rank, 1000 * rank);
  for (int k = 0; k < 12; ++k) meet(ranks, {0, 2}, kReduces, 1000 * k + 100, {60, 50}, {}, 4096);
  for (int k = 0; k < 12; ++k) meet(ranks, {1, 3}, kReduces, 1100 * k + 200, {50, 70}, {}, 8192);
  for (int k = 0; k < 7; ++k) ranks[4].runs(kReduces, 900 * k, 900 * k + 50);
  const SeveralRanks all = analyze_several(traces_of(ranks));
  CHECK(all.joint.size() == 2);
  CHECK(all.waits[0][2] == in_us(120));
  CHECK(all.waits[3][1] == in_us(240));
  CHECK(all.ranks[2].clock_offset == in_us(2000));
  CHECK_FALSE(all.ranks[1].clock_offset);  // nothing joins it with rank 0
  CHECK(all.ranks[3].clock_known_by.find("2000.0 us ahead of rank 1") != std::string::npos);
  CHECK(why_not(all, kReduces) == "7 to 12 of them on a rank");
}

TEST_CASE("where several groups explain what is not stated as well as one, that is not decided") {
  std::vector<RankOfRun> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) ranks.push_back(RankOfRun(rank).counts_from_zero());
  for (int k = 0; k < 20; ++k) {
    meet(ranks, {0, 1}, kReduces, 1000 * k + 100, {60, 50});
    meet(ranks, {2, 3}, kReduces, 1000 * k + 600, {60, 50});
  }
  const SeveralRanks undecided = analyze_several(traces_of(ranks));
  CHECK(undecided.ranks[2].clock_offset == Time::zero());
  CHECK(undecided.ranks[2].clock_known_by.find("assumed") != std::string::npos);
  CHECK(undecided.joint.empty());
  CHECK(why_not(undecided, kReduces).starts_with("cannot be told"));

  // Nor where kernels contradict each other: all leave the last one together.
  meet(ranks, {0, 1, 2, 3}, kGathers, 30'000, {50, 50, 50, 50});
  const SeveralRanks contradicted = analyze_several(traces_of(ranks));
  CHECK(contradicted.ranks[2].clock_offset == Time::zero());
  CHECK(contradicted.joint.size() == 1);
  CHECK(why_not(contradicted, kReduces).starts_with("cannot be told"));
}

TEST_CASE("messages set no clock, whether they are stated to be messages or run by NCCL's kernel of them") {
  for (const Stated& stated : {Stated(), Stated{"pp", "[0, 1]", 2, "send"}}) {
    std::vector<RankOfRun> ranks = {RankOfRun(0), RankOfRun(1, 50)};
    for (int k = 0; k < 30; ++k) {
      meet(ranks, {0, 1}, kReduces, 1000 * k + 100, {60, 50}, {"tp", "[0, 1]", 2});
      ranks[0].runs(kSends, 1000 * k + 200, 1000 * k + 220, stated);
      ranks[1].runs(kSends, 1000 * k + 440, 1000 * k + 460, stated);
    }
    const SeveralRanks all = analyze_several(traces_of(ranks));
    CHECK(all.ranks[1].clock_offset == in_us(50));
    CHECK(why_not(all, kSends) == "ranks leave it 240 us apart");
    CHECK(all.joint.size() == 1);
  }
}

TEST_CASE("an all-to-all that NCCL runs by its kernel of messages is a collective where the trace says so") {
  std::vector<RankOfRun> ranks = {RankOfRun(0), RankOfRun(1, 640)};
  for (int k = 0; k < 10; ++k) {
    meet(ranks, {0, 1}, kSends, 1000 * k + 100, {90, 50}, {"ep", "[0, 1]", 2, "all_to_allv"}, 100 * k);
  }
  const SeveralRanks all = analyze_several(traces_of(ranks));
  CHECK(all.ranks[1].clock_offset == in_us(640));
  CHECK(all.waits[0][1] == in_us(400));
}

TEST_CASE("clocks of ranks that nothing joins cannot be told, and each half still has its waits") {
  std::vector<RankOfRun> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) ranks.emplace_back(rank, 500 * rank);
  for (int k = 0; k < 10; ++k) {
    meet(ranks, {0, 1}, kReduces, 1000 * k + 100, {60, 50}, {"a", "[0, 1]", 2});
    meet(ranks, {2, 3}, kReduces, 1000 * k + 140, {60, 50}, {"b", "[2, 3]", 2});
    for (const std::size_t rank : {1U, 2U}) {  // what leaves at different times joins nobody
      ranks[rank].runs("ncclDevKernel_Broadcast_RING_LL", 1000 * k + 200, 1000 * k + 300, {"c", "[1, 2]", 2});
    }
  }
  const SeveralRanks all = analyze_several(traces_of(ranks));
  CHECK(all.ranks[1].clock_offset == in_us(500));
  CHECK_FALSE(all.ranks[2].clock_offset);
  CHECK(all.ranks[2].clock_known_by.find("cannot be told") != std::string::npos);
  CHECK_FALSE(all.ranks[3].clock_offset);
  CHECK(all.waits[0][1] == in_us(100));
  CHECK(all.waits[2][3] == in_us(100));
  CHECK(all.joint.size() == 2);
  CHECK(why_not(all, "ncclDevKernel_Broadcast_RING_LL").find("clocks of its ranks are not known") != std::string::npos);
}

TEST_CASE("a sequence in which ranks do different things is reported with the place, and not matched") {
  const auto why = [](const char* kernel, std::int64_t bytes, int count) {
    std::vector<RankOfRun> ranks = {RankOfRun(0), RankOfRun(1)};
    const Stated world{"0", "[0, 1]", 2};
    const Stated other{"1", "[0, 1]", 2};
    for (int k = 0; k < 5; ++k) meet(ranks, {0, 1}, kGathers, 1000 * k + 900, {10, 10}, other);
    for (int k = 0; k < 8; ++k) ranks[0].runs(kReduces, 1000 * k, 1000 * k + 50, world);
    for (int k = 0; k < count; ++k) {
      ranks[1].runs(k == 5 ? kernel : kReduces, 1000 * k, 1000 * k + 50, world, k == 5 ? bytes : 4096);
    }
    const SeveralRanks all = analyze_several(traces_of(ranks));
    CHECK(all.joint.size() == 1);
    return why_not(all, kReduces);
  };
  CHECK(why(kGathers, 4096, 8) == "number 6 of its group's sequence is all-reduce on rank 0, all-gather on rank 1");
  CHECK(why(kReduces, 64, 8) == "number 6 of its group's sequence is of 4096 bytes on rank 0, of 64 bytes on rank 1");
  CHECK(why(kReduces, 4096, 7) == "its group: 7 to 8 of them on a rank");
}

TEST_CASE("a rank that a group lists and that has none of its kernels, and a group alone, are named") {
  std::vector<RankOfRun> ranks = {RankOfRun(0), RankOfRun(1), RankOfRun(2)};
  for (int k = 0; k < 3; ++k) {
    meet(ranks, {0, 1}, kReduces, 1000 * k + 100, {60, 50}, {"0", "[0, 1, 2]", 3});
    ranks[2].runs(kGathers, 1000 * k, 1000 * k + 10, {"7", "[2, 10]", 2});
  }
  const SeveralRanks all = analyze_several(traces_of(ranks));
  CHECK(why_not(all, kReduces) == "rank 2 of the group has none of its kernels");
  CHECK(why_not(all, kGathers) == "no other rank of its group is here");
  CHECK(joint_of(all, "0")->ranks == std::vector<std::uint32_t>{0, 1});
  CHECK(joint_of(all, "0")->group_size == 3);
}

namespace {

std::vector<RankTrace> read_small(const std::string& name, std::size_t ranks) {
  std::vector<RankTrace> traces;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::filesystem::path file = data_folder() / ("traces/small/" + name + std::to_string(rank) + ".json");
    if (!present(file)) return {};
    for (RankTrace& each : ranks_in(file.string(), read_trace(file), {})) traces.push_back(std::move(each));
  }
  return traces;
}

// One all-reduce on each of two ranks, whose arguments state this.
std::string trace_that_states(std::uint32_t rank, const std::string& arguments) {
  return R"({"baseTimeNanoseconds": 0, "distributedInfo": {"rank": )" + std::to_string(rank) +
         R"(}, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7,
             "ts": 10, "dur": 5, "args": {"stream": 7)" +
         arguments + "}}]}";
}

std::vector<RankTrace> two_that_state(const std::string& arguments) {
  const TemporaryFolder folder;
  std::vector<RankTrace> traces;
  for (const std::uint32_t rank : {0U, 1U}) {
    const std::string file = "rank" + std::to_string(rank) + ".json";
    const Trace trace = read_trace(folder.write(file, trace_that_states(rank, arguments)));
    for (RankTrace& each : ranks_in(file, trace, {})) traces.push_back(std::move(each));
  }
  return traces;
}

}  // namespace

TEST_CASE("two groups with one clock, one later than the other, wait for nobody outside") {
  const std::vector<RankTrace> traces = read_small("m1_rank", 4);
  if (traces.empty()) return;
  const SeveralRanks all = analyze_several(traces);
  for (const RankOfSeveral& rank : all.ranks) CHECK(rank.clock_offset == Time::zero());
  CHECK(all.separate.empty());
  CHECK(all.joint.size() == 3);
  CHECK(all.waits[0][1] == in_us(200));
  CHECK(all.waits[2][3] == in_us(200));
  CHECK(all.waits[2][1] == Time::zero());
}

TEST_CASE("one group with clocks that differ, of which nothing is stated") {
  const std::vector<RankTrace> traces = read_small("m2_rank", 3);
  if (traces.empty()) return;
  const SeveralRanks all = analyze_several(traces);
  CHECK(all.ranks[1].clock_offset == in_us(1000));
  CHECK(all.ranks[2].clock_offset == in_us(-250));
  REQUIRE(all.joint.size() == 1);
  CHECK(all.joint[0].median_skew == in_us(30));
  CHECK(all.joint[0].p95_skew == in_us(56));
  CHECK(all.waits[0][1] == in_us(196));
  CHECK(all.waits[1][2] == in_us(184));
}

TEST_CASE("what a kernel states of its group is read, as a text or as a list") {
  for (const std::string ranks : {R"("[0, 1]")", "[0, 1]"}) {
    const std::vector<RankTrace> traces = two_that_state(
        R"(, "Process Group Name": "3", "Process Group Description": "tp", "Collective name": "allreduce",
                          "Group size": 2, "Process Group Ranks": )" +
        ranks);
    const Trace& trace = traces.front().trace;
    REQUIRE(trace.groups.size() == 1);
    CHECK(trace.groups[0].name == "3");
    CHECK(trace.groups[0].description == "tp");
    CHECK(trace.groups[0].size == 2);
    REQUIRE(trace.gpu_events[0].collective == 0);
    CHECK(trace.collectives[0].name == "allreduce");
    CHECK(trace.counts_from_zero);
    CHECK(analyze_several(traces).joint.front().group == "3");
  }
}

TEST_CASE("a list of ranks that is none counts as not stated, and is noted") {
  for (const std::string ranks : {R"("[0, x]")", R"("")", R"("[]")", R"("[0, 0]")", "-1", "[0, [1]]",
                                  R"("[0, 99999999999]")", R"("..., 1")", R"({"a": 1})", "null"}) {
    CAPTURE(ranks);
    const std::vector<RankTrace> traces =
        two_that_state(R"(, "Process Group Name": "3", "Group size": "many", "Process Group Ranks": )" + ranks);
    const SeveralRanks all = analyze_several(traces);
    CHECK(all.joint.front().group == "3");
    CHECK(all.joint.front().ranks.size() == 2);
  }
  const TemporaryFolder folder;
  const Trace trace = read_trace(folder.write("a.json", trace_that_states(0, R"(, "Process Group Ranks": "[0, x]")")));
  CHECK(trace.groups.front().ranks.empty());
  REQUIRE(trace.notes.size() == 1);
  CHECK(trace.notes[0] == "process groups whose list of ranks is none, and counts as not stated: 1");
}

}  // TEST_SUITE("measured/communicators")
