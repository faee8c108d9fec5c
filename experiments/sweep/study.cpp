#include "experiments/sweep/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/spec.hpp"
#include "base/text.hpp"
#include "experiments/run/metrics.hpp"

namespace moeline {
namespace {

constexpr std::size_t kLongest = 1000;  // it is read anew for every point
constexpr int kDeepest = 100;           // brackets in each other

using ValueOf = std::function<double(const std::string& key)>;

// A recursive descent over the text: comparison of sums of products of numbers, keys and brackets.
class Parser {
 public:
  Parser(std::string_view text, const ValueOf& value_of) : text_(text), value_of_(value_of) {}

  bool comparison() {
    const double left = sum();
    const std::string sign = comparison_sign();
    const double right = sum();
    if (at_ < text_.size()) fail(fmt::format("does not end at '{}'", text_.substr(at_)));
    if (sign == "==") return left == right;
    if (sign == "!=") return left != right;
    if (sign == "<=") return left <= right;
    if (sign == ">=") return left >= right;
    return sign == "<" ? left < right : left > right;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw SpecError(fmt::format("'{}' {}", text_, why)); }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  // The next character where it is one of these, which then lies behind; else 0.
  char take(std::string_view any_of) {
    skip_blanks();
    if (at_ == text_.size() || any_of.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }

  std::string comparison_sign() {
    skip_blanks();
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      at_ += sign.size();
      return std::string(sign);
    }
    fail("compares nothing: one of == != < <= > >= stands between two sides");
  }

  double sum() {
    double value = product();
    while (const char sign = take("+-")) value = sign == '+' ? value + product() : value - product();
    return value;
  }

  double product() {
    double value = atom();
    while (const char sign = take("*/%")) {
      const double by = atom();
      if (sign != '*' && by == 0) fail("divides by 0");
      value = sign == '*' ? value * by : sign == '/' ? value / by : std::fmod(value, by);
    }
    return value;
  }

  double atom() {
    if (take("(") != 0) {
      if (++depth_ > kDeepest) fail("is nested too deeply");
      const double value = sum();
      if (take(")") == 0) fail("lacks a closing bracket");
      --depth_;
      return value;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" ()+-*/%=!<>").find(text_[at_]) == std::string_view::npos) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word.empty()) fail("lacks a number or a key");
    const auto number = as_number<double>(word);
    return number ? *number : value_of_(word);
  }

  std::string_view text_;
  const ValueOf& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Condition::Condition(std::string text, const std::vector<std::string>& keys, const char* what)
    : text_(std::move(text)) {
  if (text_.size() > kLongest) throw SpecError(fmt::format("one of more than {} characters", kLongest));
  const ValueOf known = [&](const std::string& key) -> double {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) throw SpecError(unknown_name(what, key, keys));
    return NAN;  // as yet any number: only what divides by a written 0 is refused
  };
  (void)Parser(text_, known).comparison();
}

bool Condition::holds(const std::map<std::string, std::string>& values) const {
  const ValueOf value = [&](const std::string& key) {
    const std::string& written = values.at(key);
    if (const auto number = as_number<double>(written)) return *number;
    throw SpecError(fmt::format("'{}' needs numbers, and {} has '{}'", text_, key, written));
  };
  return Parser(text_, value).comparison();
}

namespace {

constexpr std::size_t kMostValues = 1'000'000;

std::vector<std::string> read_range(const Spec& range) {
  constexpr double kLargest = 1e12;
  range.expect({"from", "to", "step", "factor"});
  const double from = range.number("from", -kLargest, kLargest);
  const double to = range.number("to", from, kLargest);
  const bool multiplies = range.has("factor");
  if (multiplies == range.has("step")) throw range.error("step", "or factor is needed, and not both");
  const double by = multiplies ? range.number("factor", 1.001, kLargest) : range.number("step", 1e-9, kLargest);
  if (multiplies && from <= 0) throw range.error("from", "must be above 0 where a factor multiplies it");
  std::vector<std::string> values;
  const double last = to * (1 + 1e-12);  // rounding loses no end
  for (std::size_t i = 0; i < kMostValues; ++i) {
    const auto steps = static_cast<double>(i);
    const double value = multiplies ? from * std::pow(by, steps) : from + steps * by;
    if (value > last) return values;
    values.push_back(fmt::format("{:.12g}", value));
  }
  throw range.error("to", fmt::format("gives more than {} values", kMostValues));
}

std::vector<Axis> read_axes(const Spec& axes) {
  std::vector<Axis> list;
  for (const std::string& key : axes.keys()) {
    Axis axis{key, axes.is_list(key) ? axes.texts(key) : read_range(axes.map(key))};
    if (axis.values.empty()) throw axes.error(key, "has no values");
    list.push_back(std::move(axis));
  }
  return list;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Axes that vary together.
using Group = std::vector<std::size_t>;

std::vector<Group> read_groups(const Spec& study, const std::vector<Axis>& axes) {
  std::vector<std::string> keys;
  for (const Axis& axis : axes) keys.push_back(axis.key);
  std::vector<std::size_t> leader(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) leader[i] = i;
  for (const std::string& together : study.has("zip") ? study.texts("zip") : std::vector<std::string>{}) {
    Group group;
    for (const std::string& key : words_of(together)) {
      const auto found = std::find(keys.begin(), keys.end(), key);
      if (found == keys.end()) throw study.error("zip", "names an " + unknown_name("axis", key, keys));
      group.push_back(static_cast<std::size_t>(found - keys.begin()));
    }
    for (const std::size_t axis : group) {
      if (leader[axis] != axis) throw study.error("zip", fmt::format("has '{}' twice", keys[axis]));
      if (axes[axis].values.size() != axes[group.front()].values.size()) {
        throw study.error("zip", fmt::format("'{}': {} has {} values, and {} has {}", together, keys[group.front()],
                                             axes[group.front()].values.size(), keys[axis], axes[axis].values.size()));
      }
      leader[axis] = *std::min_element(group.begin(), group.end());
    }
  }
  std::vector<Group> groups;
  for (std::size_t first = 0; first < axes.size(); ++first) {
    if (leader[first] != first) continue;
    Group& group = groups.emplace_back();
    for (std::size_t axis = first; axis < axes.size(); ++axis) {
      if (leader[axis] == first) group.push_back(axis);
    }
  }
  return groups;
}

std::vector<std::string> both(std::vector<std::string> one, const std::vector<std::string>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const Metric* metric : run_metrics()) names.emplace_back(metric->name);
  return names;
}

// Which points there are, and what of them must hold once they are simulated.
struct StudyConditions {
  std::vector<Condition> of_axes, limits;
};

// A condition that names a metric is a limit.
StudyConditions read_conditions(const Spec& spec, const Study& study) {
  constexpr std::size_t kMostConditions = 100;  // each is asked about every point
  const std::vector<std::string> texts = spec.has("where") ? spec.texts("where") : std::vector<std::string>{};
  if (texts.size() > kMostConditions) {
    throw spec.error("where", fmt::format("has more than {} conditions", kMostConditions));
  }
  StudyConditions conditions;
  for (const std::string& text : texts) {
    try {
      Condition any(text, both(study.keys, metric_names()), "axis or metric");
      try {
        conditions.of_axes.emplace_back(text, study.keys);
      } catch (const SpecError&) {
        conditions.limits.emplace_back(text, both(study.keys, study.metrics), "axis, or metric of the study,");
      }
    } catch (const SpecError& error) {
      throw spec.error("where", fmt::format("has {}", error.what()));
    }
  }
  return conditions;
}

// `by_key`: the values of the point before.
bool all_hold(const std::vector<Condition>& conditions, const std::vector<std::string>& keys,
              const std::vector<std::string>& values, std::map<std::string, std::string>& by_key) {
  if (conditions.empty()) return true;
  for (std::size_t i = 0; i < keys.size(); ++i) by_key[keys[i]] = values[i];
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& c) { return c.holds(by_key); });
}

void add_points(const Spec& spec, const std::vector<Axis>& axes, const std::vector<Condition>& conditions,
                Study& study) {
  const std::vector<Group> groups = read_groups(spec, axes);
  double combinations = 1;
  for (const Group& group : groups) combinations *= static_cast<double>(axes[group.front()].values.size());
  if (combinations > static_cast<double>(kMostPoints)) {
    throw spec.error("axes", fmt::format("have {:.3g} combinations; at most {} are swept", combinations, kMostPoints));
  }
  if (combinations * static_cast<double>(axes.size()) > static_cast<double>(kMostPointValues)) {
    throw spec.error("axes", fmt::format("have {} combinations of {} values each; at most {} values are swept",
                                         combinations, axes.size(), kMostPointValues));
  }
  std::map<std::string, std::string> by_key;
  for (std::size_t number = 0; number < static_cast<std::size_t>(combinations); ++number) {
    std::vector<std::string> values(axes.size());
    std::size_t rest = number;
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      const std::size_t count = axes[group->front()].values.size();
      for (const std::size_t axis : *group) values[axis] = axes[axis].values[rest % count];
      rest /= count;
    }
    try {
      if (all_hold(conditions, study.keys, values, by_key)) study.points.push_back(std::move(values));
    } catch (const SpecError& error) {
      throw spec.error("where", fmt::format("has {}", error.what()));
    }
  }
  if (study.points.empty()) throw spec.error("where", "leaves no point");
}

std::vector<std::string> read_metrics(const Spec& spec) {
  const std::vector<std::string> known = metric_names();
  if (!spec.has("metrics")) return known;
  std::vector<std::string> wanted = spec.texts("metrics");
  for (auto name = wanted.begin(); name != wanted.end(); ++name) {
    *name = at_key(spec, "metrics", [&] { return expect_name("metric", *name, known); });
    if (std::find(wanted.begin(), name, *name) != name)
      throw spec.error("metrics", fmt::format("has '{}' twice", *name));
  }
  if (wanted.empty()) throw spec.error("metrics", "names none");
  return wanted;
}

}  // namespace

bool Study::is_within_limits(std::size_t point, const std::vector<double>& values) const {
  if (limits.empty()) return true;
  std::map<std::string, std::string> by_name;
  for (std::size_t i = 0; i < keys.size(); ++i) by_name[keys[i]] = points[point][i];
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    by_name[metrics[i]] = fmt::format("{}", i < values.size() ? values[i] : NAN);
  }
  return std::all_of(limits.begin(), limits.end(), [&](const Condition& limit) { return limit.holds(by_name); });
}

std::vector<std::string> Study::assignments_of(std::size_t point) const {
  std::vector<std::string> all = assignments;
  for (std::size_t i = 0; i < keys.size(); ++i) all.push_back(fmt::format("{}={}", keys[i], points[point][i]));
  return all;
}

Study load_study(const std::filesystem::path& file) {
  const Spec spec = Spec::load(file);
  spec.expect({"schema", "scenario", "set", "axes", "zip", "where", "metrics"});
  (void)spec.integer("schema", 1, 1);
  Study study;
  study.file = file;
  study.scenario = beside(file, spec.text("scenario"));
  (void)Spec::load(study.scenario);  // one that cannot be read is no point's fault
  if (spec.has("set")) study.assignments = spec.texts("set");
  const std::vector<Axis> axes = read_axes(spec.map("axes"));
  if (axes.empty()) throw spec.error("axes", "are empty");
  for (const Axis& axis : axes) study.keys.push_back(axis.key);
  study.metrics = read_metrics(spec);
  StudyConditions conditions = read_conditions(spec, study);
  study.limits = std::move(conditions.limits);
  add_points(spec, axes, conditions.of_axes, study);
  for (const std::string& together : spec.has("zip") ? spec.texts("zip") : std::vector<std::string>{}) {
    study.zipped.push_back(words_of(together));
  }
  study.text = read_text(file) + read_text(study.scenario);
  return study;
}

}  // namespace moeline
