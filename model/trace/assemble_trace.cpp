#include "trace/assemble_trace.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/error.hpp"
#include "trace/calls.hpp"
#include "trace/steps.hpp"
#include "trace/trace_records.hpp"

namespace moeline {
namespace {

// What a marker says of shapes and parameters differs from layer to layer and step to step.
std::string_view module_of(std::string_view annotation) {
  constexpr std::string_view kMarker = "{'Module': '";
  if (!annotation.starts_with(kMarker)) return annotation;
  annotation.remove_prefix(kMarker.size());
  return annotation.substr(0, annotation.find('\''));
}

// Most names are none of a layer: operators of PyTorch as ranges, by the million.
bool may_be_of_layer(std::string_view module) {
  return module.find("ayer") != std::string_view::npos || module.find("AYER") != std::string_view::npos;
}

// A stack beside others, as "decoder" or "visual", stays in the name; the model itself does not.
std::string in_stack(const std::string& stack, const std::string& inside) {
  const bool is_model = stack.empty() || stack == "model" || stack.ends_with(".model");
  return is_model ? inside : stack + "." + inside;
}

}  // namespace

std::string phase_of_module(std::string_view annotation) {
  static const RE2 in_layer(R"((?:(.*?)\.)?layers?\.\d+\.(.+))");
  static const RE2 whole_layer(R"((?i)(.*?(?:^|[^a-z])layers?)[._ #:]*\d+)");
  const std::string module(module_of(annotation));
  std::string stack, phase;
  if (!may_be_of_layer(module)) return module;
  if (RE2::FullMatch(module, in_layer, &stack, &phase)) return in_stack(stack, phase);
  return RE2::FullMatch(module, whole_layer, &phase) ? phase : module;
}

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

namespace {

// "train_rank3.json.gz", "rank_3.json", "rank-3": 3; any other name: 0.
std::uint32_t rank_of_file_name(const std::string& name) {
  const std::size_t word = name.rfind("rank");
  if (word == std::string::npos) return 0;
  std::string_view rest = std::string_view(name).substr(word + 4);
  if (rest.starts_with('_') || rest.starts_with('-')) rest.remove_prefix(1);
  return whole_number<std::uint32_t>(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0);
}

// "rank 3" in the name of a process.
std::optional<std::uint32_t> rank_of_process(const TraceRecords& records, const std::string& pid) {
  const auto name = records.processes.find(pid);
  if (name == records.processes.end()) return std::nullopt;
  const std::size_t word = name->second.find("rank ");
  if (word == std::string::npos) return std::nullopt;
  return whole_number<std::uint32_t>(std::string_view(name->second).substr(word + 5));
}

// One GPU process is the file's rank. Several have theirs in their names, as in a trace that holds two timelines.
std::vector<TraceGpu> gpus_of(const TraceRecords& records, std::uint32_t of_file, std::vector<std::string>& notes) {
  std::vector<TraceGpu> gpus;
  std::set<std::uint32_t> ranks;
  for (const std::string& pid : records.gpus) {
    const auto position = static_cast<std::uint32_t>(gpus.size());
    gpus.push_back({pid, records.gpus.size() == 1 ? of_file : rank_of_process(records, pid).value_or(position)});
    ranks.insert(gpus.back().rank);
  }
  if (ranks.size() == gpus.size()) return gpus;
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].rank = static_cast<std::uint32_t>(i);
  notes.emplace_back("GPU processes share a rank; they are numbered by first appearance");
  return gpus;
}

void count_from_earliest(TraceRecords& records) {
  const std::int64_t earliest = records.earliest_ns();
  for (GpuRecord& record : records.gpu) {
    record.event.start_ns -= earliest;
    record.event.end_ns -= earliest;
  }
  for (auto& [annotation, track] : records.annotations) {
    annotation.start_ns -= earliest;
    annotation.end_ns -= earliest;
  }
  for (FlowRecord& flow : records.flows) flow.at_ns -= earliest;
  for (CallRecord& record : records.calls) {
    record.call.start_ns -= earliest;
    record.call.end_ns -= earliest;
  }
}

// Times downstream are picoseconds in an int64, which holds 106 days, and durations are summed behind the start.
void refuse_ages(const TraceRecords& records, const std::string& file) {
  constexpr std::int64_t kDayNs = 86'400'000'000'000;
  constexpr std::int64_t kLongestNs = 11 * kDayNs;
  constexpr std::int64_t kMostNs = 90 * kDayNs;
  std::int64_t last = 0;
  std::int64_t sum = 0;
  for (const GpuRecord& record : records.gpu) {
    last = std::max(last, record.event.end_ns);
    if (last <= kLongestNs) sum = std::min(kMostNs + 1, sum + record.event.end_ns - record.event.start_ns);
  }
  for (const CallRecord& record : records.calls) last = std::max(last, record.call.end_ns);
  for (const AnnotationRecord& record : records.annotations) last = std::max(last, record.annotation.end_ns);
  if (last > kLongestNs) throw SpecError(file, 0, "lasts longer than 11 days");
  if (sum > kMostNs) throw SpecError(file, 0, "its GPU events last longer than 90 days in all");
}

void sort(TraceRecords& records) {
  std::stable_sort(records.gpu.begin(), records.gpu.end(), [](const GpuRecord& a, const GpuRecord& b) {
    return std::tie(a.event.start_ns, a.event.stream) < std::tie(b.event.start_ns, b.event.stream);
  });
  // Longer ones first, so that what is inside stands behind what is around it.
  std::stable_sort(records.annotations.begin(), records.annotations.end(),
                   [](const AnnotationRecord& a, const AnnotationRecord& b) {
                     return std::tie(a.annotation.start_ns, b.annotation.end_ns) <
                            std::tie(b.annotation.start_ns, a.annotation.end_ns);
                   });
}

// Ours say which layer they are of.
void name_phases_of_modules(TraceRecords& records) {
  for (AnnotationRecord& record : records.annotations) {
    if (!record.annotation.place) record.annotation.name = phase_of_module(record.annotation.name);
  }
}

void note_whole_phases(Trace& trace) {
  if (std::none_of(trace.names.begin(), trace.names.end(), [](const KernelName& k) { return k.is_whole_phase(); })) {
    return;
  }
  trace.notes.emplace_back(
      "it holds whole phases in place of their kernels: each counts from its start to its end as compute or as "
      "communication, so that what is inside phases cannot be told (classes, gaps, waits), and compute and exposed "
      "communication are not those of the kernels; simulate with level operator and --trace-level operator writes "
      "these");
}

void find_phases_and_steps(TraceRecords& records) {
  name_phases_of_modules(records);
  Levels levels = levels_of(records);
  attribute(records, levels.of);
  if (levels.by_profiler) {  // there may be steps whose names nobody knows
    const std::set<std::string> names = names_around_repetitions(records);
    if (!names.empty()) {
      levels = levels_of(records, names);
      attribute(records, levels.of);
    }
  }
  find_steps(records, levels);
}

}  // namespace

Trace assemble(TraceRecords records, const TraceFacts& facts, const std::filesystem::path& path) {
  const std::string file_name = path.filename().string();
  Trace trace;
  trace.device = facts.device;
  trace.sms = facts.sms;
  trace.memory_bytes = facts.memory_bytes;
  trace.world_size = facts.world_size;
  trace.scenario = facts.scenario;
  trace.time_zero_ns = facts.base_time_ns + records.earliest_ns();
  trace.counts_from_zero = facts.counts_from_zero;
  trace.lone_flows = lone_flows(records);
  trace.notes = tolerated(records);
  if (records.senseless_groups > 0) {
    trace.notes.push_back(fmt::format("process groups whose list of ranks is none, and counts as not stated: {}",
                                      records.senseless_groups));
  }
  trace.gpus = gpus_of(records, facts.rank ? *facts.rank : rank_of_file_name(file_name), trace.notes);
  count_from_earliest(records);
  refuse_ages(records, path.string());
  sort(records);
  find_calls(records);
  find_phases_and_steps(records);
  assign_flops(records);
  trace.flows = gpu_flows(records);
  trace.states_order = records.states_order;
  trace.names = std::move(records.names);
  note_whole_phases(trace);
  trace.groups = std::move(records.groups);
  trace.collectives = std::move(records.collectives);
  trace.gpu_events.reserve(records.gpu.size());
  for (const GpuRecord& record : records.gpu) trace.gpu_events.push_back(record.event);
  if (!trace.gpu_events.empty()) trace.first_ns = trace.gpu_events.front().start_ns;
  for (const CallRecord& record : records.calls) trace.calls.push_back(record.call);
  trace.steps = std::move(records.steps);
  for (AnnotationRecord& record : records.annotations) trace.annotations.push_back(std::move(record.annotation));
  return trace;
}

}  // namespace moeline
