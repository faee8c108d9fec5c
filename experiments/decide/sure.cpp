#include "experiments/decide/sure.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/spec.hpp"
#include "schedules/scenario/read_scenario.hpp"

namespace moeline {
namespace {

using Kind = DifferenceKind;

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> kNames = {"parallelism", "precision", "drafts",     "overlap", "recomputation",
                                                  "routing",     "graphs",    "all-to-all", "batch"};
  return kNames;
}

// What each pair of experiments/studies/decisions came to; expected.txt there is where they are read off.
constexpr std::array kErrors = {
    PairErrors{Kind::parallelism, 8, 5, 0.146},   PairErrors{Kind::precision, 4, 4, 0.0901},
    PairErrors{Kind::drafts, 1, 1, 0.0613},       PairErrors{Kind::overlap, 1, 1, 0.00291},
    PairErrors{Kind::recomputation, 1, 1, 0.035}, PairErrors{Kind::routing, 1, 1, 0.151},
    PairErrors{Kind::graphs, 2, 1, 0.152},        PairErrors{Kind::all_to_all, 2, 2, 0.0712},
    PairErrors{Kind::batch, 1, 1, 0.0988},        PairErrors{std::nullopt, 21, 17, 0.1},
};

// By the first part of a key, or the whole.
const std::map<std::string, Kind>& kinds_of_keys() {
  static const std::map<std::string, Kind> kKinds = {
      {"parallelism", Kind::parallelism},
      {"precision", Kind::precision},
      {"workload.query_len", Kind::drafts},
      {"workload.draft_layers", Kind::drafts},
      {"workload.mtp_acceptance", Kind::drafts},
      {"schedule", Kind::overlap},
      {"overlap", Kind::overlap},
      {"shared_experts", Kind::overlap},
      {"training", Kind::recomputation},
      {"routing", Kind::routing},
      {"launch", Kind::graphs},
      {"comm", Kind::all_to_all},
      {"workload.batch_size", Kind::batch},
      {"workload.concurrency", Kind::batch},
      {"workload.micro_batch_size", Kind::batch},
      {"memory", Kind::batch},
  };
  return kKinds;
}

// What stands at each key, those of the workload one by one.
using Written = std::map<std::string, std::vector<std::string>>;

Written written_in(const DecideSetting& setting) {
  Spec spec = Spec::parse(setting.file, setting.content);
  Written written;
  for (std::string& each : apply_changes(setting.assignments, spec)) written["hardware"].push_back(std::move(each));
  for (const std::string& key : spec.keys()) {
    if (key == "workload") continue;
    for (std::string& word : spec.words(key)) written[key].push_back(std::move(word));
  }
  const Spec workload = spec.map_or_empty("workload");
  for (const std::string& key : workload.keys()) written["workload." + key] = workload.words(key);
  return written;
}

std::set<std::string> keys_that_differ(const Written& a, const Written& b) {
  std::set<std::string> keys;
  const auto add = [&](const Written& one, const Written& other) {
    for (const auto& [key, words] : one) {
      const auto found = other.find(key);
      if (found == other.end() || found->second != words) keys.insert(key);
    }
  };
  add(a, b);
  add(b, a);
  return keys;
}

// None where they differ in several kinds of keys, or in others. How tokens travel goes with how they are spread.
std::optional<Kind> kind_between(const DecideSetting& a, const DecideSetting& b) {
  std::set<Kind> kinds;
  for (const std::string& key : keys_that_differ(written_in(a), written_in(b))) {
    const auto found = kinds_of_keys().find(key);
    if (found == kinds_of_keys().end()) return std::nullopt;
    kinds.insert(found->second);
  }
  if (kinds.contains(Kind::parallelism)) {
    kinds.erase(Kind::all_to_all);
    kinds.erase(Kind::batch);
  }
  return kinds.size() == 1 ? std::optional(*kinds.begin()) : std::nullopt;
}

}  // namespace

const std::string& name_of(DifferenceKind kind) { return kind_names()[static_cast<std::size_t>(kind)]; }

DifferenceKind difference_kind(const std::string& name) {
  return choice_of<DifferenceKind>(expect_name("kind", name, kind_names()), kind_names());
}

std::span<const PairErrors> pair_errors() { return kErrors; }

PairErrors errors_between(const DecideSetting& a, const DecideSetting& b) {
  const std::optional<Kind> kind = kind_between(a, b);
  const auto* found = std::ranges::find_if(kErrors, [&](const PairErrors& e) { return kind && e.kind == kind; });
  return found != kErrors.end() && found->pairs >= kEnoughPairs ? *found : kErrors.back();
}

}  // namespace moeline
