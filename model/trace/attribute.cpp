#include "trace/attribute.hpp"

#include <algorithm>

namespace moeline {
namespace {

constexpr std::int32_t kNoAnnotation = -1;

// Annotations that have started and can still be the innermost one of something. One that starts later and ends no
// earlier contains whatever the older one contains from then on, so the older one is dropped: ends fall strictly from
// bottom to top, and the innermost annotation around a range is the topmost that ends no earlier than it.
class Innermost {
 public:
  void open(std::int32_t annotation, std::int64_t end_ns) {
    while (!stack_.empty() && stack_.back().end_ns <= end_ns) stack_.pop_back();
    stack_.push_back({annotation, end_ns});
  }
  [[nodiscard]] std::int32_t around(std::int64_t end_ns) const {
    const auto too_short =
        std::partition_point(stack_.begin(), stack_.end(), [&](const Open& open) { return open.end_ns >= end_ns; });
    return too_short == stack_.begin() ? kNoAnnotation : std::prev(too_short)->annotation;
  }

 private:
  struct Open {
    std::int32_t annotation = kNoAnnotation;
    std::int64_t end_ns = 0;
  };
  std::vector<Open> stack_;
};

// "Which annotation contains this range?", asked for one GPU event.
struct Question {
  std::size_t event = 0;
  Track track = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

std::vector<Question> questions_of(const TraceRecords& records, Where where) {
  std::vector<Question> questions;
  for (std::size_t i = 0; i < records.gpu.size(); ++i) {
    const auto& [event, track, correlation, external_id] = records.gpu[i];
    if (where == Where::on_stream) {
      questions.push_back({i, track, event.start_ns, event.end_ns});
    } else if (event.call >= 0) {
      const CallRecord& launch = records.calls[static_cast<std::size_t>(event.call)];
      questions.push_back({i, launch.track, launch.call.start_ns, launch.call.start_ns});
    }
  }
  std::sort(questions.begin(), questions.end(),
            [](const Question& a, const Question& b) { return a.start_ns < b.start_ns; });
  return questions;
}

// The annotations that may be an answer, in their order.
std::vector<std::size_t> wanted_of(const TraceRecords& records, const std::vector<AnnotationLevel>& levels,
                                   AnnotationLevel level, Where where) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool on_gpu = records.annotations[i].annotation.on_gpu;
    if (levels[i] == level && on_gpu == (where == Where::on_stream)) wanted.push_back(i);
  }
  return wanted;
}

}  // namespace

std::vector<std::int32_t> innermost(const TraceRecords& records, const std::vector<AnnotationLevel>& levels,
                                    AnnotationLevel level, Where where) {
  std::vector<std::int32_t> found(records.gpu.size(), kNoAnnotation);
  const std::vector<std::size_t> wanted = wanted_of(records, levels, level, where);
  if (wanted.empty()) return found;
  std::vector<Innermost> on_track(records.tracks());
  Innermost on_any_thread;  // stays empty on the GPU: what runs on another stream says nothing
  auto next = wanted.begin();
  for (const Question& question : questions_of(records, where)) {  // one sweep over time answers all of them
    for (; next != wanted.end(); ++next) {
      const auto& [annotation, track] = records.annotations[*next];
      if (annotation.start_ns > question.start_ns) break;
      on_track[track].open(static_cast<std::int32_t>(*next), annotation.end_ns);
      if (where == Where::at_launch) on_any_thread.open(static_cast<std::int32_t>(*next), annotation.end_ns);
    }
    std::int32_t& annotation = found[question.event];
    annotation = on_track[question.track].around(question.end_ns);
    if (annotation == kNoAnnotation) annotation = on_any_thread.around(question.end_ns);
  }
  return found;
}

void attribute(TraceRecords& records, const std::vector<AnnotationLevel>& levels) {
  const std::vector<std::int32_t> on_stream = innermost(records, levels, AnnotationLevel::phase, Where::on_stream);
  const std::vector<std::int32_t> at_launch = innermost(records, levels, AnnotationLevel::phase, Where::at_launch);
  for (std::size_t i = 0; i < records.gpu.size(); ++i) {
    records.gpu[i].event.annotation = on_stream[i] != kNoAnnotation ? on_stream[i] : at_launch[i];
  }
}

}  // namespace moeline
