// Searches: the best plan of all, a bound that none goes below, and the same answer every time.
#include <doctest/doctest.h>

#include "base/file.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/search/search.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

const std::string kChunk = chunk_scenario(), kPrefill = prefill_scenario(), kDecode = decode_scenario();
const Set kOneRank = {"ranks=folded", "samples=1"};

SearchRequest request(const std::string& scenario, Set set = kOneRank) {
  SearchRequest request;
  request.scenario = scenario;
  request.assignments = std::move(set);
  request.workers = 2;
  return request;
}

SearchResult found(const SearchRequest& request) {
  return search(request, [](const char*, std::size_t, std::size_t) {});
}

void check_sound(const SearchResult& r) {
  CHECK(r.us.best <= r.us.published);
  CHECK(r.bound_us <= r.us.best * 1.0001);
}

}  // namespace

TEST_CASE("the chunk's whole space: every order is simulated, ruled out or cannot run, and one beats the published") {
  const SearchResult r = found(request(kChunk));
  check_sound(r);
  CHECK(r.exhaustive);
  CHECK(static_cast<double>(r.evaluated) + r.pruned + r.impossible == 270);
  CHECK(r.faster >= 1);
  CHECK(r.us.best < r.us.published);
}

TEST_CASE(
    "the plan that is written takes in simulate what the search says, with the SMs and the side set that it found") {
  const TemporaryFolder folder;
  SearchRequest asked = request(kChunk);
  asked.sms = asked.sides = true;
  asked.num_sms = {16, 20};
  const SearchResult r = found(asked);
  CHECK(r.exhaustive);
  CHECK(r.plans == 270 * 2 * 4);
  const std::string file = folder.write("plan.yaml", r.text);
  Set set = kOneRank;
  set.push_back("overlap=" + file);
  set.insert(set.end(), r.changes.begin(), r.changes.end());
  CHECK(layer_us(run_scenario(load_setup(kChunk, set))) == doctest::Approx(r.us.best).epsilon(1e-9));
}

TEST_CASE(
    "the best of prefill and decode is proven, of two million orders: where the compute stream never waits, at once") {
  const SearchResult prefill = found(request(kPrefill));
  check_sound(prefill);
  CHECK(prefill.exhaustive);
  for (const char* batch : {"workload.batch_size=32", "workload.batch_size=128", "workload.batch_size=256"}) {
    CAPTURE(batch);
    const SearchResult decode = found(request(kDecode, {"ranks=folded", "samples=1", batch}));
    check_sound(decode);
    CHECK(decode.exhaustive);
    CHECK(decode.plans > 1.8e6);
    const bool waits = std::string(batch).ends_with("256");
    CHECK((decode.evaluated > 1) == waits);
    CHECK((decode.us.best < decode.us.published) == waits);
    CHECK((decode.floor_us < 0.99 * decode.us.best) == waits);
  }
}

TEST_CASE("cut short, a search says how much faster a plan may still be, whatever the number of threads") {
  SearchRequest asked = request(kDecode, {"ranks=folded", "samples=1", "layers=16"});
  asked.sms = true;
  asked.num_sms = {8};
  asked.most = 40;
  const SearchResult two = found(asked);
  asked.workers = 1;
  const SearchResult one = found(asked);
  check_sound(two);
  CHECK_FALSE(two.exhaustive);
  CHECK(two.left_out > 0);
  CHECK(static_cast<double>(two.evaluated) + two.pruned + two.impossible + two.left_out == two.plans);
  CHECK(two.pruned > two.left_out);
  CHECK(two.bound_us < two.us.best);
  CHECK(two.floor_us <= two.bound_us);
  CHECK(one.us.best == two.us.best);
  CHECK(one.text == two.text);
  asked.most = 400;
  const SearchResult more = found(asked);
  CHECK(more.us.best <= two.us.best);
  CHECK(more.bound_us >= two.bound_us);
}

TEST_CASE("of all schedules, SMs and pieces few requests ask for one batch, whose plan is found as it is simulated") {
  const TemporaryFolder folder;
  SearchRequest asked = request(kDecode, {"ranks=folded", "samples=1", "workload.batch_size=32"});
  asked.schedules = asked.sms = asked.pieces = true;
  asked.num_sms = {0, 8};
  asked.piece_counts = {1, 2, 64};
  const SearchResult r = found(asked);
  check_sound(r);
  CHECK(r.exhaustive);
  CHECK(r.best.scenario.kind().micro_batches == 1);
  CHECK(r.us.best < 0.8 * r.us.published);
  REQUIRE(r.refused.size() == 3);  // of 2 experts, of two micro-batches' 16 tokens each, and of one's 32
  for (const RefusedVariants& refused : r.refused) CHECK(says(refused.why, "64 are more than the"));
  Set set = {"ranks=folded", "samples=1", "workload.batch_size=32", "overlap=" + folder.write("plan.yaml", r.text)};
  set.insert(set.end(), r.changes.begin(), r.changes.end());
  CHECK(layer_us(run_scenario(load_setup(kDecode, set))) == doctest::Approx(r.us.best).epsilon(0.001));
}

TEST_CASE("unequal micro-batches win where weights bind, and the plan that is written has them") {
  const TemporaryFolder folder;
  SearchRequest asked = request(kDecode, {"ranks=folded", "samples=1", "workload.batch_size=64"});
  asked.splits = asked.attention = true;
  const SearchResult r = found(asked);
  check_sound(r);
  CHECK(r.exhaustive);
  CHECK(r.plan.split > 0.5);
  CHECK(r.us.best < 0.995 * r.us.published);
  const std::string file = folder.write("plan.yaml", r.text);
  const Set set = {"ranks=folded", "samples=1", "workload.batch_size=64", "overlap=" + file};
  CHECK(layer_us(run_scenario(load_setup(kDecode, set))) == doctest::Approx(r.us.best).epsilon(0.001));
}

TEST_CASE("a schedule without a plan is compared with those that have one") {
  SearchRequest asked = request(kDecode, {"ranks=folded", "samples=1", "schedule=sequential"});
  asked.schedules = true;
  const SearchResult r = found(asked);
  CHECK(r.exhaustive);
  CHECK(r.us.best < r.us.published);
  CHECK_FALSE(r.changes.empty());
}

TEST_CASE("what cannot be searched is refused by name, and somebody's file is left alone") {
  const TemporaryFolder folder;
  check_wrong_usage({"search", kChunk, "--over", "orbers"}, "orders");
  check_wrong_usage({"search", kChunk, "--num-sms", "16"}, "needs --over sms");
  check_wrong_usage({"search", kDecode, "--pieces", "2"}, "needs --over pieces");
  check_refused({"search", kChunk, "--over", "pieces"}, kChunk, "a chunk of training has none");
  check_refused({"search", kDecode, "--set", "workload.batch_size=32", "--over", "pieces", "--pieces", "64"}, kDecode,
                "64 are more than the");
  check_refused({"search", kChunk, "--set", "schedule=sequential"}, kChunk,
                "the schedule sequential has no plan whose order is searched");
  check_refused({"search", kPrefill, "--over", "sms", "--num-sms", "0"}, "--set", "num_sms must be from 1 to 131");
  check_refused({"search", kPrefill, "--over", "side"}, kPrefill, "there are no weight gradients");
  check_refused({"search", kChunk, "--set", "model=deepseek-v33"}, "--set", "did you mean 'deepseek-v3'?");
  const std::string plan = folder.write("plan.yaml", "compute: [somebody's]\n");
  check_wrong_usage({"search", kChunk, "-o", plan}, "-o");
  CHECK(read_text(plan) == "compute: [somebody's]\n");
}
