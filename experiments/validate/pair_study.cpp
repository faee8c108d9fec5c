#include "experiments/validate/pair_study.hpp"

#include <set>

#include "base/file.hpp"

namespace moeline {
namespace {

constexpr double kLargest = 1e12;

std::vector<std::string> changes_in(const Spec& spec, const std::string& key) {
  return spec.has(key) ? spec.texts(key) : std::vector<std::string>{};
}

// One side: the scenario with the pair's changes and its own.
DecideSetting read_side(const Spec& pair, const std::string& key, const std::filesystem::path& scenario) {
  const Spec side = pair.map(key);
  side.expect({"name", "set", "value"});
  DecideSetting setting{.name = side.text("name"), .file = scenario.string(), .content = read_text(scenario)};
  setting.assignments = changes_in(pair, "set");
  for (std::string& change : changes_in(side, "set")) setting.assignments.push_back(std::move(change));
  return setting;
}

PublishedPair read_pair(const Spec& spec) {
  spec.expect({"id", "kind", "source", "assumed", "why_wrong", "scenario", "set", "by", "a", "b"});
  PublishedPair pair;
  pair.id = spec.text("id");
  pair.kind = at_key(spec, "kind", [&] { return difference_kind(spec.text("kind")); });
  pair.source = spec.text("source");
  pair.assumed = spec.text_or("assumed", "");
  pair.why_wrong = spec.text_or("why_wrong", "");
  pair.by = at_key(spec, "by", [&] { return measure_named(spec.text("by")); });
  const std::filesystem::path scenario = beside(spec.file(), spec.text("scenario"));
  if (!std::filesystem::exists(scenario)) throw spec.error("scenario", scenario.string() + " is absent");
  pair.a = read_side(spec, "a", scenario);
  pair.b = read_side(spec, "b", scenario);
  pair.a_value = spec.map("a").number("value", 1e-9, kLargest);
  pair.b_value = spec.map("b").number("value", 1e-9, kLargest);
  return pair;
}

}  // namespace

bool is_pair_study(const Spec& spec) { return spec.has("pairs"); }

PairStudy read_pair_study(const Spec& spec) {
  spec.expect({"about", "status", "pairs"});
  PairStudy study;
  study.name = std::filesystem::path(spec.file()).parent_path().filename().string();
  study.about = spec.text("about");
  study.status = read_status(spec);
  std::set<std::string> ids;
  for (const Spec& each : spec.maps("pairs")) {
    study.pairs.push_back(read_pair(each));
    if (!ids.insert(study.pairs.back().id).second) throw each.error("id", "stands twice: " + study.pairs.back().id);
  }
  if (study.pairs.empty()) throw spec.error("pairs", "lists none");
  return study;
}

}  // namespace moeline
