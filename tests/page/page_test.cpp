// Pages of plots: what they hold is what the table has, and no text of a study can change what they are.
#include <rapidjson/document.h>

#include <cmath>
#include <filesystem>

#include "experiments/page/axes.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/variable.hpp"

TEST_SUITE("page/page") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Of names, a unit and a direction for each; of points, one that fits, one that does not, one that failed.
Page small_page() {
  Page page;
  page.title = "batch size & <EP>";
  page.axes = {{.label = "batch_size", .values = {"8", "16", "32"}, .numbers = {8, 16, 32}, .at = {0, 1, 2}}};
  page.metrics = {page_metric("tpot_ms", {10, 12.5, NAN}), page_metric("memory_gib", {70, 90, NAN})};
  page.failures = {"", "", "no room"};
  page.fits_memory = {true, false, true};
  page.plots = {LinePlot{"tpot_ms", "batch_size", ""}, ParetoPlot{"tpot_ms", "memory_gib"}};
  return page;
}

const PageTemplate kTemplate{"<title>", "</title><script>", "</script>"};

rapidjson::Document data_in(const std::string& html, const std::string& before, const std::string& after) {
  const std::size_t begin = html.find(before) + before.size();
  const std::string text = html.substr(begin, html.find(after, begin) - begin);
  rapidjson::Document document;
  document.Parse(text.c_str());
  REQUIRE_FALSE(document.HasParseError());
  return document;
}

rapidjson::Document data_of(const Page& page) { return data_in(to_html(page, kTemplate), "<script>", "</script>"); }

AxesOfSettings axes_of(const std::vector<std::string>& keys, const std::vector<std::vector<std::string>>& points) {
  std::vector<const std::vector<std::string>*> pointers;
  for (const std::vector<std::string>& point : points) pointers.push_back(&point);
  return axes_of_settings(keys, pointers);
}

bool is_log(const std::vector<double>& numbers) {
  Page page = small_page();
  page.axes[0].numbers = numbers;
  return data_of(page)["axes"][0]["log"].GetBool();
}

// A study of which one point does not fit memory, and one fails: 24 does not divide the experts.
struct Sweep {
  TemporaryFolder folder;
  std::string study =
      folder.write("study.yaml", "# Is </script> harmless?\nschema: 1\nscenario: " + std::string(MOELINE_SOURCE_DIR) +
                                     "/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml\n"
                                     "axes:\n"
                                     "  parallelism.ep: [8, 24, 128]\n"
                                     "  parallelism.dp: [8, 24, 128]\n"
                                     "zip: [\"parallelism.ep parallelism.dp\"]\n"
                                     "metrics: [tpot_ms, tokens_per_s_per_gpu, fits_memory]\n");
  std::string echarts = folder.write("echarts.js", "/* draws */");

  [[nodiscard]] Arguments call(const std::string& name, const Arguments& more = {}) const {
    Arguments arguments = {"sweep", study, "-o", folder / (name + ".sqlite"), "--html", folder / (name + ".html")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  [[nodiscard]] std::string page(const std::string& name, const Arguments& more = {}) const {
    const Variable set("MOELINE_ECHARTS", echarts);
    const Outcome outcome = run_moeline(call(name, more));
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return content_of(folder / (name + ".html"));
  }
  [[nodiscard]] bool wrote(const std::string& file) const { return std::filesystem::exists(folder / file); }
};

}  // namespace

TEST_CASE("keys that change together are one axis, and a key with one value is none") {
  const AxesOfSettings found = axes_of({"ep", "dp", "nodes", "layers", "kernels"}, {{"32", "32", "4", "61", "new"},
                                                                                    {"8", "8", "1", "61", "new"},
                                                                                    {"32", "32", "4", "61", "late"},
                                                                                    {"8", "8", "1", "61", "late"}});
  REQUIRE(found.axes.size() == 2);
  CHECK(found.axes[0].label == "ep / nodes");
  CHECK(found.axes[0].values == std::vector<std::string>{"8 / 1", "32 / 4"});
  CHECK(found.axes[0].numbers == std::vector<double>{8, 32});
  CHECK(found.axes[0].at == std::vector<std::size_t>{1, 0, 1, 0});
  CHECK(found.axes[1].values == std::vector<std::string>{"new", "late"});
  CHECK(found.axes[1].numbers.empty());
  CHECK(found.notes == std::vector<std::string>{"dp = ep", "layers = 61"});
}

TEST_CASE("what another axis determines is no axis, and said") {
  const AxesOfSettings found = axes_of({"ep", "redundant", "batch"}, {{"64", "0", "8"},
                                                                      {"128", "0", "8"},
                                                                      {"144", "32", "8"},
                                                                      {"64", "0", "16"},
                                                                      {"128", "0", "16"},
                                                                      {"144", "32", "16"}});
  REQUIRE(found.axes.size() == 2);
  CHECK(found.axes[1].label == "batch");
  CHECK(found.notes == std::vector<std::string>{"redundant follows ep: 0 at 64, 128; 32 at 144"});
}

TEST_CASE("axes that grow by factors are logarithmic") {
  CHECK(is_log({8, 16, 32}));
  CHECK(is_log({1, 2, 4, 6, 8, 16}));
  CHECK_FALSE(is_log({16, 24, 32}));
  CHECK_FALSE(is_log({0, 1, 10}));
  CHECK_FALSE(is_log({8, 16, 24}));
}

TEST_CASE("a page's data are the table's") {
  const rapidjson::Document data = data_of(small_page());
  CHECK(data["axes"][0]["values"][1] == "16");
  CHECK(data["metrics"][0]["better"] == "lower");
  CHECK(data["metrics"][0]["values"][1].GetDouble() == 12.5);
  CHECK(data["metrics"][0]["values"][2].IsNull());
  CHECK(data["points"]["fits_memory"][1].GetInt() == 0);
  REQUIRE(data["points"]["failures"].Size() == 1);
  CHECK(data["points"]["failures"][0]["point"].GetInt() == 2);
  CHECK(data["points"]["failures"][0]["why"] == "no room");
  CHECK(data["plots"][1]["kind"] == "pareto");
}

TEST_CASE("no text ends the page's script, and all arrive as they were") {
  const std::string text = "</script><script>alert('1')</script><!-- {{data}} \\ \" \u2028 \n &amp;";
  Page page = small_page();
  page.title = text;
  page.axes[0].values[0] = text;
  page.failures[2] = text;
  page.source = text;
  const std::string html = to_html(page, kTemplate);
  const std::string begin = "</title><script>";
  CHECK(html.find("</script") == html.size() - std::string("</script>").size());
  CHECK(html.find("<script") == html.find(begin) + std::string("</title>").size());
  const rapidjson::Document data = data_in(html, begin, "</script>");
  CHECK(data["title"] == text.c_str());
  CHECK(data["axes"][0]["values"][0] == text.c_str());
  CHECK(data["points"]["failures"][0]["why"] == text.c_str());
  CHECK(data["source"]["text"] == text.c_str());
}

TEST_CASE("a sweep's page is the same whatever the number of workers, and from a finished table") {
  const Sweep sweep;
  const std::string one = sweep.page("one", {"--workers", "1"});
  CHECK(sweep.page("three", {"--workers", "3"}) == one);
  CHECK(sweep.page("one", {"--resume"}) == one);
}

TEST_CASE("a sweep's page lists what failed, marks what does not fit, and shows users' speed against the machine's") {
  const Sweep sweep;
  const std::string html = sweep.page("page");
  CHECK(html.find("/* draws */") != std::string::npos);
  CHECK(html.find("{{") == std::string::npos);
  const rapidjson::Document data = data_in(html, "<script type=\"application/json\" id=\"data\">", "</script>");
  CHECK(data["title"] == "Is </script> harmless?");
  REQUIRE(data["axes"].Size() == 1);
  CHECK(data["axes"][0]["label"] == "parallelism.ep");
  CHECK(data["points"]["fits_memory"][0].GetInt() == 0);
  CHECK(data["points"]["fits_memory"][2].GetInt() == 1);
  REQUIRE(data["points"]["failures"].Size() == 1);
  CHECK(data["points"]["failures"][0]["point"].GetInt() == 1);
  CHECK(std::string(data["points"]["failures"][0]["why"].GetString()).find("24 does not") != std::string::npos);
  CHECK(data["plots"][0]["x"] == "tokens_per_s_per_user");
  CHECK(data["plots"][0]["y"] == "tokens_per_s_per_gpu");
  const double tpot_ms = data["metrics"][0]["values"][2].GetDouble();
  CHECK(data["metrics"][1]["values"][2].GetDouble() == doctest::Approx(1000 / tpot_ms));
}

TEST_CASE("without ECharts a page is refused before anything is simulated or written") {
  const Sweep sweep;
  const std::string absent = sweep.folder / "absent.js";
  const Variable set("MOELINE_ECHARTS", absent);
  check_refused(sweep.call("page"), absent, "a page of plots needs ECharts");
  CHECK_FALSE(sweep.wrote("page.sqlite"));
  CHECK_FALSE(sweep.wrote("page.html"));
}

TEST_CASE("a page that could not be written is refused before anything is simulated") {
  const Sweep sweep;
  const Variable set("MOELINE_ECHARTS", sweep.echarts);
  const std::string table = sweep.folder / "table.db";
  check_wrong_usage({"sweep", sweep.study, "-o", table, "--html", sweep.study}, "would overwrite an input");
  check_wrong_usage({"sweep", sweep.study, "-o", table, "--html", table}, "is the file of the table");
  const std::string nowhere = sweep.folder / "no/such/page.html";
  check_refused({"sweep", sweep.study, "-o", table, "--html", nowhere}, nowhere, "there is no folder for it");
  const Variable index("SLURM_ARRAY_TASK_ID", "0");
  const Variable count("SLURM_ARRAY_TASK_COUNT", "2");
  check_wrong_usage(sweep.call("page"), "with --merge it is whole");
  CHECK_FALSE(sweep.wrote("table.db"));
}

TEST_CASE("a page takes the place of one that moeline wrote") {
  const Sweep sweep;
  const std::string first = sweep.page("page");
  CHECK(first.find("<meta name=\"generator\" content=\"moeline\">") != std::string::npos);
  CHECK(sweep.page("page", {"--resume"}) == first);
}

TEST_CASE("a page may lie in the folder that one is in") {
  const Sweep sweep;
  const Variable set("MOELINE_ECHARTS", sweep.echarts);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(sweep.folder / "page.html").parent_path());
  const Outcome outcome = run_moeline({"sweep", sweep.study, "-o", "table.sqlite", "--html", "page.html"});
  std::filesystem::current_path(before);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(sweep.wrote("page.html"));
}

TEST_CASE("with the ECharts that the build installs, a page has everything that it needs") {
  const Sweep sweep;
  const Outcome outcome = run_moeline(sweep.call("page"));
  if (outcome.err.find("a page of plots needs ECharts") != std::string::npos) {
    MESSAGE("skipped: " << outcome.err);
    return;
  }
  CHECK(outcome.exit_code == 0);
  const std::string html = content_of(sweep.folder / "page.html");
  CHECK(html.find("Licensed to the Apache Software Foundation") != std::string::npos);
  CHECK(html.find("<script src") == std::string::npos);
}

}  // TEST_SUITE("page/page")
