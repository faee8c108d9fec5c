// Studies: which points they have, and what of them is refused where.
#include "experiments/sweep/study.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "experiments/sweep/run_study.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("sweep/study") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kHead = "schema: 1\nscenario: " + std::string(MOELINE_SOURCE_DIR) +
                          "/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml\n";

Study study_of(const std::string& text) {
  const TemporaryFolder folder;
  return load_study(folder.write("study.yaml", kHead + text));
}

std::vector<std::string> shown(const Study& study) {
  std::vector<std::string> points;
  for (const auto& values : study.points) {
    std::string point;
    for (const std::string& value : values) point += (point.empty() ? "" : " ") + value;
    points.push_back(point);
  }
  return points;
}

using Points = std::vector<std::string>;

}  // namespace

TEST_CASE("axes are crossed, the last one fastest, ranges step or multiply and include their end") {
  CHECK(shown(study_of("axes:\n  a: [1, 2]\n  b: {from: 4, to: 6, step: 1}\n")) ==
        Points{"1 4", "1 5", "1 6", "2 4", "2 5", "2 6"});
  CHECK(shown(study_of("axes:\n  a: {from: 16, to: 128, factor: 2}\n")) == Points{"16", "32", "64", "128"});
  CHECK(shown(study_of("axes:\n  a: {from: 0.1, to: 0.3, step: 0.1}\n")) == Points{"0.1", "0.2", "0.3"});
}

TEST_CASE("axes that are zipped vary together, wherever they stand") {
  CHECK(shown(study_of("axes:\n  a: [1, 2]\n  b: [x, y]\n  c: [8, 9]\nzip: [\"a c\"]\n")) ==
        Points{"1 x 8", "1 y 8", "2 x 9", "2 y 9"});
}

TEST_CASE("combinations that break a condition are no points") {
  CHECK(shown(study_of("axes:\n  ep: [8, 12, 16]\n  n: [1, 2]\nwhere: [\"256 % ep == 0\", \"ep * n <= 16\"]\n")) ==
        Points{"8 1", "8 2", "16 1"});
}

TEST_CASE("conditions have the usual precedence, brackets and signs of comparison") {
  const auto holds = [](const char* text) { return Condition(text, {"a", "b"}).holds({{"a", "6"}, {"b", "4"}}); };
  CHECK(holds("a + b * 2 == 14"));
  CHECK(holds("(a + b) * 2 == 20"));
  CHECK(holds("a - b - 1 == 1"));
  CHECK(holds("a % b == 2"));
  CHECK(holds("a / b > 1.4"));
  CHECK(holds("a != b"));
  CHECK_FALSE(holds("a <= b"));
  CHECK(holds("b < a"));
  CHECK(holds("a >= 6"));
}

TEST_CASE("a condition may divide by what is not 0 in any point") {
  CHECK(shown(study_of("axes:\n  a: [2, 3, 4]\nwhere: [\"6 % (a - 1) == 0\", \"6 / a > 1.5\"]\n")) == Points{"2", "3"});
}

TEST_CASE("studies that ask for nothing, or for what is not there, are refused at their line") {
  const auto refused = [](const std::string& text, int line, const std::string& says) {
    const TemporaryFolder folder;
    const std::string file = folder.write("study.yaml", kHead + text);
    check_refused({"sweep", file}, file + ":" + std::to_string(line), says);
  };
  refused("axes: {}\n", 3, "axes are empty");
  refused("axes:\n  a: []\n", 4, "axes.a has no values");
  refused("axes:\n  a: [1, 2]\n  b: [1]\nzip: [\"a b\"]\n", 6, "zip 'a b': a has 2 values, and b has 1");
  refused("axes:\n  a: [1, 2]\nzip: [\"a c\"]\n", 5, "zip names an unknown axis 'c'");
  refused("axes:\n  a: [1, 2]\nwhere: [\"a > 2\"]\n", 5, "where leaves no point");
  refused("axes:\n  a: [1, 2]\nwhere: [\"a + 2\"]\n", 5, "compares nothing");
  refused("axes:\n  a: [1, 2]\nwhere: [\"a % c == 0\"]\n", 5, "unknown axis or metric 'c'");
  refused("axes:\n  a: [x]\nwhere: [\"a > 2\"]\n", 5, "needs numbers, and a has 'x'");
  refused("axes:\n  a: [1]\nmetrics: [tpot_m]\n", 5,
          "metrics names an unknown metric 'tpot_m'; did you mean 'tpot_ms'?");
  refused("axes:\n  a: [1, 2]\n  a: [3]\n", 5, "key 'a' is repeated");
  refused("axes:\n  a: [0, 1]\nwhere: [\"4 % a == 0\"]\n", 5, "where has '4 % a == 0' divides by 0");
  refused("axes:\n  a: [1]\nwhere: [\"a / 0 == 1\"]\n", 5, "where has 'a / 0 == 1' divides by 0");
  refused("axes:\n  a: [1]\nmetrics: [tpot_ms, tpot_ms]\n", 5, "metrics has 'tpot_ms' twice");
  refused("axes:\n  a: {from: 1, to: 9}\n", 4, "step or factor is needed");
  refused("axes:\n  a: {from: 1, to: 1e9, step: 1}\n", 4, "gives more than 1000000 values");
  refused("axis:\n  a: [1]\n", 3, "unknown key 'axis'; did you mean 'axes'?");
}

TEST_CASE("a study whose scenario cannot be read is refused once, and nothing is written") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& study, const std::string& place, const std::string& says) {
    const std::string file = folder.write("study.yaml", study);
    check_refused({"sweep", file, "-o", folder / "table.sqlite"}, place, says);
    CHECK_FALSE(std::filesystem::exists(folder / "table.sqlite"));
  };
  const std::string study = folder / "study.yaml";
  refused("schema: 1\naxes:\n  layers: [1]\n", study + ":1", "scenario is missing");
  refused("schema: 1\nscenario: nowhere.yaml\naxes:\n  layers: [1]\n", "nowhere.yaml", "no such file");
  const std::string broken = folder.write("broken.yaml", "schema: [1\n");
  refused("schema: 1\nscenario: broken.yaml\naxes:\n  layers: [1, 2]\n", broken + ":", "");
  refused("schema: 1\nscenario: .\naxes:\n  layers: [1]\n", "", "is a folder");
}

TEST_CASE("an axis that is no key of a scenario is refused once, one that only some points cannot have is rows") {
  const TemporaryFolder folder;
  const std::string typo = folder.write("study.yaml", kHead + "axes:\n  paralelism.ep: [8, 16]\n");
  const Arguments sweep = {"sweep", typo, "-o", folder / "table.sqlite"};
  check_refused(sweep,
                typo + ":4: axes.paralelism.ep made no scenario of any of the 2 points: unknown key 'paralelism'",
                "did you mean 'parallelism'?");
  CHECK_FALSE(std::filesystem::exists(folder / "table.sqlite"));
  const std::string none = folder.write("none.yaml", kHead + "axes:\n  layers: [2]\n  parallelism.ep: [3, 5]\n");
  check_refused({"sweep", none, "-o", folder / "table.sqlite"}, none + ":5: axes.parallelism.ep made no scenario",
                ": parallelism.ep must divide the 256 routed experts: 3 does not");
  const std::string some = folder.write("some.yaml", kHead + "axes:\n  parallelism.ep: [24, 32]\n");
  CHECK(run_moeline({"sweep", some, "-o", folder / "some.sqlite"}).exit_code == 0);
}

TEST_CASE("shares are disjoint and together everything") {
  for (std::size_t point = 0; point < 20; ++point) {
    int takers = 0;
    for (std::size_t index = 0; index < 3; ++index) takers += Share{index, 3}.takes(point) ? 1 : 0;
    CHECK(takers == 1);
  }
}

}  // TEST_SUITE("sweep/study")
