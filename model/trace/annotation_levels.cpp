#include "trace/annotation_levels.hpp"

#include <algorithm>
#include <unordered_map>

#include "trace/step_names.hpp"

namespace moeline {
namespace {

enum class Name : std::uint8_t { other, framework, step, profiler_step };

Name meaning_of(const std::string& name, const std::set<std::string>& also) {
  if (also.contains(name) || kind_of_step(name)) return Name::step;
  if (profiler_step(name)) return Name::profiler_step;
  return is_of_framework(name) ? Name::framework : Name::other;
}

// Each name is looked at once.
class Meanings {
 public:
  explicit Meanings(const std::set<std::string>& also) : also_(also) {}
  Name of(const std::string& name) {
    const auto [found, added] = known_.try_emplace(name, Name::other);
    if (added) found->second = meaning_of(name, also_);
    return found->second;
  }

 private:
  const std::set<std::string>& also_;
  std::unordered_map<std::string, Name> known_;
};

bool is_longer(const Annotation& a, const Annotation& b) { return a.end_ns - a.start_ns > b.end_ns - b.start_ns; }

// Names of annotations that have a step inside, on the same track. Twins on a stream may have the bounds of the same
// events: which of them is inside is not known then.
std::set<std::string> names_around_steps(const TraceRecords& records, const std::vector<AnnotationLevel>& levels) {
  std::vector<std::vector<std::size_t>> open(records.tracks());  // annotations, by track
  std::set<std::string> names;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const AnnotationRecord& record = records.annotations[i];
    std::vector<std::size_t>& around = open[record.track];
    while (!around.empty() && records.annotations[around.back()].annotation.end_ns < record.annotation.end_ns) {
      around.pop_back();
    }
    if (levels[i] == AnnotationLevel::step) {
      for (const std::size_t outer : around) {
        const Annotation& annotation = records.annotations[outer].annotation;
        if (is_longer(annotation, record.annotation)) names.insert(annotation.name);
      }
    } else if (levels[i] == AnnotationLevel::phase) {
      around.push_back(i);
    }
  }
  return names;
}

}  // namespace

Levels levels_of(const TraceRecords& records, const std::set<std::string>& also) {
  Meanings meanings(also);
  const auto any_is = [&](Name wanted) {
    return std::any_of(records.annotations.begin(), records.annotations.end(),
                       [&](const AnnotationRecord& record) { return meanings.of(record.annotation.name) == wanted; });
  };
  Levels levels;
  const Name steps = any_is(Name::step) ? Name::step : Name::profiler_step;
  levels.by_profiler = steps == Name::profiler_step;
  for (const AnnotationRecord& record : records.annotations) {
    const Name meaning = meanings.of(record.annotation.name);
    levels.of.push_back(meaning == steps         ? AnnotationLevel::step
                        : meaning == Name::other ? AnnotationLevel::phase
                                                 : AnnotationLevel::ignored);
  }
  const std::set<std::string> around = names_around_steps(records, levels.of);
  for (std::size_t i = 0; i < levels.of.size() && !around.empty(); ++i) {
    if (levels.of[i] == AnnotationLevel::phase && around.contains(records.annotations[i].annotation.name)) {
      levels.of[i] = AnnotationLevel::ignored;
    }
  }
  return levels;
}

}  // namespace moeline
