#include "timeline/attribute.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

namespace moeline {
namespace {

constexpr std::int32_t kNone = -1;

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
    return too_short == stack_.begin() ? kNone : std::prev(too_short)->annotation;
  }

 private:
  struct Open {
    std::int32_t annotation = kNone;
    std::int64_t end_ns = 0;
  };
  std::vector<Open> stack_;
};

// "Which annotation contains this range?", asked for one GPU event.
struct Question {
  GpuEvent* event = nullptr;
  Track track = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// What frameworks annotate on their own says nothing about the program's phases.
bool counts(const Annotation& annotation) {
  constexpr std::array<std::string_view, 6> kFrameworks = {
      "ProfilerStep", "nccl:", "Optimizer.", "enumerate(DataLoader", "## Call Compiled", "Torch-Compiled"};
  return std::none_of(kFrameworks.begin(), kFrameworks.end(),
                      [&](std::string_view prefix) { return annotation.name.starts_with(prefix); });
}

// One sweep over time answers all questions, from the annotations of the GPU or from those of the CPU.
void answer(std::vector<Question> questions, const TraceRecords& records, bool on_gpu) {
  std::sort(questions.begin(), questions.end(),
            [](const Question& a, const Question& b) { return a.start_ns < b.start_ns; });
  std::vector<Innermost> on_track(records.tracks());
  Innermost on_any_thread;  // stays empty on the GPU: what runs on another stream says nothing
  std::size_t next = 0;
  for (const Question& question : questions) {
    for (; next < records.annotations.size(); ++next) {
      const auto& [annotation, track] = records.annotations[next];
      if (annotation.start_ns > question.start_ns) break;
      if (annotation.on_gpu != on_gpu || !counts(annotation)) continue;
      on_track[track].open(static_cast<std::int32_t>(next), annotation.end_ns);
      if (!on_gpu) on_any_thread.open(static_cast<std::int32_t>(next), annotation.end_ns);
    }
    std::int32_t found = on_track[question.track].around(question.end_ns);
    if (found == kNone) found = on_any_thread.around(question.end_ns);
    question.event->annotation = found;
  }
}

std::vector<Question> questions_on_stream(TraceRecords& records) {
  std::vector<Question> questions;
  for (GpuRecord& record : records.gpu) {
    questions.push_back({&record.event, record.track, record.event.start_ns, record.event.end_ns});
  }
  return questions;
}

// For the events that their own stream told nothing about.
std::vector<Question> questions_at_launch(TraceRecords& records) {
  std::vector<Question> questions;
  for (auto& record : records.gpu) {
    if (record.event.annotation != kNone || record.event.call < 0) continue;
    const CallRecord& launch = records.calls[static_cast<std::size_t>(record.event.call)];
    questions.push_back({&record.event, launch.track, launch.call.start_ns, launch.call.start_ns});
  }
  return questions;
}

}  // namespace

void attribute(TraceRecords& records) {
  answer(questions_on_stream(records), records, true);
  answer(questions_at_launch(records), records, false);
}

}  // namespace moeline
