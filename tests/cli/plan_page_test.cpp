// The page of a plan: the answer first, all that the terminal has, and what was searched within its limits.
#include <rapidjson/document.h>

#include <filesystem>

#include "base/file.hpp"
#include "experiments/cli/output/plan_output.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("cli/plan_page") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kPlan =
    "# Is </script> harmless?\n"
    "schema: 1\n"
    "model: deepseek-v3\n"
    "hardware: {h800: {usd_per_gpu_hour: 2}, h200: {usd_per_gpu_hour: 3}}\n"
    "traffic: {requests_per_s: 50, input: {mean: 3000}, output: {mean: 500}}\n"
    "limits: {ttft_ms: 3000, tpot_ms: 60}\n"
    "serving: [disaggregated]\n"
    "prefill: {ep: [32], tokens: [4096], comm_sms: [16]}\n"
    "decode: {ep: [32], batch_size: [8, 32, 64]}\n";

struct Planned {
  TemporaryFolder folder;
  Plan plan;
  KnownSteps known;
  Answer answer;
  std::vector<Sensitivity> sensitive;
  explicit Planned(const std::string& text)
      : plan(load_plan(folder.write("plan.yaml", text))),
        answer(solve(plan, known, 2)),
        sensitive(sensitivities(plan, answer, known, 2)) {}

  std::optional<Promises> promises;
  std::optional<Course> course;
  [[nodiscard]] PlanResult result() const { return {plan, answer, sensitive, promises, course}; }
  [[nodiscard]] std::string html() const {
    return to_html(plan_page(result()), {"<title>", "</title><data>", "</data>"});
  }
  [[nodiscard]] rapidjson::Document data() const {
    const std::string page = html();
    const std::size_t begin = page.find("<data>") + 6;
    return parsed(page.substr(begin, page.find("</data>", begin) - begin));
  }
};

// Several cases ask it.
const Planned& the_plan() {
  static const Planned planned(kPlan);
  return planned;
}

bool same_rows(const rapidjson::Value& table, const TextTable& expected) {
  const rapidjson::Value& rows = table["rows"];
  if (rows.Size() != expected.rows().size()) return false;
  for (rapidjson::SizeType row = 0; row < rows.Size(); ++row) {
    const rapidjson::Value& cells = rows[row]["cells"];
    for (rapidjson::SizeType i = 0; i < cells.Size(); ++i) {
      if (cells[i].GetString() != expected.rows()[row][i]) return false;
    }
  }
  return true;
}

std::string figure(const rapidjson::Document& data, const char* label) {
  const rapidjson::Value& sections = data["before"];
  for (const rapidjson::Value& each : sections[sections.Size() - 1]["figures"].GetArray()) {
    if (std::string(each["label"].GetString()) == label) return each["value"].GetString();
  }
  return "";
}

const rapidjson::Value& section(const rapidjson::Document& data, const std::string& title) {
  for (const rapidjson::Value& each : data["after"].GetArray()) {
    if (each["title"].GetString() == title) return each;
  }
  FAIL("no section " << title);
  return data;
}

}  // namespace

TEST_CASE("a plan's page begins with the answer: GPUs, units, cost, TTFT and TPOT") {
  const Planned& planned = the_plan();
  const Deployment& best = planned.answer.deployments.front();
  const rapidjson::Document data = planned.data();
  CHECK(figure(data, "GPUs") == fmt::format("{} {}", best.gpus, best.decode_choice.hardware));
  CHECK(figure(data, "decode").starts_with(std::to_string(best.decode.units)));
  CHECK(figure(data, "per million tokens") == fmt::format("{:.3f} USD", best.cost_per_million_tokens));
  CHECK(figure(data, "TTFT") == fmt::format("{:.0f} ms", best.ttft_ms));
  CHECK(figure(data, "TPOT") == fmt::format("{:.2f} ms", best.tpot_ms));
}

TEST_CASE("a plan's page has the terminal's tables and commands, cell by cell") {
  const Planned& planned = the_plan();
  const std::vector<Deployment>& deployments = planned.answer.deployments;
  const rapidjson::Document data = planned.data();
  CHECK(same_rows(data["before"][0]["tables"][0], sides_table(deployments.front())));
  CHECK(same_rows(data["before"][0]["tables"][1], memory_table(deployments.front())));
  CHECK(same_rows(section(data, "If an assumption is wrong")["tables"][0], sensitivity_table(planned.result())));
  const rapidjson::Value& others = section(data, "The others, and why not")["tables"][0];
  CHECK(others["rows"].Size() == deployments.size());  // a head, and all but the best
  const std::string terminal = plan_table(planned.result());
  for (const rapidjson::Value& each : section(data, "Commands")["commands"].GetArray()) {
    CHECK(terminal.find(each["text"].GetString()) != std::string::npos);
  }
}

TEST_CASE("a plan's plot has a front for each machine, the limit on TPOT, and the answer among its points") {
  const Planned& planned = the_plan();
  const rapidjson::Document data = planned.data();
  const rapidjson::Value& plot = data["plots"][0];
  CHECK(plot["front_per"] == "hardware");
  CHECK(plot["limits"][0]["metric"] == "tokens_per_s_per_user");
  CHECK(plot["limits"][0]["value"].GetDouble() == doctest::Approx(1000.0 / 60));
  CHECK(plot["limits"][1]["value"].GetDouble() == 60);
  const Deployment& best = planned.answer.deployments.front();
  const auto metric = [&](rapidjson::SizeType i) {
    return data["metrics"][i]["values"][plot["answer"].GetUint()].GetDouble();
  };
  CHECK(metric(0) == doctest::Approx(best.tokens_per_s_per_user));
  CHECK(metric(1) == doctest::Approx(best.tokens_per_s_per_gpu).epsilon(0.1));  // with whole units
  CHECK(data["metrics"][3]["name"] == "cost_per_million_tokens");
}

TEST_CASE("on one machine a plan's plot has one front, and without prices no cost") {
  const Planned planned(replaced(kPlan, "{h800: {usd_per_gpu_hour: 2}, h200: {usd_per_gpu_hour: 3}}", "{h800: {}}"));
  const rapidjson::Document data = planned.data();
  CHECK(data["plots"][0]["front_per"] == "");
  CHECK(data["metrics"].Size() == 3);
  CHECK(figure(data, "per million tokens").empty());
}

TEST_CASE("a plan of colocated serving has a page without a plot") {
  const Planned planned(replaced(kPlan, "[disaggregated]", "[colocated]"));
  const rapidjson::Document data = planned.data();
  CHECK(data["plots"].Empty());
  CHECK_FALSE(figure(data, "prefill and decode").empty());
  CHECK(same_rows(data["before"][0]["tables"][0], sides_table(planned.answer.deployments.front())));
}

TEST_CASE("where nothing is within the limits a plan's page says so, and has the nearest") {
  const Planned planned(replaced(kPlan, "tpot_ms: 60", "tpot_ms: 2"));
  REQUIRE(planned.answer.deployments.empty());
  const rapidjson::Document data = planned.data();
  CHECK(data["before"][0]["title"] == "No deployment is within the limits");
  CHECK(std::string(data["before"][0]["lines"][0].GetString()).starts_with("the nearest: TTFT"));
  CHECK(data["before"][1]["title"] == "The nearest");
  CHECK(figure(data, "TPOT") == fmt::format("{:.2f} ms", planned.answer.nearest->tpot_ms));
  CHECK_FALSE(data["plots"][0].HasMember("answer"));
}

TEST_CASE("no text of a plan ends its page's script") {
  const Planned& planned = the_plan();
  CHECK(planned.html().find("</script") == std::string::npos);
  CHECK(planned.data()["source"]["text"] == kPlan.c_str());
}

TEST_CASE("a plan's page is the same whatever the number of workers, and at most 2 MB") {
  const TemporaryFolder folder;
  const std::string plan = folder.write("plan.yaml", kPlan);
  std::vector<std::string> pages;
  for (const char* workers : {"1", "3"}) {
    const std::string page = folder / (std::string(workers) + ".html");
    const Outcome outcome = run_moeline({"plan", plan, "--no-sensitivity", "--html", page, "--workers", workers});
    if (outcome.err.find("a page of plots needs ECharts") != std::string::npos) {
      MESSAGE("skipped: " << outcome.err);
      return;
    }
    CHECK(outcome.exit_code == 0);
    pages.push_back(content_of(page));
  }
  CHECK(pages[0] == pages[1]);
  CHECK(pages[0].size() < 2'000'000);
}

}  // TEST_SUITE("cli/plan_page")
