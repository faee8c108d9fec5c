// Several ranks' traces at once, with answers that follow from how they were made.
#include "measured/several_ranks.hpp"

#include <rapidjson/document.h>

#include <doctest/doctest.h>

#include "tests/support/cli.hpp"
#include "tests/support/refusal.hpp"

TEST_SUITE("measured/several_ranks") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";
constexpr const char* kSendRecv = "ncclDevKernel_SendRecv";

Time us(std::int64_t value) { return std::chrono::microseconds(value); }

// A rank that computes and meets the others every millisecond: all leave 400 us into it.
class MadeRank {
 public:
  explicit MadeRank(std::uint32_t rank, std::int64_t clock_us = 0) {
    made_.file = "rank" + std::to_string(rank) + ".json";
    made_.trace.gpus = {{"0", rank}};
    made_.trace.time_zero_ns = 1'700'000'000'000'000'000 + 1000 * clock_us;
    made_.trace.names = {{"gemm", ""}, {kAllReduce, ""}, {kSendRecv, ""}};
  }
  // Arrives so late the k-th time.
  MadeRank& meets(int k, std::int64_t late_us) {
    const std::int64_t begin = 1000 * k;
    add(0, KernelClass::gemm, begin, begin + 100 + late_us);
    return add(1, KernelClass::collective, begin + 100 + late_us, begin + 400);
  }
  MadeRank& sends(std::int64_t from_us, std::int64_t to_us) { return add(2, KernelClass::collective, from_us, to_us); }
  [[nodiscard]] RankTrace made() const { return made_; }

 private:
  MadeRank& add(std::uint32_t name, KernelClass kernel_class, std::int64_t from_us, std::int64_t to_us) {
    GpuEvent event;
    event.start_ns = 1000 * from_us;
    event.end_ns = 1000 * to_us;
    event.name = name;
    made_.trace.gpu_events.push_back(event);
    made_.classes.push_back(kernel_class);
    return *this;
  }
  RankTrace made_;
};

// Rank 1 comes 30 us late nine of ten times, rank 2 50 us late the other time.
std::vector<RankTrace> three_ranks(std::int64_t clock_of_2 = 0) {
  MadeRank a(0), b(1), c(2, clock_of_2);
  for (int k = 0; k < 10; ++k) {
    a.meets(k, 0);
    b.meets(k, k == 5 ? 0 : 30);
    c.meets(k, k == 5 ? 50 : 0);
  }
  return {a.made(), b.made(), c.made()};
}

}  // namespace

TEST_CASE("who comes last to a collective is who the others wait for, as long as they are there before it") {
  const SeveralRanks all = analyze_several(three_ranks());
  CHECK(all.met == 10);
  CHECK(all.ranks[1].last == 9);
  CHECK(all.ranks[2].last == 1);
  CHECK(all.ranks[0].last == 0);
  CHECK(all.waits[0][1] == us(9 * 30));
  CHECK(all.waits[0][2] == us(50));
  CHECK(all.waits[2][1] == us(9 * 30));
  CHECK(all.waits[1][2] == us(50));
  CHECK(all.waits[1][1] == us(0));
  CHECK(all.ranks[1].kept_waiting == us(9 * 30));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    Time sum{};
    for (const Time wait : all.waits[rank]) sum += wait;
    CHECK(all.ranks[rank].waited == sum);
  }
  REQUIRE(all.joint.size() == 1);
  CHECK(all.joint[0].median_skew == us(30));
  CHECK(all.joint[0].end_spread == us(0));
}

TEST_CASE("where all come at once nobody is last") {
  MadeRank a(0), b(1);
  for (int k = 0; k < 4; ++k) {
    a.meets(k, 0);
    b.meets(k, k == 3 ? 20 : 0);
  }
  const SeveralRanks all = analyze_several({a.made(), b.made()});
  CHECK(all.met == 4);
  CHECK(all.ranks[0].last == 0);
  CHECK(all.ranks[1].last == 1);
}

TEST_CASE("a clock that is five seconds ahead changes no wait") {
  const SeveralRanks alike = analyze_several(three_ranks());
  const SeveralRanks ahead = analyze_several(three_ranks(5'000'000));
  CHECK(ahead.ranks[2].clock_offset == us(5'000'000));
  CHECK(ahead.waits == alike.waits);
  CHECK(ahead.joint[0].median_skew == alike.joint[0].median_skew);
}

TEST_CASE("the order in which traces are given changes nothing, and ranks are told apart") {
  std::vector<RankTrace> traces = three_ranks();
  const SeveralRanks before = analyze_several(traces);
  std::swap(traces[0], traces[2]);
  CHECK(analyze_several(traces).waits == before.waits);
  traces[1] = traces[0];
  CHECK(refusal_of([&] { (void)analyze_several(traces); }).find("is of rank") != std::string::npos);
}

TEST_CASE("what ranks do not leave together, or not equally often, is not done together, and said to be not") {
  MadeRank a(0), b(1);
  for (int k = 0; k < 10; ++k) {
    a.meets(k, 0).sends(1000 * k + 500, 1000 * k + 520);
    b.meets(k, 10).sends(1000 * k + 700, 1000 * k + 720);
  }
  const SeveralRanks apart = analyze_several({a.made(), b.made()});
  REQUIRE(apart.separate.size() == 1);
  CHECK(apart.separate[0].why.find("ranks leave it 200 us apart") != std::string::npos);
  CHECK(apart.waits[0][1] == us(100));
  b.sends(9990, 9995);
  const SeveralRanks more = analyze_several({a.made(), b.made()});
  CHECK(more.separate[0].why.find("10 to 11 of them") != std::string::npos);
  CHECK(refusal_of([&] {
          (void)analyze_several({MadeRank(0).sends(0, 5).made(), MadeRank(1).made()});
        }).find("shares no barrier or collective") != std::string::npos);
}

namespace {

// Of two traces of ours, with the events of both.
std::string united(const std::string& one, const std::string& other) {
  const std::size_t begin = other.find('[', other.find("\"traceEvents\"")) + 1;
  const std::string events = other.substr(begin, other.rfind(']') - begin);
  const std::size_t end = one.rfind(']');
  return one.substr(0, end) + "," + events + one.substr(end);
}

}  // namespace

TEST_CASE("of simulated ranks the waits in barriers are those that the simulation made") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Outcome simulated = run_moeline(
      {"simulate", source("experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml").string(), "--set",
       "ranks=all", "--set", "samples=1", "--trace-ranks", "0,1,2,3", "-o", run, "--format", "json"});
  REQUIRE(simulated.exit_code == 0);
  Arguments analyze = {"analyze", "--format", "json"};
  for (int rank = 0; rank < 4; ++rank) analyze.push_back(run + "/traces/rank_" + std::to_string(rank) + ".json");
  const Outcome outcome = run_moeline(analyze);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.out.find("\"clock_offset_us\": 0.0") != std::string::npos);
  CHECK(outcome.out.find("notify_dispatch") != std::string::npos);  // a barrier of DeepEP's
  analyze.erase(analyze.begin() + 1, analyze.begin() + 3);
  const Outcome table = run_moeline(analyze);
  CHECK(table.out.starts_with("4 ranks\n"));
  CHECK(table.out.find("waits for") != std::string::npos);

  const std::string both = folder.write(
      "both.json", united(content_of(run + "/traces/rank_0.json"), content_of(run + "/traces/rank_1.json")));
  const auto waits_in = [](const Outcome& of) {
    CHECK(of.exit_code == 0);
    return of.out.substr(of.out.find("\"waits\""));
  };
  const Outcome together = run_moeline({"analyze", both, "--together", "--format", "json"});
  CHECK(waits_in(together) == waits_in(run_moeline({"analyze", run + "/traces/rank_0.json", run + "/traces/rank_1.json",
                                                    "--format", "json"})));
  CHECK(run_moeline({"analyze", both}).err.find("--together says which") != std::string::npos);
  const Outcome one = run_moeline({"analyze", run + "/traces/rank_0.json", "--together"});
  CHECK(one.exit_code == 3);
  CHECK(one.err.find("holds one GPU, which waits for nobody") != std::string::npos);
}

TEST_CASE(
    "ranks of a simulated pipeline have one clock, and what each does with its own stage's GPUs joins no others") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const std::string scenario = source("experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml").string();
  REQUIRE(run_moeline({"simulate", scenario, "--set", "level=phase", "--trace-ranks", "0,1,15", "-o", run}).exit_code ==
          0);
  Arguments analyze = {"analyze", "--format", "json"};
  for (const char* rank : {"0", "1", "15"}) analyze.push_back(run + "/traces/rank_" + rank + ".json");
  const Outcome outcome = run_moeline(analyze);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document json;
  json.Parse(outcome.out.c_str());
  for (const auto& rank : json["ranks"].GetArray()) CHECK(rank["clock_offset_us"].GetDouble() == 0);
  REQUIRE(json["together"].Size() == 1);  // the norm of the gradients, which every GPU sends to all
  CHECK(json["together"][0]["group_size"].GetInt() == 2048);
  CHECK(json["together"][0]["ranks"].Size() == 3);
  CHECK(json["together"][0]["ends_apart_us"].GetDouble() == 0);
}

}  // TEST_SUITE("measured/several_ranks")
