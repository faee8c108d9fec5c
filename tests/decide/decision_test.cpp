// Who wins along an axis, and where that turns: settings whose times are known.
#include "experiments/decide/decision.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/text.hpp"

TEST_SUITE("decide/decision") {

using namespace moeline;

namespace {

using TimeAt = std::function<SettingOutcome(double)>;

SettingOutcome takes(double value) { return {.value = value}; }
SettingOutcome refused() { return {.refused = "does not divide"}; }
SettingOutcome unfit(double value) { return {.value = value, .against = "does not fit memory"}; }

DecideCourse course_of(const char* axis, const std::vector<TimeAt>& settings) {
  const DecideAxis along = read_axis(axis);
  return decide_along(along, settings.size(), Better::lower, [&](std::size_t setting, const std::string& at) {
    return settings[setting](as_number<double>(at).value());
  });
}

// "0 until 80, 1 from 81"
std::string turns_of(const DecideCourse& course) {
  const auto who = [](const DecidePoint& point) {
    if (point.winner.setting) return std::to_string(*point.winner.setting);
    return std::string(point.winner.is_tie ? "tie" : "none");
  };
  std::string text;
  for (const Turn& turn : course.turns) {
    text += who(course.points[turn.before]) + " until " + course.points[turn.before].at + ", ";
    text +=
        who(course.points[turn.at]) + " from " + course.points[turn.at].at + (turn.is_exact ? "; " : " or before; ");
  }
  return text;
}

const TimeAt kSteep = [](double x) { return takes(10 + x); };
const TimeAt kFlat = [](double x) { return takes(50 + x / 2); };

}  // namespace

TEST_CASE("two settings that cross between 80 and 81 turn there") {
  CHECK(turns_of(course_of("n=1..512", {[](double x) { return takes(10 + x); },
                                        [](double x) { return takes(50.25 + x / 2); }})) == "0 until 80, 1 from 81; ");
}

TEST_CASE("where both are alike at one point there is a tie between two turns") {
  CHECK(turns_of(course_of("n=1..512", {kSteep, kFlat})) == "0 until 79, tie from 80; tie until 80, 1 from 81; ");
}

TEST_CASE("two that never cross have no turn, and equal ones tie everywhere") {
  CHECK(course_of("n=1..512", {kSteep, [](double x) { return takes(11 + x); }}).turns.empty());
  const DecideCourse alike = course_of("n=1..512", {kSteep, kSteep});
  CHECK(alike.turns.empty());
  for (const DecidePoint& point : alike.points) CHECK(point.winner.is_tie);
}

TEST_CASE("two that cross twice turn twice") {
  const TimeAt hollow = [](double x) { return takes(100 + std::abs(x - 200.5)); };
  CHECK(turns_of(course_of("n=1..512", {hollow, [](double) { return takes(200); }})) ==
        "1 until 100, 0 from 101; 0 until 300, 1 from 301; ");
}

TEST_CASE("a third setting that wins between two others is found by bisection") {
  const TimeAt third = [](double x) { return takes(std::abs(x - 90) < 10 ? 1 : 1000); };
  const DecideCourse course =
      course_of("n=[1, 32, 128, 512]", {kSteep, [](double x) { return takes(50.25 + x / 2); }, third});
  CHECK(turns_of(course) == "0 until 80, 2 from 81; 2 until 99, 1 from 100; ");
}

TEST_CASE("what does not divide gives way to the nearest value that does") {
  const TimeAt even = [](double x) { return std::fmod(x, 2) == 0 ? takes(10 + x) : refused(); };
  const TimeAt other = [](double x) { return takes(50.25 + x / 2); };
  CHECK(turns_of(course_of("n=2..512", {even, other})) == "0 until 80, 1 from 82; ");
  // A divisor that both sides share is as fine as the search gets.
  const TimeAt groups = [](double x) { return std::fmod(x, 128) == 0 ? takes(10 + x) : refused(); };
  CHECK(turns_of(course_of("n=[2560, 24320]", {groups, [](double x) { return takes(4260 + x / 2); }})) ==
        "0 until 8448, 1 from 8576 or before; ");
  const TimeAt hundreds = [](double x) { return std::fmod(x, 100) == 0 ? takes(10 + x) : refused(); };
  CHECK(turns_of(course_of("n=[100, 300]", {hundreds, [](double x) { return takes(150.25 + x / 8); }})) ==
        "0 until 100, 1 from 200 or before; ");
}

TEST_CASE("who is refused, does not fit or breaks a limit from some point on loses there") {
  const TimeAt until_70 = [](double x) { return x <= 70 ? takes(1) : refused(); };
  CHECK(turns_of(course_of("n=1..512", {until_70, kSteep})) == "0 until 70, 1 from 71; ");
  const TimeAt fits_until_70 = [](double x) { return x <= 70 ? takes(1) : unfit(1); };
  CHECK(turns_of(course_of("n=1..512", {fits_until_70, kSteep})) == "0 until 70, 1 from 71; ");
  CHECK(turns_of(course_of("n=1..512", {fits_until_70, fits_until_70})) == "tie until 70, none from 71; ");
}

TEST_CASE("a refused setting has no value, and the other wins without a second") {
  const DecideCourse course = course_of("n=1..4", {[](double) { return refused(); }, kFlat});
  CHECK(course.turns.empty());
  for (const DecidePoint& point : course.points) {
    CHECK(point.winner.setting == 1);
    CHECK_FALSE(point.winner.second);
  }
}

TEST_CASE("what is 0 is no part of a ratio") {
  const Winner winner = winner_of({takes(0), takes(100)}, Better::lower);
  CHECK(winner.setting == 0);
  CHECK_FALSE(winner.ratio);
}

TEST_CASE("the ratio says how much better the winner is, whichever way is better") {
  CHECK(*winner_of({takes(110), takes(100)}, Better::lower).ratio == doctest::Approx(1.1));
  const Winner higher = winner_of({takes(110), takes(100)}, Better::higher);
  CHECK(higher.setting == 0);
  CHECK(*higher.ratio == doctest::Approx(1.1));
}

TEST_CASE("between numbers that are not whole a turn is told to a hundredth; between words there is nothing") {
  const DecideCourse course =
      course_of("share=0.1..0.9", {[](double x) { return takes(x); }, [](double x) { return takes(1.06 - x); }});
  REQUIRE(course.turns.size() == 1);
  const double before = as_number<double>(course.points[course.turns[0].before].at).value();
  const double at = as_number<double>(course.points[course.turns[0].at].at).value();
  CHECK(before <= 0.53);
  CHECK(at >= 0.53);
  CHECK(at - before <= 0.0054);
  CHECK(read_axis("model=[a, b]").kind == DecideAxis::Kind::words);
}

}  // TEST_SUITE("decide/decision")
