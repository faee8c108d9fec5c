// A plan's answer served request by request: it is about what the plan said, and worse where units are taken away.
#include "experiments/plan/promises.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "experiments/plan/course.hpp"
#include "experiments/plan/solve.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("plan/confirm") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kPlan =
    "schema: 1\nmodel: deepseek-v3\nhardware: {h800: {kernels: deepseek-2025-02}}\n"
    "traffic: {requests_per_s: 40, input: {mean: 2000, spread: 800}, output: {mean: 300, spread: 150}}\n"
    "limits: {ttft_ms: 4000, tpot_ms: 60}\nserving: [disaggregated]\n"
    "prefill: {ep: [32], tokens: [4096], comm_sms: [16]}\ndecode: {ep: [32], batch_size: [32, 64]}\n";

struct Planned {
  TemporaryFolder folder;
  Plan plan = load_plan(folder.write("plan.yaml", kPlan));
  KnownSteps known;
  Answer answer = solve(plan, known, 2);
};

}  // namespace

TEST_CASE("requests one by one get about what the plan said, within its limits") {
  const Planned planned;
  REQUIRE(!planned.answer.deployments.empty());
  const Deployment& best = planned.answer.deployments.front();
  const auto confirmed = confirm(planned.plan, best);
  CHECK(confirmed.tpot_ms < planned.plan.limits.tpot_ms);
  CHECK(confirmed.ttft_ms < planned.plan.limits.ttft_ms);
  CHECK(confirmed.tpot_ms < 1.1 * best.tpot_ms);
  CHECK(confirmed.measures.where.transfer > 1);
  // Little's law, with the rate of the plan.
  const ServeMeasures& m = confirmed.measures;
  CHECK(m.mean_running + m.mean_waiting == doctest::Approx(40 * m.steady.total_ms.mean / 1e3).epsilon(0.05));
}

TEST_CASE("fewer units than the plan has: requests wait") {
  const Planned planned;
  Deployment fewer = planned.answer.deployments.front();
  const double as_planned = confirm(planned.plan, fewer).ttft_ms;
  fewer.decode_choice.batch_size = 2;
  CHECK(confirm(planned.plan, fewer).ttft_ms > 2 * as_planned);
}

TEST_CASE("a colocated answer: prompts and answers take turns, and both keep about what the plan said" *
          doctest::skip(kSanitized)) {  // a minute and a half there
  const std::string balanced = "set: [routing.distribution=balanced]";
  KnownSteps known;  // both plans ask for many of the same steps
  for (const std::string schedules : {"", "two_batch: [false], "}) {
    TemporaryFolder folder;
    const std::string text =
        "schema: 1\nmodel: deepseek-v3\nhardware: {h200: {kernels: sglang}}\n"
        "traffic: {requests_per_s: 20, input: {mean: 2000, spread: 800}, output: {mean: 300, spread: 150}}\n"
        "limits: {ttft_ms: 3000, tpot_ms: 80}\nserving: [colocated]\ndecode: {ep: [16], " +
        balanced + "}\n";
    const Plan plan = load_plan(folder.write("plan.yaml", text + "prefill: {" + schedules + balanced + "}\n"));
    const Answer answer = solve(plan, known, 2);
    REQUIRE(!answer.deployments.empty());
    const Deployment& best = answer.deployments.front();
    REQUIRE(best.colocated);
    const Confirmation confirmed = confirm(plan, best);
    CHECK(confirmed.tpot_ms < plan.limits.tpot_ms);
    CHECK(confirmed.ttft_ms < plan.limits.ttft_ms);
    CHECK(confirmed.measures.where.transfer == 0);
    CHECK(confirmed.measures.prompt_share > 0);
  }
}

TEST_CASE("what is confirmed is what `phase: serve` says of the same deployment" *
          doctest::skip(kSanitized)) {  // four minutes there
  TemporaryFolder folder;
  const std::string plan_text =
      "schema: 1\nmodel: gpt-oss-120b\nhardware: {h200: {}}\n"
      "traffic: {requests_per_s: 20, input: {mean: 2000, spread: 800}, output: {mean: 300, spread: 150}}\n"
      "limits: {ttft_ms: 1000, tpot_ms: 40}\nserving: [colocated]\n"
      "prefill: {ep: [4], tp: [1], tokens: [2048], two_batch: [false]}\ndecode: {ep: [4], tp: [1], two_batch: "
      "[false]}\n";
  const Plan plan = load_plan(folder.write("plan.yaml", plan_text));
  KnownSteps known;
  const Answer answer = solve(plan, known, 2);
  REQUIRE(!answer.deployments.empty());
  const Deployment& best = answer.deployments.front();
  const Confirmation confirmed = confirm(plan, best);
  const DecodeChoice& decode = best.decode_choice;
  const std::string scenario = fmt::format(
      "schema: 1\nmodel: gpt-oss-120b\nhardware: h200\nschedule: sequential\nparallelism: {{ep: 4, dp: 4}}\n"
      "ranks: folded\nworkload: {{phase: serve, rate: 20, requests: {}, prompts: mixed, replicas: {}, tokens: {}, "
      "batch_size: {}, input_len: 2000, input_len_spread: 800, output_len: 300, output_len_spread: 150}}\n",
      10'000, best.decode.units, best.prefill_choice.tokens + decode.batch_size, decode.batch_size);
  const rapidjson::Document served = json_of({"simulate", folder.write("serve.yaml", scenario), "--format", "json"});
  const auto& steady = served["steady"];
  const Quantiles &ttft = confirmed.measures.steady.ttft_ms, &tpot = confirmed.measures.steady.tpot_ms;
  CHECK(ttft.p50 ==
        doctest::Approx(steady["ttft_ms"]["p50"].GetDouble()).epsilon(0.1));  // other draws of the same load
  CHECK(tpot.mean == doctest::Approx(steady["tpot_ms"]["mean"].GetDouble()).epsilon(0.1));
}

TEST_CASE("a deployment that breaks a limit when served is followed by one that does not, or exit code 1") {
  Planned planned;
  Deployment best = planned.answer.deployments.front();
  Deployment narrow = best;
  narrow.decode_choice.batch_size = 2;  // as if the search had been wrong
  narrow.gpus = 1;
  const Promises promises = keep_promises(planned.plan, {narrow, best});
  REQUIRE(promises.kept);
  CHECK(promises.tried.size() > 1);
  CHECK(!keeps(promises.tried.front().confirmation, planned.plan.limits));
  CHECK(keeps(promises.last().confirmation, planned.plan.limits));
  std::vector<Deployment> deployments = {narrow, best};
  put_first(promises, deployments);
  CHECK(deployments.front().ttft_ms == promises.last().confirmation.ttft_ms);
  CHECK(deployments[1].loses.starts_with("served: TTFT"));
  planned.plan.limits.tpot_ms = 0.1;
  const Promises broken = keep_promises(planned.plan, {best});
  CHECK(!broken.kept);
  CHECK(broken.tried.size() == kMostTried);
  CHECK(broken.last().deployment.gpus > best.gpus);
}

TEST_CASE("a deployment of more units has their price and their utilization") {
  const Planned planned;
  const Deployment& best = planned.answer.deployments.front();
  const Deployment twice = with_units(best, 2 * best.prefill.units, 2 * best.decode.units);
  CHECK(twice.gpus == 2 * best.gpus);
  CHECK(twice.prefill.gpus == 2 * best.prefill.gpus);
  CHECK(twice.decode.utilization == doctest::Approx(best.decode.utilization / 2));
  CHECK(twice.tokens_per_s_per_gpu == doctest::Approx(best.tokens_per_s_per_gpu / 2));
}

TEST_CASE("along a day each part takes as many of the plan's units as its load, and none is searched anew") {
  TemporaryFolder folder;
  const std::string text = replaced(kPlan, "requests_per_s: 40", "requests_per_s: 40, course: [0.5, 1, 16, 1]");
  const Plan plan = load_plan(folder.write("plan.yaml", text));
  KnownSteps known;
  const Deployment best = solve(plan, known, 2).deployments.front();
  const Course course = along_the_day(plan, best, known, 2);
  REQUIRE(course.parts.size() == 4);
  CHECK(course.parts[1].gpus == best.gpus);
  CHECK(course.parts[3].gpus == best.gpus);
  CHECK(course.parts[0].gpus <= best.gpus);
  CHECK(course.parts[2].gpus > 2 * best.gpus);
  CHECK(course.most_gpus == course.parts[2].gpus);
  double sum = 0;
  for (const CoursePart& part : course.parts) sum += part.gpus;
  CHECK(course.mean_gpus == doctest::Approx(sum / 4));
  for (const CoursePart& part : course.parts) {
    CHECK(part.gpus == part.prefill_units * best.prefill_choice.gpus() + part.decode_units * best.decode_choice.gpus());
  }
}

TEST_CASE("a course of a day is a list of loads, and anything else is refused at its line") {
  TemporaryFolder folder;
  for (const char* course : {"[1]", "[1, 0]", "1", "[1, x]"}) {
    const std::string text =
        replaced(kPlan, "requests_per_s: 40", std::string("requests_per_s: 40, course: ") + course);
    const std::string file = folder.write("plan.yaml", text);
    check_refused({"plan", file}, file + ":", "course");
  }
}

}  // TEST_SUITE("plan/confirm")
