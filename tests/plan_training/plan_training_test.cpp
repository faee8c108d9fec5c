// The fastest layouts of a training job: what is searched, what fits, what is confirmed, and what is said of it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "experiments/memory/lasting_memory.hpp"
#include "experiments/plan_training/megatron_flags.hpp"
#include "experiments/plan_training/megatron_layout.hpp"
#include "experiments/plan_training/search_layouts.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/slot_level.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/json.hpp"
#include "tests/support/markdown.hpp"

TEST_SUITE("plan_training/plan_training") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kJob =
    "schema: 1\n"
    "model: qwen3-30b-a3b\n"
    "hardware: {h200: {usd_per_gpu_hour: 2}}\n"
    "training: {gpus: 8, global_batch_size: 16, seq_len: 2048, tokens: 1.0e+12}\n"
    "search: {tp: [1], pp: [1, 2], ep: [4], micro_batch_size: [1], virtual_pp: [2]}\n"
    "set: [precision.linear=bf16]\n";

const Progress kQuiet = [](const char*, std::size_t, std::size_t) {};

struct Searched {
  TrainingJob job;
  TrainingAnswer answer;
};

Searched searched(const std::string& text, std::size_t workers = 2) {
  const TemporaryFolder folder;
  Searched found{load_training_job(folder.write("job.yaml", text)), {}};
  LayoutPoints points(found.job);
  found.answer = search_layouts(found.job, points, workers, kQuiet);
  return found;
}

const Searched& small() {
  static const Searched kFound = searched(kJob);
  return kFound;
}

}  // namespace

TEST_CASE("the best layouts fit, are confirmed operator by operator, and stand in the order of their steps") {
  const TrainingAnswer& answer = small().answer;
  REQUIRE(answer.best.size() > 3);
  for (const LayoutPoint& point : answer.best) {
    CHECK(point.by_operators);
    CHECK(point.fits);
    CHECK(point.memory_gib <= 141 * 0.9);
    CHECK(point.bubble_ms + point.exposed_ms < point.step_ms);
  }
  CHECK(std::is_sorted(answer.best.begin(), answer.best.end(),
                       [](const LayoutPoint& a, const LayoutPoint& b) { return a.step_ms < b.step_ms; }));
}

TEST_CASE("a small space is searched whole: no layout that fits is faster than the first one searched") {
  const Searched& found = small();
  LayoutPoints points(found.job);
  const Architecture model = load_architecture(found.job.model);
  std::size_t fitting = 0;
  for (const Layout& split : splits_of(found.job, model, 0)) {
    for (Layout layout : orders_of(split, found.job, model)) {
      for (const MemorySaving& saving : savings_of(found.job, model, true)) {
        layout.saving = saving;
        const LayoutPoint point = points.quick(layout);
        if (!point.fits) continue;
        ++fitting;
        CHECK(point.step_ms >= found.answer.searched.front().step_ms);
      }
    }
  }
  CHECK(found.answer.searched.size() == fitting);
}

TEST_CASE("the answer does not depend on the number of threads") {
  const Searched one = searched(kJob, 1);
  REQUIRE(one.answer.best.size() == small().answer.best.size());
  for (std::size_t i = 0; i < one.answer.best.size(); ++i) {
    CHECK(one.answer.best[i].layout == small().answer.best[i].layout);
    CHECK(one.answer.best[i].step_ms == small().answer.best[i].step_ms);
  }
}

TEST_CASE("what a layout needs at least is never more than what its simulation finds") {
  const Searched& found = small();
  std::vector<LayoutPoint> all = found.answer.searched;
  all.insert(all.end(), found.answer.too_large.begin(), found.answer.too_large.end());
  for (const LayoutPoint& point : all) {
    if (!point.ran()) continue;
    const Setup setup =
        read_setup(Spec::parse("job.yaml", scenario_of(point.layout, found.job, "phase")), found.job.set);
    const double least = gib(least_memory_bytes(setup));
    CAPTURE(describe(point.layout));
    CHECK(least <= point.memory_gib);
    CHECK(least >= 0.3 * point.memory_gib);
  }
}

TEST_CASE("where everything fits nothing is computed again, and less memory costs time") {
  const TrainingAnswer& wide = small().answer;
  std::string lean = kJob;
  lean.replace(lean.find("{h200: {"), 8, "{h200: {set: [memory_gib=95], ");
  const TrainingAnswer narrow = searched(lean).answer;
  REQUIRE_FALSE(narrow.best.empty());
  CHECK(narrow.searched.size() < wide.searched.size());
  CHECK(narrow.searched.front().step_ms >= wide.searched.front().step_ms);
}

TEST_CASE("sensitivities say what the answer takes under another assumption, and what would be best") {
  const Searched& found = small();
  LayoutPoints points(found.job);
  const auto all = layout_sensitivities(found.job, found.answer, points, 2);
  REQUIRE(all.size() >= 4);
  for (const LayoutSensitivity& each : all) {
    CAPTURE(each.assumption);
    CHECK(each.answer.layout == found.answer.best.front().layout);
    CHECK(each.best.step_ms <= each.answer.step_ms);
  }
}

TEST_CASE("a layout is the same in Megatron-LM's flags") {
  const std::string text =
      "schema: 1\nmodel: qwen3-30b-a3b\nhardware: h100\nschedule: interleaved-1f1b\noverlap: combined\n"
      "parallelism: {tp: 2, pp: 2, virtual_pp: 4, ep: 8, dp: 8}\ncomm: {mode: all_to_all}\n"
      "workload: {phase: train, seq_len: 4096, micro_batch_size: 2, global_batch_size: 256}\n"
      "training: {recompute: [moe_act, layernorm], delay_weight_gradients: true}\n";
  const Setup setup = read_setup(Spec::parse("s.yaml", text));
  const MegatronFlags flags =
      megatron_flags({.split = setup.scenario.parallelism}, setup.scenario, SlotKinds(setup).stages());
  const auto has = [&](const std::string& flag) {
    return std::find(flags.flags.begin(), flags.flags.end(), flag) != flags.flags.end();
  };
  for (const char* flag :
       {"--tensor-model-parallel-size 2", "--sequence-parallel", "--pipeline-model-parallel-size 2",
        "--expert-model-parallel-size 8", "--micro-batch-size 2",
        "--recompute-granularity selective --recompute-modules layernorm moe_act",
        "--moe-token-dispatcher-type alltoall", "--overlap-moe-expert-parallel-comm", "--delay-wgrad-compute",
        "--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather"}) {
    CAPTURE(flag);
    CHECK(has(flag));
  }
  CHECK(flags.notes.empty());
}

namespace {

// What Megatron-Core makes of a layout: each stage's letters, with `*n` and brackets written out.
std::vector<std::string> stages_of_layout(std::string text) {
  std::erase(text, ',');
  const std::regex repeated(R"((\(([^()]*)\)|([A-Za-z]))\*(\d+))");
  for (std::smatch found; std::regex_search(text, found, repeated);) {
    std::string all;
    for (int i = 0; i < std::stoi(found[4]); ++i) all += found[2].matched ? found[2].str() : found[3].str();
    text = found.prefix().str() + all + found.suffix().str();
  }
  std::vector<std::string> stages(1);
  for (const char c : text) c == '|' ? (void)stages.emplace_back() : (void)(stages.back() += c);
  return stages;
}

std::string layout_of(const std::string& model, const std::string& parallelism, const std::string& schedule) {
  const Setup setup =
      read_setup(Spec::parse("s.yaml", "schema: 1\nlevel: phase\nmodel: " + model +
                                           "\nhardware: h100\nschedule: " + schedule + "\nparallelism: " + parallelism +
                                           "\nworkload: {phase: train, seq_len: 4096, global_batch_size: 256}\n"));
  return megatron_layout(SlotKinds(setup).stages());
}

}  // namespace

TEST_CASE("stages that Megatron-Core would not make by itself are its layout, which has every layer once") {
  CHECK(stages_of_layout("Et*3|(tt|)*29,m|L").size() == 32);  // its documentation's, of DeepSeek-V3
  struct Case {
    const char *model, *parallelism, *schedule;
    int layers, stages, mtp;
  };
  for (const Case& each :
       {Case{"deepseek-v3", "{pp: 4, virtual_pp: 8, ep: 8, dp: 8}", "interleaved-1f1b", 61, 32, 1},
        Case{"deepseek-v3", "{pp: 16, ep: 8, dp: 8}", "1f1b", 61, 16, 1},
        Case{"qwen3-235b-a22b", "{pp: 4, virtual_pp: 8, ep: 8, dp: 8}", "interleaved-1f1b", 94, 32, 0},
        Case{"mixtral-8x7b", "{pp: 4, virtual_pp: 4, ep: 8, dp: 8}", "interleaved-1f1b", 32, 16, 0}}) {
    CAPTURE(each.model);
    const std::string layout = layout_of(each.model, each.parallelism, each.schedule);
    if (layout.empty()) {
      CHECK(each.layers % each.stages == 0);
      continue;
    }
    CAPTURE(layout);
    const std::vector<std::string> stages = stages_of_layout(layout);
    std::string all;
    for (const std::string& stage : stages) all += stage;
    CHECK(static_cast<int>(stages.size()) == each.stages);
    CHECK(all == "E" + std::string(static_cast<std::size_t>(each.layers), 't') +
                     std::string(static_cast<std::size_t>(each.mtp), 'm') + "L");
  }
}

TEST_CASE("the command prints a table, JSON, CSV and a page, and says where nothing fits") {
  const TemporaryFolder folder;
  std::string quick = kJob;
  quick.replace(quick.find("pp: [1, 2]"), 10, "pp: [2], schedule: [1f1b]");
  const std::string job = folder.write("job.yaml", quick);
  const std::string html = (folder.path() / "plan.html").string();
  const auto table = run_moeline({"plan", job, "--html", html});
  CHECK(table.exit_code == 0);
  for (const char* part : {"why the others are behind", "USD", "if an assumption is wrong", "# Megatron-LM"}) {
    CAPTURE(part);
    CHECK(says(table.out, part));
  }
  CHECK(std::filesystem::file_size(html) > 100'000);
  const auto json = json_of({"plan", job, "--format", "json", "--no-sensitivity"});
  CHECK(json["layouts"].Size() > 0);
  CHECK(json["layouts"][0]["fits_memory"].GetBool());
  CHECK(json["layouts"][0]["days"].GetDouble() > 0);
  CHECK(lines_of(run_moeline({"plan", job, "--format", "csv", "--no-sensitivity"}).out).size() > 3);

  quick.replace(quick.find("{h200: {"), 8, "{h200: {set: [memory_gib=20], ");
  const auto none = run_moeline({"plan", folder.write("lean.yaml", quick)});
  CHECK(none.exit_code == 1);
  CHECK(says(none.out, "no layout fits into memory"));
}

TEST_CASE("bad jobs are refused at their line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& from, const std::string& to, int line, const std::string& reason) {
    const std::string file = folder.write("bad.yaml", replaced(kJob, from, to));
    check_refused({"plan", file}, fmt::format("{}:{}: ", file, line), reason);
  };
  refused("gpus: 8", "gpus: 0", 4, "training.gpus must be from 1");
  refused("gpus: 8, ", "", 4, "training.gpus is missing");
  refused("seq_len", "sequence_len", 4, "unknown key 'training.sequence_len'");
  refused("model: qwen3-30b-a3b", "model: qwen3-31b", 2, "unknown model 'qwen3-31b'");
  refused("tp: [1]", "tp: [1, 1]", 5, "search.tp has a value twice");
  refused("virtual_pp: [2]", "schedule: [1f1c]", 5, "did you mean '1f1b'?");
  refused("tp: [1]", "tp: [3]", 5, "search leaves no way to split the GPUs");
  refused("virtual_pp: [2]", "recompute: [everything]", 5, "search made no scenario of any of");
  refused("precision.linear=bf16", "parallelism.tp=2", 6, "set has 'parallelism.tp', which the plan itself decides");
  refused("precision.linear=bf16", "layers=4", 6, "set has 'layers', which the plan itself decides");
  refused("precision.linear=bf16", "slot_costs_ms.F=1", 6, "set has 'slot_costs_ms.F', which the plan itself decides");
  refused("search:", "serach:", 5, "did you mean 'search'?");
}

}  // TEST_SUITE("plan_training/plan_training")
