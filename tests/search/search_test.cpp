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
  CHECK(r.evaluated + r.pruned + r.impossible == 270);
  CHECK(r.faster >= 1);
  CHECK(r.us.best < r.us.published);
}

TEST_CASE(
    "the plan that is written takes in simulate what the search says, with the SMs and the side set that it found") {
  const TemporaryFolder folder;
  SearchRequest asked = request(kChunk);
  asked.num_sms = {16, 20};
  asked.sides = true;
  const SearchResult r = found(asked);
  CHECK(r.exhaustive);
  CHECK(r.plans == 270 * 2 * 4);
  const std::string file = folder.write("plan.yaml", r.text);
  Set set = kOneRank;
  set.push_back("overlap=" + file);
  set.push_back("comm.num_sms=" + std::to_string(r.num_sms));
  CHECK(layer_us(run_scenario(load_setup(kChunk, set))) == doctest::Approx(r.us.best).epsilon(1e-9));
}

TEST_CASE(
    "prefill's orders are all tried, and decode's published one is proven best where its compute stream never waits") {
  const SearchResult prefill = found(request(kPrefill));
  check_sound(prefill);
  CHECK(prefill.exhaustive);
  const SearchResult decode = found(request(kDecode));
  check_sound(decode);
  CHECK(decode.proven);
  CHECK_FALSE(decode.exhaustive);
  CHECK(decode.us.best == doctest::Approx(decode.bound_us).epsilon(1e-4));
}

TEST_CASE("a walk finds the same with any number of threads, and something better where tokens travel longer") {
  SearchRequest asked = request(kDecode, {"ranks=folded", "samples=1", "workload.batch_size=256"});
  asked.most = 40;
  const SearchResult two = found(asked);
  asked.workers = 1;
  const SearchResult one = found(asked);
  check_sound(two);
  CHECK_FALSE(two.proven);
  CHECK(two.us.best < two.us.published);
  CHECK(one.us.best == two.us.best);
  CHECK(one.text == two.text);
}

TEST_CASE("what cannot be searched is refused by name, and somebody's file is left alone") {
  const TemporaryFolder folder;
  check_wrong_usage({"search", kChunk, "--over", "pieces"}, "pieces");
  check_wrong_usage({"search", kChunk, "--num-sms", "16"}, "needs --over sms");
  check_refused({"search", kChunk, "--set", "schedule=sequential"}, kChunk,
                "the schedule sequential has no plan whose order is searched");
  check_refused({"search", kDecode, "--set", "schedule=single-batch"}, kDecode, "has no plan whose order is searched");
  check_refused({"search", kDecode, "--set", "comm.num_sms=4"}, kDecode, "comm.num_sms: a combine beside");
  const std::string cut =
      folder.write("cut.yaml", content_of(source("schedules/prefill-two-batch.yaml")) + "pieces: 2\n");
  check_refused({"search", kPrefill, "--set", "overlap=" + cut}, cut, "has pieces, whose order is not searched");
  check_refused({"search", kPrefill, "--over", "side"}, kPrefill, "there are no weight gradients");
  check_refused({"search", kChunk, "--set", "model=deepseek-v33"}, "--set", "did you mean 'deepseek-v3'?");
  const std::string plan = folder.write("plan.yaml", "compute: [somebody's]\n");
  check_wrong_usage({"search", kChunk, "-o", plan}, "-o");
  CHECK(read_text(plan) == "compute: [somebody's]\n");
}
