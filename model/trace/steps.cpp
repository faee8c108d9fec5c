#include "trace/steps.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_map>

#include "trace/assemble_trace.hpp"
#include "trace/repetitions.hpp"
#include "trace/trace_records.hpp"

namespace moeline {
namespace {

struct StepName {
  RE2 pattern;
  const char* kind;  // \1, \2, ... are the pattern's groups
};

// To know another server, add a line. Numbers that differ from step to step of the same work stay out of the kind.
const auto& known_steps() {
  static const std::array<StepName, 8> names = {{
      // SGLang: step[DECODE bs=32], step[EXTEND bs=1 toks=888]; detailed annotations add lengths of requests
      {R"(^step\[(\w+)(?: raw_bs=\d+)?( bs=\d+)( toks=\d+)?[^\]]*\]$)", R"(\1\2\3)"},
      // vLLM: requests and tokens of prefill and decode
      {R"(^execute_(context_\d+\(\d+\)_generation_\d+\(\d+\))$)", R"(\1)"},
      {R"(^execute_(new_\d+_cached_\d+)$)", R"(\1)"},
      // vLLM with detailed annotations, which have lengths of requests in their brackets
      {R"(^execute_(?:model )?(context_\d+)\([^)]*\)[_ ](generation_\d+)\([^)]*\)$)", R"(\1 \2)"},
      // ATOM: prefill[bs=2 tok=16384], decode[bs=64]
      {R"(^(prefill|decode)\[(bs=\d+)( tok=\d+)?[^\]]*\]$)", R"(\1 \2\3)"},
      // TensorRT-LLM's executor, which annotates by NVTX
      {R"(^\[Executor\] _forward_step(?: \d+)?: (\d+ ctx reqs, (?:\d+ ctx tokens, )?\d+ gen reqs)$)", R"(\1)"},
      // training loops
      {R"((?i)^((?:train|training|eval)?[ _]?(?:step|iteration|iter))[ _#:=]*\d+$)", R"(\1)"},
      {R"((?i)^((?:global|batch)[ _]step)[ _#:=]*\d+$)", R"(\1)"},
  }};
  return names;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::optional<std::string> kind_of_step(std::string_view name) {
  for (const StepName& known : known_steps()) {
    std::string kind;
    if (RE2::Extract(piece(name), known.pattern, known.kind, &kind)) return kind;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> profiler_step(std::string_view name) {
  constexpr std::string_view kPrefix = "ProfilerStep";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return whole_number<std::uint32_t>(name.substr(std::min(name.size(), name.find_first_of("0123456789"))));
}

std::string without_number(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  if (end == std::string_view::npos || end + 1 == name.size()) return std::string(name);
  const std::size_t word_end = name.find_last_not_of(" _#:=", end);
  return std::string(word_end == std::string_view::npos ? name : name.substr(0, word_end + 1));
}

bool is_of_framework(std::string_view name) {
  constexpr std::array<std::string_view, 12> kPrefixes = {"ProfilerStep", "nccl:", "Optimizer.", "enumerate(DataLoader",
                                                          "## Call Compiled", "Torch-Compiled",
                                                          // operators, which PyTorch's emit_nvtx makes ranges
                                                          "aten::", "autograd::", "c10d::",
                                                          // vLLM's scopes inside and around its steps
                                                          "gpu_model_runner:", "llm_engine step:", "schedule:"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

namespace {

constexpr std::int32_t kNone = -1;

// Annotations that are the same step.
class Twins {
 public:
  explicit Twins(std::size_t annotations) : parent_(annotations) { std::iota(parent_.begin(), parent_.end(), 0); }
  std::int32_t of(std::int32_t annotation) {
    std::int32_t& parent = parent_[static_cast<std::size_t>(annotation)];
    while (parent != parent_[static_cast<std::size_t>(parent)]) parent = parent_[static_cast<std::size_t>(parent)];
    return parent;
  }
  void unite(std::int32_t a, std::int32_t b) { parent_[static_cast<std::size_t>(of(a))] = of(b); }

 private:
  std::vector<std::int32_t> parent_;
};

// Of one GPU: twins that share no event with an annotation of the host. Those of one name are a step together where
// they stand on different streams and overlap, or where no other step has begun since: a copy may follow the last
// kernel.
class Orphans {
 public:
  void join(std::int32_t twin, const AnnotationRecord& record, Twins& twins) {
    Open& open = open_[record.annotation.name];
    const bool same = open.twin == latest_ || record.annotation.start_ns < open.end_ns;
    if (open.twin == kNone || !same || open.tracks.contains(record.track)) {
      open = {twin, record.annotation.end_ns, {}};
      latest_ = twin;
    }
    twins.unite(twin, open.twin);
    open.end_ns = std::max(open.end_ns, record.annotation.end_ns);
    open.tracks.insert(record.track);
  }

 private:
  struct Open {
    std::int32_t twin = kNone;
    std::int64_t end_ns = 0;
    std::set<Track> tracks;
  };
  std::map<std::string, Open> open_;
  std::int32_t latest_ = kNone;
};

// What says to which annotation of the host a twin belongs: the launches of the events in it. A few may have been made
// by a thread that was in another step.
struct TwinEvents {
  std::uint16_t gpu = 0;
  std::map<std::int32_t, std::size_t> hosts;  // annotations of the twin's name, with how many launches were in them
};

void unite_twins(const TraceRecords& records, const std::vector<std::int32_t>& on_stream,
                 const std::vector<std::int32_t>& at_launch, Twins& twins) {
  const auto record = [&](std::int32_t i) -> const AnnotationRecord& {
    return records.annotations[static_cast<std::size_t>(i)];
  };
  std::map<std::int32_t, TwinEvents> events;  // by twin
  for (std::size_t i = 0; i < on_stream.size(); ++i) {
    if (on_stream[i] == kNone) continue;
    TwinEvents& of_twin = events[on_stream[i]];
    of_twin.gpu = records.gpu[i].event.gpu;
    if (at_launch[i] == kNone) continue;
    if (record(on_stream[i]).annotation.name == record(at_launch[i]).annotation.name) ++of_twin.hosts[at_launch[i]];
  }
  std::map<std::uint16_t, Orphans> orphans;     // by GPU
  for (const auto& [twin, of_twin] : events) {  // by start
    const auto host = std::max_element(of_twin.hosts.begin(), of_twin.hosts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (host == of_twin.hosts.end()) {
      orphans[of_twin.gpu].join(twin, record(twin), twins);
    } else {
      twins.unite(twin, host->first);
    }
  }
}

TraceStep step_named(const std::string& name, bool by_profiler, std::uint32_t position) {
  if (by_profiler) return {name, "ProfilerStep", profiler_step(name).value_or(0)};
  return {name, kind_of_step(name).value_or(without_number(name)), position};
}

// Enough layers that a loop inside one phase is not taken for a step.
constexpr std::size_t kManyLayers = 6;

// GPU events that one annotation holds, by track: their names.
using Held = std::map<Track, std::vector<std::uint32_t>>;

std::map<std::int32_t, Held> events_by_annotation(const TraceRecords& records) {
  std::map<std::int32_t, Held> held;
  for (const GpuRecord& record : records.gpu) {
    if (record.event.annotation != kNone) held[record.event.annotation][record.track].push_back(record.event.name);
  }
  return held;
}

std::size_t size_of(const Held& held) {
  return std::accumulate(held.begin(), held.end(), std::size_t{0},
                         [](std::size_t sum, const auto& on_track) { return sum + on_track.second.size(); });
}

bool repeats(const Held& held) {
  const auto busiest = std::max_element(held.begin(), held.end(),
                                        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::vector<std::uint32_t>& names = busiest->second;
  const std::vector<Repetition> layers = repetitions(names);
  if (layers.size() < kManyLayers) return false;
  return 2 * (layers.back().end - layers.front().begin) >= names.size();
}

// Annotations whose names differ by numbers alone.
struct Alike {
  std::set<std::string> names;
  std::vector<const Held*> annotations;
  std::size_t events = 0;

  // A twin of a copy's stream alone holds nothing that repeats.
  [[nodiscard]] bool largest_repeats() const {
    return repeats(**std::max_element(annotations.begin(), annotations.end(),
                                      [](const Held* a, const Held* b) { return size_of(*a) < size_of(*b); }));
  }
};

std::string without_digits(std::string name) {
  std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
  return name;
}

}  // namespace

void find_steps(TraceRecords& records, const Levels& levels) {
  const std::vector<std::int32_t> on_stream = innermost(records, levels.of, AnnotationLevel::step, Where::on_stream);
  const std::vector<std::int32_t> at_launch = innermost(records, levels.of, AnnotationLevel::step, Where::at_launch);
  Twins twins(records.annotations.size());
  unite_twins(records, on_stream, at_launch, twins);
  std::map<std::int32_t, std::int32_t> found;
  std::map<std::uint16_t, std::uint32_t> positions;       // by GPU
  for (std::size_t i = 0; i < records.gpu.size(); ++i) {  // by start
    const std::int32_t annotation = on_stream[i] != kNone ? on_stream[i] : at_launch[i];
    if (annotation == kNone) continue;
    const auto next = static_cast<std::int32_t>(records.steps.size());
    const auto [step, added] = found.try_emplace(twins.of(annotation), next);
    GpuEvent& event = records.gpu[i].event;
    event.step = step->second;
    const std::string& name = records.annotations[static_cast<std::size_t>(annotation)].annotation.name;
    if (added) records.steps.push_back(step_named(name, levels.by_profiler, positions[event.gpu]++));
  }
}

std::set<std::string> names_around_repetitions(const TraceRecords& records) {
  constexpr std::size_t kNotable = 20;  // a twentieth of the events
  const std::map<std::int32_t, Held> held = events_by_annotation(records);
  std::map<std::string, Alike> by_words;
  std::size_t all = 0;
  for (const auto& [annotation, events] : held) {
    const std::string& name = records.annotations[static_cast<std::size_t>(annotation)].annotation.name;
    Alike& alike = by_words[without_digits(name)];
    alike.names.insert(name);
    alike.annotations.push_back(&events);
    alike.events += size_of(events);
    all += size_of(events);
  }
  std::set<std::string> names;
  for (const auto& [words, alike] : by_words) {
    if (kNotable * alike.events < all) continue;
    if (!alike.largest_repeats()) return {};
    names.insert(alike.names.begin(), alike.names.end());
  }
  return names;
}

}  // namespace moeline
