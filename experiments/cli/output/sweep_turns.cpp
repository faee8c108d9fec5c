#include "experiments/cli/output/sweep_turns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "experiments/decide/decision.hpp"

namespace moeline {
namespace {

constexpr const char* kUsual = "tokens_per_s_per_gpu";
constexpr const char* kFits = "fits_memory";

std::size_t place_of_name(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

// The usual one, else the first with a direction that any point has; "": none.
std::string metric_of(const Study& study, const std::vector<PointResult>& results) {
  const auto is_known = [&](const std::string& name) {
    const std::size_t at = place_of_name(study.metrics, name);
    return std::ranges::any_of(
        results, [&](const PointResult& r) { return at < r.metrics.size() && !std::isnan(r.metrics[at]); });
  };
  if (is_known(kUsual)) return kUsual;
  for (const std::string& name : study.metrics) {
    if (metric_named(name)->better != Better::neither && is_known(name)) return name;
  }
  return "";
}

// By their places among the study's keys.
struct ChosenKeys {
  std::optional<std::size_t> along;  // has the most numbers
  std::vector<std::size_t> among;    // those that go together first, else the first of words that one can choose
};

// A study asks the same of several machines and models.
bool is_given(const std::string& key) { return key == "hardware" || key == "model" || key == "kernels"; }

std::vector<std::string> values_of(const Study& study, std::size_t key) {
  std::set<std::string> values;
  for (const std::vector<std::string>& point : study.points) values.insert(point[key]);
  return {values.begin(), values.end()};
}

bool are_numbers(const std::vector<std::string>& values) {
  return std::ranges::all_of(values, [](const std::string& value) { return as_number<double>(value).has_value(); });
}

ChosenKeys chosen_of(const Study& study) {
  ChosenKeys chosen;
  const auto is_choice = [](const std::string& key) { return !is_given(key) && !key.starts_with("workload."); };
  for (const std::vector<std::string>& group : study.zipped) {
    if (!chosen.among.empty() || !std::ranges::all_of(group, is_choice)) continue;
    for (const std::string& key : group) chosen.among.push_back(place_of_name(study.keys, key));
  }
  std::size_t most = 1;
  for (std::size_t key = 0; key < study.keys.size(); ++key) {
    const bool zipped = std::ranges::any_of(study.zipped, [&](const std::vector<std::string>& group) {
      return std::ranges::find(group, study.keys[key]) != group.end();
    });
    const std::vector<std::string> values = values_of(study, key);
    if (zipped) continue;
    if (!are_numbers(values)) {
      if (chosen.among.empty() && values.size() > 1 && is_choice(study.keys[key])) chosen.among.push_back(key);
    } else if (values.size() > most) {
      chosen.along = key;
      most = values.size();
    }
  }
  return chosen;
}

SettingOutcome outcome_of(const Study& study, const PointResult& result, const std::string& by) {
  if (!result.failure.empty()) return {.refused = result.failure};
  const std::size_t at = place_of_name(study.metrics, by), fits = place_of_name(study.metrics, kFits);
  if (at >= result.metrics.size() || std::isnan(result.metrics[at])) return {.refused = "has no such metric"};
  SettingOutcome outcome{.value = result.metrics[at]};
  if (fits < result.metrics.size() && result.metrics[fits] == 0) outcome.against = "does not fit memory";
  if (!study.is_within_limits(result.id, result.metrics)) outcome.against = "breaks a limit";
  return outcome;
}

class Turns {
 public:
  Turns(const Study& study, const std::vector<PointResult>& results)
      : study_(study), results_(results), by_(metric_of(study, results)), chosen_(chosen_of(study)) {
    if (!chosen_.along) return;
    along_ = values_of(study, *chosen_.along);
    std::ranges::sort(along_, {}, [](const std::string& value) { return as_number<double>(value).value(); });
    for (const PointResult& result : results) {
      const std::string name = alternative(result);
      if (std::ranges::find(among_, name) == among_.end()) among_.push_back(name);
    }
  }

  [[nodiscard]] SweptTurns all() const {
    if (by_.empty() || !chosen_.along || among_.size() < 2) return {};
    SweptTurns turns{by_,
                     study_.keys[*chosen_.along],
                     named(chosen_.among),
                     std::ranges::find(study_.metrics, kFits) != study_.metrics.end(),
                     {}};
    for (const auto& [beside, outcomes] : by_others()) add_stretches(beside, outcomes, turns.stretches);
    return turns;
  }

 private:
  // By place on the axis, of each alternative; one that is no point of the study is refused.
  using Outcomes = std::vector<std::vector<SettingOutcome>>;

  [[nodiscard]] std::string named(const std::vector<std::size_t>& keys) const {
    std::vector<std::string> names;
    for (const std::size_t key : keys) names.push_back(study_.keys[key]);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  // "schedule=sequential", of several keys all of them.
  [[nodiscard]] std::string values_at(const PointResult& result, const std::vector<std::size_t>& keys) const {
    std::vector<std::string> parts;
    for (const std::size_t key : keys) {
      parts.push_back(fmt::format("{}={}", study_.keys[key], study_.points[result.id][key]));
    }
    return fmt::format("{}", fmt::join(parts, " "));
  }

  [[nodiscard]] std::string alternative(const PointResult& result) const { return values_at(result, chosen_.among); }

  [[nodiscard]] std::string beside(const PointResult& result) const {
    std::vector<std::size_t> others;
    for (std::size_t key = 0; key < study_.keys.size(); ++key) {
      const bool is_chosen = key == *chosen_.along || std::ranges::find(chosen_.among, key) != chosen_.among.end();
      if (!is_chosen) others.push_back(key);
    }
    return values_at(result, others);
  }

  // In the order of the study.
  [[nodiscard]] std::vector<std::pair<std::string, Outcomes>> by_others() const {
    std::vector<std::pair<std::string, Outcomes>> found;
    std::map<std::string, std::size_t> places;
    for (const PointResult& result : results_) {
      const auto [place, is_new] = places.try_emplace(beside(result), found.size());
      if (is_new) {
        const std::vector<SettingOutcome> none(among_.size(), {.refused = "is no point"});
        found.emplace_back(place->first, Outcomes(along_.size(), none));
      }
      Outcomes& outcomes = found[place->second].second;
      const std::size_t at = place_of_name(along_, study_.points[result.id][*chosen_.along]);
      outcomes[at][place_of_name(among_, alternative(result))] = outcome_of(study_, result, by_);
    }
    return found;
  }

  void add_stretches(const std::string& beside, const Outcomes& outcomes, std::vector<SweptStretch>& all) const {
    std::optional<Winner> before;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (std::ranges::none_of(outcomes[i], &SettingOutcome::is_simulated)) continue;
      const Winner winner = winner_of(outcomes[i], metric_named(by_)->better);
      const std::optional<double>& ratio = winner.ratio;
      if (before && *before == winner) {
        all.back().to = along_[i];
        std::optional<double>& least = all.back().ratio;
        if (ratio) least = std::min(least.value_or(*ratio), *ratio);
      } else {
        all.push_back(
            {beside, along_[i], along_[i], winner.setting ? among_[*winner.setting] : "", winner.is_tie, ratio});
      }
      before = winner;
    }
  }

  const Study& study_;
  const std::vector<PointResult>& results_;
  std::string by_;
  ChosenKeys chosen_;
  std::vector<std::string> along_, among_;  // values, and alternatives
};

}  // namespace

std::optional<SweptBest> swept_best(const Study& study, const std::vector<PointResult>& results) {
  const std::string by = metric_of(study, results);
  if (by.empty()) return std::nullopt;
  const bool lower = metric_named(by)->better == Better::lower;
  std::optional<SweptBest> best;
  for (const PointResult& result : results) {
    const SettingOutcome outcome = outcome_of(study, result, by);
    if (!outcome.may_win()) continue;
    const double value = outcome.value;
    const bool better = !best || (lower ? value < best->value : value > best->value);
    if (better) best = SweptBest{by, result.id, value};
  }
  return best;
}

std::string best_line(const Study& study, const std::optional<SweptBest>& best) {
  std::vector<std::string> limits, axes;
  for (const Condition& limit : study.limits) limits.push_back(limit.text());
  const std::string all = fmt::format("{}", fmt::join(limits, " and "));
  if (!best) return limits.empty() ? "" : fmt::format("No point keeps {}\n", all);
  const std::string where = limits.empty() ? "" : " where " + all;
  for (std::size_t i = 0; i < study.keys.size(); ++i) {
    axes.push_back(fmt::format("{}={}", study.keys[i], study.points[best->point][i]));
  }
  return fmt::format("Best by {}{}: {:.6g} at {}\n", best->by, where, best->value, fmt::join(axes, " "));
}

std::string turns_table(const SweptTurns& turns) {
  if (turns.stretches.empty()) return "";
  constexpr std::size_t kMost = 60;
  TextTable table("lrrlr");
  const bool besides = !turns.stretches.front().beside.empty();
  table.row({besides ? "at" : "", "from", "to", "best by " + turns.by, "ahead by at least"});
  for (std::size_t i = 0; i < std::min(kMost, turns.stretches.size()); ++i) {
    const SweptStretch& s = turns.stretches[i];
    const std::string ahead = s.winner.empty() || !s.ratio ? "-" : fmt::format("{:.1f} %", 100 * (*s.ratio - 1));
    table.row({s.beside, s.from, s.to, s.is_tie ? "a tie" : s.winner.empty() ? "none" : s.winner, ahead});
  }
  const std::size_t more = turns.stretches.size() - std::min(kMost, turns.stretches.size());
  return fmt::format("\nalong {}{}\n{}{}", turns.along,
                     turns.knows_memory ? "" : ", whether it fits memory or not: the table has no fits_memory",
                     table.text("  "), more > 0 ? fmt::format("  ... {} more in JSON\n", more) : "");
}

SweptTurns swept_turns(const Study& study, const std::vector<PointResult>& results) {
  constexpr std::size_t kMost = 100'000;  // nobody reads the turns of more
  return results.empty() || results.size() > kMost ? SweptTurns{} : Turns(study, results).all();
}

}  // namespace moeline
