// Errors of earlier versions: written, read, and held against those of now.
#include "experiments/validate/baseline.hpp"

#include <doctest/doctest.h>

#include "experiments/cli/output/validate_output.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("validate/baseline") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kFacts = source("tests/published/pipelines.yaml").string();

// Of moeline's own, with another error of the first fact.
std::string with_error(const std::string& baseline, double error) {
  rapidjson::Document json = parsed(baseline);
  auto errors = json["versions"][0]["errors"].GetObject();
  REQUIRE(errors.MemberCount() > 2);
  errors.begin()->value.SetDouble(error);
  rapidjson::StringBuffer text;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(text);
  json.Accept(writer);
  return text.GetString();
}

}  // namespace

TEST_CASE("only what is 2 points or more away from what it was has changed, whatever its sign") {
  const FactErrorById was = {{"a", 0.01}, {"b", -0.10}, {"c", 0.05}, {"d", 0.3}, {"e", 0.1}, {"gone", 0}};
  const FactErrorById now = {{"a", -0.02}, {"b", -0.12}, {"c", -0.05}, {"d", 0.2}, {"e", 0.1199}, {"new", 1}};
  const BaselineDifference found = difference(was, now);
  REQUIRE(found.worse.size() == 1);
  CHECK(found.worse[0].id == "b");
  REQUIRE(found.better.size() == 1);
  CHECK(found.better[0].id == "d");
  CHECK(found.alike == 3);
  CHECK(found.added == std::vector<std::string>{"new"});
  CHECK(found.absent == std::vector<std::string>{"gone"});
}

TEST_CASE(
    "of the same program the last version is replaced, of another one more is added; what is not predicted stays") {
  Baseline baseline;
  add_version(baseline, "1", {{"a", 0.1}, {"b", 0.2}});
  add_version(baseline, "1", {{"a", 0.3}});
  REQUIRE(baseline.versions.size() == 1);
  CHECK(baseline.versions[0].errors == FactErrorById{{"a", 0.3}, {"b", 0.2}});
  add_version(baseline, "2", {{"a", 0.4}});
  REQUIRE(baseline.versions.size() == 2);
  CHECK(baseline.versions[1].errors == FactErrorById{{"a", 0.4}, {"b", 0.2}});
}

TEST_CASE("a baseline that is written equals itself when it is read, and a fact that it has better fails") {
  const TemporaryFolder folder;
  const std::string file = folder / "accuracy.json";
  REQUIRE(run_moeline({"validate", kFacts, "--write-baseline", file}).exit_code == 0);
  const Baseline written = read_baseline(file);
  CHECK(to_json(written) == content_of(file));
  CHECK(written.versions[0].program + "\n" == run_moeline({"--version"}).out);
  const Outcome same = run_moeline({"validate", kFacts, "--baseline", file});
  CHECK(same.exit_code == 0);
  CHECK(same.out.find("0 worse, 0 better") != std::string::npos);

  const std::string was_worse = folder.write("worse.json", with_error(content_of(file), 0.5));
  const Outcome better = run_moeline({"validate", kFacts, "--baseline", was_worse, "--format", "json"});
  CHECK(better.exit_code == 0);
  CHECK(parsed(better.out)["baseline"]["better"].Size() == 1);
}

TEST_CASE("a fact that is 2 points worse than in the baseline fails, and is named") {
  const TemporaryFolder folder;
  const std::string facts = folder.write(
      "sums.yaml",
      "about: a sum\ncommon: {status: not fitted, unit: FLOPs, setting: none, source: here, how_read: by hand}\n"
      "facts: {one: {quantity: FLOPs, value: 1e12, model: {model: deepseek-v3, metric: train_flops_per_token, "
      "seq_len: 4096}}}\n");
  const Outcome known = run_moeline({"validate", facts, "--write-baseline", folder / "now.json"});
  CAPTURE(known.err);
  REQUIRE(known.exit_code == 0);
  const std::string id = read_baseline(folder / "now.json").versions[0].errors.begin()->first;
  const std::string exact = folder.write(
      "exact.json", "{\"schema_version\": 1, \"versions\": [{\"program\": \"a\", \"errors\": {\"" + id + "\": 0}}]}");
  const Outcome worse = run_moeline({"validate", facts, "--baseline", exact});
  CHECK(worse.exit_code == 1);
  CHECK(worse.out.find("2 points worse, or more") != std::string::npos);
  CHECK(worse.out.find("1 worse, 0 better") != std::string::npos);
}

TEST_CASE("what is no baseline is refused with its place, and nobody's file is written over") {
  const TemporaryFolder folder;
  const std::string note = folder.write("note.json", "{\"mine\": 1}");
  const Outcome refused = run_moeline({"validate", kFacts, "--write-baseline", note});
  CHECK(refused.exit_code == 2);
  CHECK(content_of(note) == "{\"mine\": 1}");
  const Outcome unknown = run_moeline({"validate", kFacts, "--baseline", note});
  CHECK(unknown.exit_code == 3);
  CHECK(unknown.err.find("note.json:1: ") != std::string::npos);
  const std::string empty = folder.write("empty.json", "{\"schema_version\": 1, \"versions\": []}");
  CHECK(run_moeline({"validate", kFacts, "--baseline", empty}).err.find("versions is empty") != std::string::npos);
  CHECK(run_moeline({"validate", kFacts, "--html", folder / "page.html"}).exit_code == 2);
}

}  // TEST_SUITE("validate/baseline")
