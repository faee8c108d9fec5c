#include "experiments/decide/decision.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

constexpr double kAlike = 1e-9;
constexpr int kTries = 16;  // to either side of a middle

class Course {
 public:
  Course(const DecideAxis& axis, std::size_t settings, Better better, const Evaluate& evaluate)
      : axis_(axis), settings_(settings), better_(better), evaluate_(evaluate) {}

  DecideCourse run(const Progress& progress) {
    simulate_asked(progress);
    DecideCourse course;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (i > 0) refine(asked_[i - 1], asked_[i], course.points);
      course.points.push_back(asked_[i]);
    }
    for (std::size_t i = 1; i < course.points.size(); ++i) {
      if (course.points[i - 1].winner == course.points[i].winner) continue;
      course.turns.push_back({i - 1, i, is_exact(course.points[i - 1], course.points[i])});
    }
    return course;
  }

 private:
  void simulate_asked(const Progress& progress) {
    for (const std::string& value : axis_.values) {
      asked_.push_back({.at = value, .outcomes = std::vector<SettingOutcome>(settings_)});
    }
    ProgressCount one_more(progress, "points", asked_.size() * settings_);
    parallel_for(asked_.size() * settings_, cores(), [&](std::size_t i) {
      DecidePoint& point = asked_[i / settings_];
      point.outcomes[i % settings_] = evaluate_(i % settings_, point.at);
      one_more();
    });
    for (DecidePoint& point : asked_) point.winner = winner_of(point.outcomes, better_);
  }

  [[nodiscard]] DecidePoint simulated(double at) const {
    DecidePoint point{.at = shortest(at), .is_asked = false, .outcomes = std::vector<SettingOutcome>(settings_)};
    parallel_for(settings_, cores(), [&](std::size_t i) { point.outcomes[i] = evaluate_(i, point.at); });
    point.winner = winner_of(point.outcomes, better_);
    return point;
  }

  // A setting that can be simulated on both sides can be here.
  [[nodiscard]] bool is_like(const DecidePoint& point, const DecidePoint& low, const DecidePoint& high) const {
    for (std::size_t i = 0; i < settings_; ++i) {
      const bool expected = low.outcomes[i].is_simulated() && high.outcomes[i].is_simulated();
      if (expected && !point.outcomes[i].is_simulated()) return false;
    }
    return true;
  }

  [[nodiscard]] std::optional<DecidePoint> between(const DecidePoint& low, const DecidePoint& high) const {
    if (axis_.kind == DecideAxis::Kind::words) return std::nullopt;
    const double from = number_of(low), to = number_of(high);
    const std::optional<double> half = middle(axis_, from, to);
    if (!half) return std::nullopt;
    DecidePoint point = simulated(*half);
    if (is_like(point, low, high)) return point;
    for (int away = 1; away <= kTries && axis_.kind == DecideAxis::Kind::whole; ++away) {
      for (const double at : {*half - away, *half + away}) {
        if (at <= from || at >= to) continue;
        point = simulated(at);
        if (is_like(point, low, high)) return point;
      }
    }
    return std::nullopt;
  }

  // What lies between two points with different winners, in order.
  void refine(const DecidePoint& low, const DecidePoint& high, std::vector<DecidePoint>& points) const {
    if (low.winner == high.winner) return;
    const std::optional<DecidePoint> point = between(low, high);
    if (!point) return;
    refine(low, *point, points);
    points.push_back(*point);
    refine(*point, high, points);
  }

  // All between them were tried.
  [[nodiscard]] bool is_exact(const DecidePoint& low, const DecidePoint& high) const {
    return axis_.kind == DecideAxis::Kind::whole && number_of(high) - number_of(low) <= 2 * kTries + 1;
  }

  [[nodiscard]] static double number_of(const DecidePoint& point) { return as_number<double>(point.at).value(); }

  const DecideAxis& axis_;
  std::size_t settings_;
  Better better_;
  const Evaluate& evaluate_;
  std::vector<DecidePoint> asked_;
};

}  // namespace

Winner winner_of(const std::vector<SettingOutcome>& outcomes, Better better) {
  MOELINE_CHECK(better != Better::neither, "a metric without a direction");
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].may_win()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return better == Better::lower ? outcomes[a].value < outcomes[b].value : outcomes[a].value > outcomes[b].value;
  });
  if (order.empty()) return {};
  if (order.size() == 1) return {.setting = order[0]};
  const double first = outcomes[order[0]].value, second = outcomes[order[1]].value;
  const bool tie = std::abs(first - second) <= kAlike * std::abs(first);
  const double ratio = tie ? 1 : better == Better::lower ? second / first : first / second;
  return {.setting = tie ? std::nullopt : std::optional(order[0]), .second = order[1], .is_tie = tie, .ratio = ratio};
}

DecideCourse decide_along(const DecideAxis& axis, std::size_t settings, Better better, const Evaluate& evaluate,
                          const Progress& progress) {
  return Course(axis, settings, better, evaluate).run(progress);
}

}  // namespace moeline
