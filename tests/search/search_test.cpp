// Searches: the best plan of all, a bound that none goes below, and the same answer every time.
#include <doctest/doctest.h>

#include "base/file.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/search/search.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("search/search") {

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
  asked.piece_counts = {2, 64};
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

TEST_CASE("the best of prefill is the same, whatever plan the search starts from") {
  const TemporaryFolder folder;
  const char* const plans[] = {
      "compute: [attn 1, previous mlp 0, previous shared 0, mlp 1, shared 1, attn 0]\n"
      "communication: [previous combine 0, combine 1, dispatch 0, next dispatch 1]\n",
      "compute: [attn 0, mlp 0, shared 0, attn 1, mlp 1, shared 1]\n"
      "communication: [dispatch 0, combine 0, dispatch 1, combine 1]\n"};
  const SearchResult published = found(request(kPrefill));
  for (const char* plan : plans) {
    const SearchResult r = found(request(kPrefill, {"overlap=" + folder.write("plan.yaml", plan)}));
    CHECK(r.exhaustive);
    CHECK(r.us.best == doctest::Approx(published.us.best).epsilon(1e-6));
    CHECK(r.impossible == published.impossible);  // the plan itself is one of the orders, and is counted once
    CHECK(static_cast<double>(r.evaluated) + r.pruned + r.impossible == r.plans);
  }
}

TEST_CASE("what is chosen makes the whole step faster, of which every layer is only a part") {
  const TemporaryFolder folder;
  for (const std::string& scenario : {kPrefill, kDecode}) {
    CAPTURE(scenario);
    const Set set = {"ranks=folded", "samples=1",
                     "workload." + std::string(scenario == kDecode ? "batch_size=256" : "tokens=16384")};
    const SearchResult r = found(request(scenario, set));
    CHECK(r.run_ms.best < r.run_ms.published);
    Set with_plan = set;
    with_plan.push_back("overlap=" + folder.write("plan.yaml", r.text));
    const double step_us = to_us(run_scenario(load_setup(scenario, with_plan)).metrics.span);
    CHECK(step_us / 1e3 == doctest::Approx(r.run_ms.best).epsilon(1e-4));
  }
}

TEST_CASE("out of time a search says what it did not try, and keeps what it has") {
  SearchRequest asked = request(kDecode, {"ranks=folded", "samples=1", "workload.batch_size=256"});
  asked.seconds = 1e-6;
  const SearchResult r = found(asked);
  check_sound(r);
  CHECK_FALSE(r.exhaustive);
  CHECK(r.left_out == r.plans - 1);
  CHECK(r.bound_us == r.floor_us);
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
  check_refused({"search", kChunk, "--set", "schedule=sequential"}, kChunk,
                "the schedule sequential has no plan whose order is searched");
  check_refused({"search", kDecode, "--set", "routing={distribution: power_law, alpha: 0.5}"}, kDecode,
                "a search simulates one rank that stands for all: ranks folded does not go with unequal loads");
  check_refused({"search", kDecode, "--set", "model=llama-4-maverick", "--set", "parallelism.ep=8", "--set",
                 "hardware=h200", "--set", "kernels=sglang"},
                kDecode, "llama-4-maverick has layers without routed experts between those with them");
  const std::string both = folder.write(
      "both.yaml",
      "compute: [attn-0 0, attn-1 0, issue dispatch 0, attn-0 1, attn-1 1, issue dispatch 1, shared 0, "
      "shared 1, receive dispatch 0, receive dispatch 1, [mlp 0, mlp 1], issue combine 0, issue combine 1, "
      "receive combine 0, receive combine 1]\n");
  check_refused({"search", kDecode, "--set", "overlap=" + both}, both, "a bracket has entries of both micro-batches");
  check_refused({"search", kPrefill, "--over", "phase-sms", "--num-sms", "0"}, kPrefill,
                "--over phase-sms: 0 SMs; a transfer has from 1 to 131");
  check_refused({"search", kPrefill, "--over", "side"}, kPrefill, "there are no weight gradients");
  check_refused({"search", kChunk, "--set", "model=deepseek-v33"}, "--set", "did you mean 'deepseek-v3'?");
  const std::string plan = folder.write("plan.yaml", "compute: [somebody's]\n");
  check_wrong_usage({"search", kChunk, "-o", plan}, "-o");
  CHECK(read_text(plan) == "compute: [somebody's]\n");
}

}  // TEST_SUITE("search/search")
