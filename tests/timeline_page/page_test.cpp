// Pages of timelines: what they hold is what the timeline has, and no text can change what they are.
#include "experiments/timeline_page/page.hpp"

#include <rapidjson/document.h>

#include <algorithm>
#include <filesystem>

#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/resource_use.hpp"
#include "experiments/timeline_page/run_view.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/trace_text.hpp"
#include "timeline/kernel_spans.hpp"

TEST_SUITE("timeline_page/page") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr std::size_t kMostBytes = 2'000'000;

rapidjson::Document data_in(const std::string& html) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t at = html.find(begin);
  REQUIRE(at != std::string::npos);
  const std::size_t from = at + begin.size();
  rapidjson::Document document;
  document.Parse(html.substr(from, html.find("</script>", from) - from).c_str());
  REQUIRE_FALSE(document.HasParseError());
  return document;
}

std::string page_of(Arguments call) {
  const TemporaryFolder folder;
  const std::string file = folder / "page.html";
  call.insert(call.end(), {"--html", file});
  const Outcome outcome = run_moeline(call);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return content_of(file);
}

std::string scenario(const std::string& folder) {
  return source("experiments/studies/" + folder + "/scenario.yaml").string();
}

// Of a list of differences.
std::vector<std::int64_t> summed(const rapidjson::Value& differences) {
  std::vector<std::int64_t> numbers;
  for (const auto& difference : differences.GetArray()) {
    numbers.push_back((numbers.empty() ? 0 : numbers.back()) + difference.GetInt64());
  }
  return numbers;
}

Run simulated(const std::string& file, const std::vector<std::string>& assignments = {}) {
  return run_scenario(load_setup(file, assignments), {.record_changes = true});
}

std::int64_t rounded_ns(Time time) { return (time.count() + 500) / 1000; }

void check_page(const std::string& html) {
  CHECK(html.size() < kMostBytes);
  for (const char* loaded : {"{{", "src=", "@import"}) CHECK(html.find(loaded) == std::string::npos);
}

TimelinePage small_page() {
  TimelineView view;
  view.name = "a";
  view.lanes = {{0, "compute"}};
  view.ranks = {0};
  view.kinds = {{"gemm", "gemm", "m=1", 132, false}};
  view.phases = {{"attn", 0, 0, ""}};
  view.bars = {{.phase = 0, .start = from_us(1), .end = from_us(3), .alone = from_us(2)}};
  TimelinePage page;
  page.title = "small";
  page.views = {view};
  return page;
}

}  // namespace

TEST_CASE("every kernel of rank 0 is a bar of its page, at its time, as slow as it was") {
  const Run run = simulated(scenario("prefill_deepseek_v3_h800_ep32"), {"layers=4"});
  const TimelineView view = view_of(run, explain(run), {});
  const std::vector<KernelSpan> kernels = kernel_spans(run.program.graph, run.timeline);
  std::size_t bars = 0;
  for (const Bar& bar : view.bars) {
    if (view.kinds[bar.kind].task_class == "host") continue;
    ++bars;
    const auto same = std::find_if(kernels.begin(), kernels.end(), [&](const KernelSpan& k) {
      return k.start == bar.start && k.end == bar.end && k.name == view.kinds[bar.kind].name;
    });
    REQUIRE(same != kernels.end());
    CHECK(bar.end - bar.start - bar.alone == same->contention);
    CHECK(view.phases[static_cast<std::size_t>(bar.phase)].name == same->phase);
  }
  CHECK(bars == kernels.size());
}

TEST_CASE("what a bar was released by happened before it, by its delay and its wait for SMs") {
  const Run run = simulated(scenario("train_chunk_deepseek_v3_h800"), {"layers=2", "routing={distribution: balanced}"});
  const TimelineView view = view_of(run, explain(run), {});
  std::size_t released = 0;
  for (const Bar& bar : view.bars) {
    if (bar.released.of != BarEvent::Of::start && bar.released.of != BarEvent::Of::end) continue;
    const Bar& before = view.bars[bar.released.index];
    const Time at = bar.released.of == BarEvent::Of::start ? before.start : before.end;
    CHECK(bar.start - bar.sms_wait - bar.delay == at);
    ++released;
  }
  CHECK(released > view.bars.size() / 2);
  for (const Bar& bar : view.bars) {
    if (bar.held.of == BarEvent::Of::end) CHECK(view.bars[bar.held.index].end == bar.end);
    if (bar.held.of == BarEvent::Of::start) CHECK(view.bars[bar.held.index].start == bar.end);
  }
}

TEST_CASE("of one rank the path on its page is all that the end waited for") {
  const Run run = simulated(scenario("decode_deepseek_v3_h800_ep128"), {"layers=4"});
  const Explanation explanation = explain(run);
  Time shown{};
  for (const PathStretch& stretch : view_of(run, explanation, {}).path) shown += stretch.end - stretch.start;
  CHECK(shown == explanation.span);
}

TEST_CASE("slots of a whole step are the run's, and each follows what released it, across ranks, too") {
  for (const char* level : {"level=operator", "level=phase"}) {
    CAPTURE(level);
    const Run run = simulated(scenario("train_deepseek_v3_2048_h800"), {"workload.global_batch_size=4096", level});
    const TimelineView view = view_of(run, explain(run), {});
    std::size_t slots = 0;
    bool from_another_rank = false;
    for (const Bar& bar : view.bars) {
      if (view.lanes[bar.lane].name != "slots" || bar.start >= run.metrics.span) continue;
      slots += view.kinds[bar.kind].task_class == view.phases[static_cast<std::size_t>(bar.phase)].name ? 1 : 0;
      if (bar.released.of == BarEvent::Of::nothing) continue;
      const Bar& before = view.bars[bar.released.index];
      CHECK(before.start < bar.start);
      from_another_rank = from_another_rank || before.lane != bar.lane;
    }
    CHECK(slots == run.phases.size());
    CHECK(from_another_rank);
  }
}

TEST_CASE("what is taken of SMs and links, summed over time, is what the tasks took") {
  const Run run = simulated(scenario("prefill_deepseek_v3_h800_ep32"), {"layers=4"});
  std::map<std::string, double> worked;  // a link's amount is its rate times the time alone
  for (TaskId task = 0; task < run.program.graph.size(); ++task) {
    for (const Usage& usage : run.program.graph.usages(task)) {
      worked[run.program.graph.resources()[usage.link].name] += usage.rate * to_us(run.program.graph.task(task).solo);
    }
  }
  for (const std::size_t most_steps : {std::size_t{1'000'000}, std::size_t{100}}) {
    for (ResourceUse use : resource_uses(run.program.graph, run.timeline, {0})) {
      thin(use, run.timeline.makespan, most_steps);
      CHECK(use.taken.size() <= most_steps);
      double area = 0;
      for (std::size_t i = 0; i < use.taken.size(); ++i) {
        const Time until = i + 1 < use.taken.size() ? use.taken[i + 1].first : run.timeline.makespan;
        area += use.taken[i].second * to_us(until - use.taken[i].first);
        CHECK(use.taken[i].second < use.capacity * 1.0001);
      }
      if (use.name != "SMs") CHECK(area == doctest::Approx(worked.at(use.name)).epsilon(0.01));
    }
  }
}

TEST_CASE("inside a close-up the use of a resource keeps its steps") {
  ResourceUse use{.rank = 0, .name = "SMs", .capacity = 10, .taken = {}};
  for (int i = 0; i < 1000; ++i) use.taken.emplace_back(from_us(i), i % 2);
  const Interval exact{from_us(500), from_us(520)};
  thin(use, from_us(1000), 10, exact);
  CHECK(use.taken.size() < 30);
  for (int i = 500; i < 520; ++i) {
    const std::pair<Time, double> step(from_us(i), i % 2);
    CHECK(std::find(use.taken.begin(), use.taken.end(), step) != use.taken.end());
  }
}

TEST_CASE("a page's data are its views, to the ns") {
  const Run run = simulated(scenario("decode_deepseek_v3_h800_ep128"), {"layers=4"});
  TimelinePage page;
  page.views.push_back(view_of(run, explain(run), {}));
  const std::vector<Bar>& bars = page.views.front().bars;
  const rapidjson::Document data = data_in(to_html(page, load_timeline_template()));
  const auto& packed = data["views"][0]["bars"];
  const std::vector<std::int64_t> starts = summed(packed["start"]);
  const std::vector<std::int64_t> phases = summed(packed["phase"]);
  REQUIRE(starts.size() == bars.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const auto at = static_cast<rapidjson::SizeType>(i);
    CHECK(starts[i] == rounded_ns(bars[i].start));
    CHECK(starts[i] + packed["length"][at].GetInt64() == rounded_ns(bars[i].end));
    CHECK(phases[i] == bars[i].phase);
    if (bars[i].released.of == BarEvent::Of::end) {
      CHECK(packed["released"][at].GetInt64() == 2 * (static_cast<std::int64_t>(i) - bars[i].released.index));
    }
  }
}

TEST_CASE("no text ends a timeline page's script, and all arrive as they were") {
  const std::string text = "</script><script>alert('1')</script><!-- {{data}} \\ \" \u2028 \n &amp;";
  TimelinePage page = small_page();
  page.title = text;
  page.summary = {text};
  page.views[0].name = text;
  page.views[0].kinds[0].name = text;
  page.views[0].lanes[0].name = text;
  page.tables = {{text, "l", {text}, {{text}}}};
  page.sources = {{text, text}};
  const std::string html = to_html(page, load_timeline_template());
  CHECK(html.find("<script>alert") == std::string::npos);
  const rapidjson::Document data = data_in(html);
  CHECK(data["title"] == text.c_str());
  CHECK(data["summary"][0] == text.c_str());
  CHECK(data["views"][0]["name"] == text.c_str());
  CHECK(data["views"][0]["texts"][0] == text.c_str());
  CHECK(data["views"][0]["lanes"][0][1] == text.c_str());
  CHECK(data["tables"][0]["rows"][0][0] == text.c_str());
  CHECK(data["sources"][0]["text"] == text.c_str());
}

TEST_CASE("pages of all shipped scenarios are below 2 MB, load nothing, and are the same every time") {
  // Whole steps and all ranks once, as they are; what is simulated twice has fewer layers or micro-batches.
  const std::vector<std::pair<const char*, Arguments>> shipped = {
      {"decode_deepseek_v3_h800_ep128", {}},
      {"prefill_deepseek_v3_h800_ep32", {}},
      {"skewed_decode_deepseek_v3_h800_ep144", {"--set", "layers=4"}},
      {"train_chunk_deepseek_v3_h800", {}},
      {"train_deepseek_v3_2048_h800", {"--set", "workload.global_batch_size=4096"}},
      {"pipelines_deepseek_v3_2048_h800", {"--set", "workload.global_batch_size=4096"}}};
  for (const auto& [name, smaller] : shipped) {
    MOELINE_CAPTURE_BINDING(name);
    if (kSanitized && !smaller.empty()) continue;  // minutes each
    const Arguments whole = {"explain", scenario(name)};
    const std::string html = page_of(whole);
    check_page(html);
    Arguments few = whole;
    few.insert(few.end(), smaller.begin(), smaller.end());
    CHECK(page_of(few) == (smaller.empty() ? html : page_of(few)));
  }
}

TEST_CASE("with more kernels than fit, a page shows the first ones and says so") {
  const std::string html = page_of({"explain", scenario("train_chunk_deepseek_v3_h800"), "--ranks", "all"});
  CHECK(html.size() < kMostBytes);
  const rapidjson::Document data = data_in(html);
  CHECK(data["views"][0]["bars"]["start"].Size() == kMostBars);
  CHECK(std::string(data["views"][0]["left_out"][0].GetString()).starts_with("The first "));
}

TEST_CASE("a page has the ranks that it is asked for") {
  const std::string chunk = scenario("train_chunk_deepseek_v3_h800");
  const rapidjson::Document data = data_in(page_of({"explain", chunk, "--ranks", "3,5"}));
  REQUIRE(data["views"][0]["ranks"].Size() == 2);
  CHECK(data["views"][0]["ranks"][0].GetInt() == 3);
  CHECK(data["views"][0]["ranks"][1].GetInt() == 5);
  const TemporaryFolder folder;
  check_refused({"explain", chunk, "--html", folder / "page.html", "--ranks", "64"}, "--ranks: '64' is not among ",
                "0 to 63");
  CHECK_FALSE(std::filesystem::exists(folder / "page.html"));
}

TEST_CASE("the page of a measured trace has every GPU event at its time, and why it started") {
  if (!present(training_trace())) return;
  const std::string trace = training_trace().string();
  for (const char* command : {"analyze", "explain"}) {
    const rapidjson::Document data = data_in(page_of({command, trace}));
    const auto& bars = data["views"][0]["bars"];
    CHECK(bars["start"].Size() == 983);
    std::size_t released = 0;
    for (const auto& code : bars["released"].GetArray()) released += code.GetInt64() != 0 ? 1 : 0;
    CHECK(released > 970);
  }
}

TEST_CASE("the page of a comparison has both sides, from the first phase compared, and each phase's difference") {
  const std::string chunk = scenario("train_chunk_deepseek_v3_h800");
  const TemporaryFolder folder;
  const std::string trace = folder / "trace.json";
  REQUIRE(run_moeline({"simulate", chunk, "--set", "samples=1", "--trace", trace}).exit_code == 0);
  const rapidjson::Document data =
      data_in(page_of({"compare", chunk, trace, "--set", "hardware.nic_GBps=20", "--layers", "1,2"}));
  REQUIRE(data["views"].Size() == 2);
  for (const auto& view : data["views"].GetArray()) {
    CHECK(view["start"].GetInt64() == view["window"]["from"].GetInt64());
    const auto with_note = std::count_if(view["phases"].Begin(), view["phases"].End(),
                                         [](const rapidjson::Value& phase) { return phase.Size() == 4; });
    CHECK(with_note == 20);  // ten phases of each of two layers
  }
  CHECK(std::string(data["tables"][0]["title"].GetString()).starts_with("a - b by cause"));
}

TEST_CASE("a page or picture that could not be written is refused before anything is simulated") {
  const ValidScenario valid;
  const std::string nowhere = valid.folder / "no/such/page.html";
  const std::string mine = valid.folder.write("mine.html", "<!DOCTYPE html>\n<p>my notes\n");
  const std::string trace =
      valid.folder.write("a.json", trace_of(gpu_range("attn", "0", "50") + "," + kernel("0", "10")));
  const std::vector<Arguments> calls = {
      {"simulate", valid.file, "--html"},     {"simulate", valid.file, "--svg"},
      {"explain", valid.file, "--html"},      {"explain", trace, "--html"},
      {"analyze", trace, "--html"},           {"compare", valid.file, trace, "--html"},
      {"compare", valid.file, trace, "--svg"}};
  const auto with = [](Arguments call, const std::string& file) {
    call.push_back(file);
    return call;
  };
  for (const Arguments& call : calls) {
    check_refused(with(call, nowhere), nowhere, "there is no folder for it");
    check_wrong_usage(with(call, mine), "that moeline wrote; --force writes over it");
    check_wrong_usage(with(call, call[1]), "would overwrite an input");
    check_wrong_usage(with(call, ""), "must not be empty");
  }
  CHECK(content_of(mine).ends_with("my notes\n"));
  check_wrong_usage({"simulate", valid.file, "--ranks", "0"}, "--ranks requires --html");
  check_wrong_usage({"explain", trace, "--html", valid.folder / "a.html", "--ranks", "0"},
                    "--ranks: of a scenario alone");
}

}  // TEST_SUITE("timeline_page/page")
