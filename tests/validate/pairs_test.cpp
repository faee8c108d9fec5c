// Published pairs of settings, held against predictions.
#include <doctest/doctest.h>

#include "experiments/cli/output/validate_output.hpp"
#include "experiments/validate/score_pairs.hpp"
#include "tests/support/data.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("validate/pairs") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::filesystem::path kFolder = std::filesystem::path(MOELINE_SOURCE_DIR) / "experiments/studies/decisions";

PairStudy published_pairs() { return read_pair_study(Spec::load(kFolder / "pairs.yaml")); }

PairStudy study_of(const std::string& pair) {
  const TemporaryFolder folder;
  (void)folder.write("s.yaml", "schema: 1\n");
  return read_pair_study(Spec::load(folder.write("pairs.yaml", "about: x\nstatus: blind\npairs:\n" + pair)));
}

const std::string kPair =
    "  - {id: one, kind: graphs, source: s, scenario: s.yaml, by: step_ms, a: {name: a, value: 1}, b: {name: b, value: "
    "2}}\n";

}  // namespace

TEST_CASE("what decide says of such comparisons is what the study comes to") {
  if (kSanitized) return;  // a quarter of an hour: the parts have tests of their own
  const ScoredPairs scored = score(published_pairs());
  CHECK(to_table(scored) == read_text(kFolder / "expected.txt").substr(0, to_table(scored).size()));
  REQUIRE(scored.errors.size() == pair_errors().size());
  for (std::size_t i = 0; i < scored.errors.size(); ++i) {
    const PairErrors& now = scored.errors[i];
    const PairErrors& said = pair_errors()[i];
    CAPTURE(i);
    CHECK(now.kind == said.kind);
    CHECK(now.pairs == said.pairs);
    CHECK(now.right == said.right);
    CHECK(now.median_abs_error == doctest::Approx(said.median_abs_error).epsilon(0.005));
  }
}

TEST_CASE("figures are those that were published") {
  const std::filesystem::path file = measured_data() / "decisions.yaml";
  if (!std::filesystem::exists(file)) {
    MESSAGE("skipped: " << file.string() << " is absent");
    return;
  }
  std::map<std::string, std::pair<double, double>> published;
  for (const Spec& pair : Spec::load(file).maps("pairs")) {
    published[pair.text("id")] = {pair.number("a_value", 0, 1e12), pair.number("b_value", 0, 1e12)};
  }
  const PairStudy study = published_pairs();
  CHECK(study.pairs.size() == published.size());
  for (const PublishedPair& pair : study.pairs) {
    CAPTURE(pair.id);
    CHECK(published.at(pair.id) == std::pair(pair.a_value, pair.b_value));
  }
}

TEST_CASE("a pair whose slower side is named has its cause") {
  const std::string table = read_text(kFolder / "expected.txt");
  for (const PublishedPair& pair : published_pairs().pairs) {
    const bool wrong = table.find("  " + pair.id + ": ") != std::string::npos;
    const bool refused = table.find("  " + pair.id + ": routing.distribution") != std::string::npos;
    CAPTURE(pair.id);
    if (wrong && !refused) CHECK_FALSE(pair.why_wrong.empty());
  }
}

TEST_CASE("what is wrong with a study of pairs is said with its line") {
  const auto without = [](const std::string& part, const std::string& in) {
    std::string text = kPair;
    return text.replace(text.find(part), part.size(), in);
  };
  CHECK(study_of(kPair).pairs.front().ratio() == 2);
  check_refused_with("did you mean 'graphs'?", [&] { (void)study_of(without("graphs", "graph")); });
  check_refused_with("pairs.yaml:4", [&] { (void)study_of(without("step_ms", "steps")); });
  check_refused_with("x.yaml is absent", [&] { (void)study_of(without("s.yaml", "x.yaml")); });
  check_refused_with("id stands twice", [&] { (void)study_of(kPair + kPair); });
  check_refused_with("value must be", [&] { (void)study_of(without("value: 2", "value: 0")); });
}

}  // TEST_SUITE("validate/pairs")
