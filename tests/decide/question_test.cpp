// What is asked: axes, settings and their parts.
#include <doctest/doctest.h>

#include "experiments/decide/axis.hpp"
#include "experiments/decide/setting.hpp"
#include "experiments/decide/sure.hpp"
#include "experiments/decide/why.hpp"
#include "tests/support/refusal.hpp"

TEST_SUITE("decide/question") {

using namespace moeline;
using namespace moeline::testing;
using Texts = std::vector<std::string>;

namespace {

const std::string kScenario =
    "schema: 1\nmodel: deepseek-v3\nhardware: h200\nparallelism: {tp: 8}\n"
    "workload: {phase: decode, batch_size: 8, kv_len: 4096}\n";

DecideSetting changed_by(const Texts& assignments) { return {"", "s.yaml", kScenario, assignments}; }

std::optional<DifferenceKind> kind_of(const Texts& a, const Texts& b) {
  return errors_between(changed_by(a), changed_by(b)).kind;
}

}  // namespace

TEST_CASE("whole numbers double from A to B, or lie equally far apart where they are near each other") {
  CHECK(read_axis("n=8..256").values == Texts{"8", "16", "32", "64", "128", "256"});
  CHECK(read_axis("n=3..20").values == Texts{"3", "6", "12", "20"});
  CHECK(read_axis("n=100..180").values == Texts{"100", "110", "120", "130", "140", "150", "160", "170", "180"});
  CHECK(read_axis("n=0..4").values == Texts{"0", "1", "2", "3", "4"});
  CHECK(read_axis("a=0.5..0.9").values.size() == 9);
  CHECK(read_axis("a.b=[1, 10, 3]").kind == DecideAxis::Kind::words);
  CHECK(read_axis("a.b=[1, 3, 10]").kind == DecideAxis::Kind::whole);
}

TEST_CASE("what is no axis is refused with its text") {
  for (const char* text : {"n", "=1..2", "n=1", "n=2..1", "n=1..", "n=a..b", "n=1..inf", "n=[]", "n=[1, 1]", "n=[1"}) {
    CAPTURE(text);
    CHECK_FALSE(refusal_of([&] { (void)read_axis(text); }).empty());
  }
}

TEST_CASE("blanks part assignments, but not in brackets and quotes") {
  CHECK(assignments_in("parallelism={tp: 8, ep: 8} comm.num_sms=24") ==
        Texts{"parallelism={tp: 8, ep: 8}", "comm.num_sms=24"});
  CHECK(assignments_in("stages='Ett|tmL' launch=[attn, moe_router]") ==
        Texts{"stages='Ett|tmL'", "launch=[attn, moe_router]"});
  check_refused_with("does not close", [] { (void)assignments_in("parallelism={tp: 8"); });
  check_refused_with("'x' in 'a=1 x' is no key=value", [] { (void)assignments_in("a=1 x"); });
  check_refused_with("is empty", [] { (void)assignments_in(" "); });
}

TEST_CASE("parts of both sides sum to the difference, and say what is saved and paid") {
  const std::vector<PartDifference> parts =
      differences({{"GEMMs", 100}, {"attention", 50}}, {{"GEMMs", 60}, {"attention", 50}, {"combine", 12}});
  double sum = 0;
  for (const PartDifference& part : parts) sum += part.us();
  CHECK(sum == doctest::Approx(122 - 150));
  CHECK(parts.front().what == "GEMMs");
  CHECK(saves_and_pays(parts) == "saves 40.0 us of GEMMs, pays 12.0 us of combine");
  CHECK(saves_and_pays(differences({{"a", 1}}, {{"a", 1}})) == "takes as long in every part");
}

TEST_CASE("two settings differ in what they assign differently") {
  CHECK(kind_of({"parallelism={tp: 8}"}, {"parallelism={ep: 8}"}) == DifferenceKind::parallelism);
  CHECK(kind_of({"parallelism={tp: 8}"}, {"parallelism={ep: 8}", "comm.mode=normal"}) == DifferenceKind::parallelism);
  CHECK(kind_of({"precision.kv_cache=bf16"}, {"precision.kv_cache=fp8"}) == DifferenceKind::precision);
  CHECK_FALSE(kind_of({"precision.kv_cache=bf16"}, {"parallelism={ep: 8}"}));
  CHECK_FALSE(kind_of({"hardware=b200"}, {"hardware=h200"}));
}

TEST_CASE("a kind of which fewer than three pairs were published is as sure as all of them") {
  CHECK_FALSE(kind_of({"launch=graph"}, {"launch=stream"}));
  CHECK(errors_between(changed_by({"launch=graph"}), changed_by({"launch=stream"})).pairs ==
        pair_errors().back().pairs);
}

}  // TEST_SUITE("decide/question")
