#include "experiments/decide/decision.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

constexpr double kAlike = 1e-9;
constexpr int kTries = 16;  // to either side of a middle: all, where neighbours are so near

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
    for (const double at : candidates(*half, from, to)) {
      DecidePoint point = simulated(at);
      if (is_like(point, low, high)) return point;
    }
    return std::nullopt;
  }

  // The middle and what may stand for it, each once.
  [[nodiscard]] std::vector<double> candidates(double half, double from, double to) const {
    std::vector<double> found = {half};
    const auto add = [&](double at) {
      if (at > from && at < to && std::ranges::find(found, at) == found.end()) found.push_back(at);
    };
    if (axis_.kind != DecideAxis::Kind::whole) return found;
    for (const double divisor : shared_divisors(from, to)) add(std::round(half / divisor) * divisor);
    for (int away = 1; away <= kTries; ++away) {
      add(half - away);
      add(half + away);
    }
    return found;
  }

  // The largest first, and no more than have a use.
  static std::vector<double> shared_divisors(double a, double b) {
    constexpr std::size_t kMost = 32;
    const auto shared = std::gcd(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
    std::vector<double> divisors;
    for (std::int64_t parts = 1; parts <= shared && divisors.size() < kMost; ++parts) {
      if (shared % parts == 0) divisors.push_back(static_cast<double>(shared / parts));
      if (parts > 100'000) break;
    }
    return divisors;
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
  Winner winner{.setting = order[0], .second = order[1]};
  winner.is_tie = std::abs(first - second) <= kAlike * std::abs(first);
  if (winner.is_tie) winner.setting.reset();
  if (first > 0 && second > 0) winner.ratio = better == Better::lower ? second / first : first / second;
  return winner;
}

DecideCourse decide_along(const DecideAxis& axis, std::size_t settings, Better better, const Evaluate& evaluate,
                          const Progress& progress) {
  return Course(axis, settings, better, evaluate).run(progress);
}

}  // namespace moeline
