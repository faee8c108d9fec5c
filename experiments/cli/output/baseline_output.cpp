#include "experiments/cli/output/validate_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text_table.hpp"

namespace moeline {
namespace {

As signed_error() { return {.decimals = 4, .least = kAny}; }

Fields<ChangedError> change_fields() {
  return Fields<ChangedError>()
      .add("id", "of the fact", &ChangedError::id)
      .add("was", "its error in the baseline", &ChangedError::was, signed_error())
      .add("error", "its error now", &ChangedError::now, signed_error());
}

std::string changes_table(const std::string& what, const std::vector<ChangedError>& changes) {
  if (changes.empty()) return "";
  TextTable table("lrr");
  table.row({what, "was", "now"});
  for (const ChangedError& each : changes) table.row({each.id, signed_percent(each.was), signed_percent(each.now)});
  return table.text() + "\n";
}

// The errors of one fact, of every version that has it and of now.
using ErrorCourse = std::vector<std::optional<double>>;

ErrorCourse course_of(const std::string& id, const Baseline& baseline, const FactErrorById& now) {
  ErrorCourse course;
  const auto add = [&](const FactErrorById& errors) {
    const auto found = errors.find(id);
    course.push_back(found == errors.end() ? std::nullopt : std::optional(found->second));
  };
  for (const BaselineVersion& version : baseline.versions) add(version.errors);
  add(now);
  return course;
}

// Lines around that of no error.
class ErrorPicture {
 public:
  explicit ErrorPicture(const std::map<std::string, ErrorCourse>& courses) {
    for (const auto& [id, course] : courses) {
      points_ = std::max(points_, course.size());
      for (const auto& error : course) most_ = std::max(most_, std::abs(error.value_or(0)));
    }
  }

  [[nodiscard]] std::string svg(const std::map<std::string, ErrorCourse>& courses) const {
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n",
        kWidth, kHeight);
    for (const double error : {-most_, 0.0, most_}) {
      text += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#bbb\"/>\n", kLeft, kWidth,
                          y(error), y(error));
      text += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y(error) + 4,
                          signed_percent(error));
    }
    for (const auto& [id, course] : courses) text += line_of(id, course);
    return text + "</svg>";
  }

 private:
  static constexpr int kWidth = 760, kHeight = 150, kLeft = 70, kMargin = 14;

  [[nodiscard]] double x(std::size_t point) const {
    const auto gaps = static_cast<double>(std::max<std::size_t>(1, points_ - 1));
    return kLeft + kMargin + static_cast<double>(point) * (kWidth - kLeft - 2 * kMargin) / gaps;
  }
  [[nodiscard]] double y(double error) const { return kHeight / 2.0 - error / most_ * (kHeight / 2.0 - kMargin); }

  [[nodiscard]] std::string line_of(const std::string& id, const ErrorCourse& course) const {
    std::string places, dots;
    for (std::size_t i = 0; i < course.size(); ++i) {
      if (!course[i]) continue;
      places += fmt::format("{:.1f},{:.1f} ", x(i), y(*course[i]));
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"><title>{}: {}</title></circle>", x(i),
                          y(*course[i]), id, signed_percent(*course[i]));
    }
    return fmt::format(
        "<g fill=\"#2a6fb0\" stroke=\"#2a6fb0\" opacity=\"0.6\"><polyline fill=\"none\" points=\"{}\"/>{}</g>\n",
        places, dots);
  }

  std::size_t points_ = 1;
  double most_ = 0.05;
};

TextSection section_of(const ScoredSubject& subject, const Baseline& baseline, const FactErrorById& now) {
  std::map<std::string, ErrorCourse> courses;
  for (const ScoredFact& scored : subject.facts) {
    courses.emplace(scored.fact.id, course_of(scored.fact.id, baseline, now));
  }
  TextTable table("lrr");
  table.row({"fact", "newest version", "now"});
  const auto cell = [](const std::optional<double>& error) { return error ? signed_percent(*error) : "-"; };
  for (const auto& [id, course] : courses) table.row({id, cell(course[course.size() - 2]), cell(course.back())});
  TextSection section{.title = subject.subject.name, .lines = {subject.subject.about}};
  section.tables.push_back(std::move(table));
  section.svg = ErrorPicture(courses).svg(courses);
  return section;
}

}  // namespace

std::string to_json(const Baseline& baseline) {
  const auto version = Fields<BaselineVersion>()
                           .add("program", "", &BaselineVersion::program)
                           .values("errors", "", &BaselineVersion::errors, signed_error());
  return output_fields<Baseline>().list("versions", "", &Baseline::versions, version).json(baseline);
}

std::string baseline_table(const BaselineVerdict& verdict) {
  const BaselineDifference& changes = verdict.changes;
  std::string text = "\n" + changes_table("2 points worse, or more", changes.worse) +
                     changes_table("2 points better, or more", changes.better);
  text += fmt::format("against {} of {}: {} worse, {} better, {} within 2 points", verdict.program, verdict.file,
                      changes.worse.size(), changes.better.size(), changes.alike);
  if (!changes.added.empty()) text += fmt::format(", {} new", changes.added.size());
  if (!changes.absent.empty()) text += fmt::format(", {} not predicted here", changes.absent.size());
  return text + "\n";
}

Fields<BaselineVerdict> baseline_fields() {
  const auto changes =
      Fields<BaselineDifference>()
          .add("alike", "facts whose |error| is within 2 points of what it was", &BaselineDifference::alike)
          .list("worse", "facts whose |error| is more by 2 points or more", &BaselineDifference::worse, change_fields())
          .list("better", "facts whose |error| is less by 2 points or more", &BaselineDifference::better,
                change_fields())
          .add("added", "facts that the baseline has not", &BaselineDifference::added)
          .add("absent", "facts of it that are not predicted now", &BaselineDifference::absent);
  return Fields<BaselineVerdict>()
      .add("file", "the baseline", &BaselineVerdict::file)
      .add("program", "its newest version, as --version prints it", &BaselineVerdict::program)
      .all(&BaselineVerdict::changes, changes);
}

Page baseline_page(const Validation& validation, const Baseline& baseline) {
  const FactErrorById now = errors_of(validation);
  Page page;
  page.title = "Errors of facts over the versions";
  std::vector<std::string> programs;
  for (const BaselineVersion& version : baseline.versions) programs.push_back(version.program);
  page.summary = {
      "Signed errors, predicted over measured less 1: a line for each fact, from the oldest version to now.",
      fmt::format("Versions: {}; the last point of a line is this program.", fmt::join(programs, "; "))};
  for (const ScoredSubject& subject : validation.subjects) page.before.push_back(section_of(subject, baseline, now));
  return page;
}

}  // namespace moeline
