// What one command writes, the command that should reads again, and it says the same.
#include <doctest/doctest.h>

#include "hardware/parse_op.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("cli/read_again") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string prefill() { return source("experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml").string(); }

// A run of few layers, in a folder.
struct SavedRun {
  explicit SavedRun(const Arguments& more = {}) {
    Arguments call = {"simulate", prefill(), "--set", "layers=4", "-o", folder.path().string()};
    call.insert(call.end(), more.begin(), more.end());
    const Outcome outcome = run_moeline(call);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  }
  [[nodiscard]] rapidjson::Document json(const char* file) const { return parsed(content_of(folder / file)); }
  [[nodiscard]] std::string trace() const { return folder / json("manifest.json")["traces"][0].GetString(); }

  TemporaryFolder folder;
};

double step_ms(const rapidjson::Document& result) { return result["metrics"]["step_ms"].GetDouble(); }

}  // namespace

TEST_CASE("a run's manifest says how it is run again, and its scenario, given back, is the same run") {
  const SavedRun run;
  const rapidjson::Document manifest = run.json("manifest.json"), metrics = run.json("metrics.json");
  Arguments again = {"simulate", manifest["scenario"].GetString()};
  for (const auto& assignment : manifest["set"].GetArray()) {
    again.insert(again.end(), {"--set", assignment.GetString()});
  }
  CHECK(step_ms(in_json(again)) == step_ms(metrics));
  const std::string written = run.folder.write("again.yaml", text_of(metrics["scenario"]));
  CHECK(step_ms(in_json({"simulate", written})) == step_ms(metrics));
}

TEST_CASE("a trace that simulate writes is as long for analyze, replay and explain, and its scenario's for compare") {
  for (const Arguments& packed : {Arguments{}, Arguments{"--gzip"}}) {
    const SavedRun run(packed);
    const double us = 1e3 * step_ms(run.json("metrics.json"));
    const std::string trace = run.trace();
    CAPTURE(trace);
    CHECK(in_json({"analyze", trace})["ranks"][0]["span_us"].GetDouble() == doctest::Approx(us).epsilon(1e-3));
    CHECK(in_json({"replay", trace})["span_us"].GetDouble() == doctest::Approx(us).epsilon(1e-3));
    CHECK(in_json({"explain", trace})["span_us"].GetDouble() == doctest::Approx(us).epsilon(1e-3));
    const rapidjson::Document compared = in_json({"compare", prefill(), trace, "--set", "layers=4"});
    for (const auto& phase : compared["phases"].GetArray()) CHECK(std::abs(phase["error"].GetDouble()) < 1e-3);
  }
}

TEST_CASE("the trace of a comparison holds both timelines, and analyze reads it") {
  const SavedRun run;
  const TemporaryFolder folder;
  const std::string both = folder / "both.json";
  const Outcome outcome = run_moeline({"compare", prefill(), run.trace(), "--set", "layers=4", "--trace", both});
  REQUIRE(outcome.exit_code == 0);
  CHECK(in_json({"analyze", both})["ranks"].Size() == 2);
}

TEST_CASE("the plan that search writes gives simulate the time that search found") {
  const TemporaryFolder folder;
  const std::string plan = folder / "best.yaml";
  const rapidjson::Document found = in_json({"search", prefill(), "--set", "layers=4", "-o", plan});
  const rapidjson::Document best = in_json({"simulate", prefill(), "--set", "layers=4", "--set", "overlap=" + plan});
  CHECK(best["metrics"]["layer_us"].GetDouble() == found["best_us"].GetDouble());
  CHECK(step_ms(best) == doctest::Approx(found["run"]["best_ms"].GetDouble()).epsilon(1e-5));
}

TEST_CASE("every profile, written and read again, prices as before") {
  const TemporaryFolder folder;
  for (const std::string& name : names_in("hwprofiles")) {
    CAPTURE(name);
    const HardwareProfile before = load_profile(name);
    const HardwareProfile after = load_profile(folder.write(name + ".yaml", to_yaml(before)));
    for (const char* op : {"gemm:dtype=bf16", "grouped_gemm:layout=masked,dtype=bf16", "gqa_decode", "all_reduce"}) {
      const RequestedOp asked = parse_op(op, before.facts);
      const auto us = [&](const HardwareProfile& profile) {
        return price_all(asked.kernels, asked.conditions, profile.facts, profile.kernels("")).solo_us;
      };
      CHECK(us(after) == us(before));
    }
  }
}

}  // TEST_SUITE("cli/read_again")
