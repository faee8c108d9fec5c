// A plan's answer served request by request: it is about what the plan said, and worse where units are taken away.
#include "experiments/plan/confirm.hpp"

#include <doctest/doctest.h>

#include "experiments/plan/course.hpp"
#include "experiments/plan/solve.hpp"
#include "tests/support/cli.hpp"
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
  KnownSteps known;                     // both plans ask for many of the same steps
  for (const std::string schedules : {"", "two_batch: [false], "}) {
    TemporaryFolder folder;
    const std::string text =
        "schema: 1\nmodel: deepseek-v3\nhardware: {h200: {kernels: sglang}}\n"
        "traffic: {requests_per_s: 20, input: {mean: 2000, spread: 800}, output: {mean: 300, spread: 150}}\n"
        "limits: {ttft_ms: 3000, tpot_ms: 80}\nserving: [colocated]\ndecode: {ep: [16], " + balanced + "}\n";
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
