// What the events of a trace file say, before anyone asks what belongs to what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/trace.hpp"

namespace moeline {

/// The beginning of a text from the file, fit for one line of a message.
[[nodiscard]] std::string one_line(std::string_view text);

/// The fields of one trace event as text, whatever their JSON type. Empty: absent.
struct EventText {
  std::string ph;
  std::string cat;
  std::string name;
  std::string pid;
  std::string tid;
  std::string ts;
  std::string dur;
  std::string stream;       ///< args.stream
  std::string correlation;  ///< args.correlation
  std::string layer;        ///< args.layer
  std::string micro_batch;  ///< args.micro_batch
};

/// A pair of pid and tid: a CPU thread, or a stream of a device. Numbered from 0.
using Track = std::uint32_t;

struct GpuRecord {
  GpuEvent event;
  Track track = 0;
  std::optional<std::int64_t> correlation;
};

/// A call of the CUDA runtime or driver; those that launch something share their correlation with it.
struct LaunchRecord {
  std::int64_t correlation = 0;
  std::int64_t start_ns = 0;
  Track track = 0;
};

struct AnnotationRecord {
  Annotation annotation;
  Track track = 0;
};

/// Collects events in the order of the file, with times as they stand there.
class TraceRecords {
 public:
  std::vector<GpuRecord> gpu;
  std::vector<LaunchRecord> launches;
  std::vector<AnnotationRecord> annotations;

  /// Keeps what the event tells of GPU work, launches and annotations; all other events only count for earliest_ns().
  /// Throws SpecError, without file and event, for a field that is missing or makes no sense.
  void add(const EventText& event);

  [[nodiscard]] std::size_t tracks() const { return tracks_.size(); }
  [[nodiscard]] std::int64_t earliest_ns() const { return earliest_ns_.value_or(0); }

 private:
  [[nodiscard]] Track track_of(const EventText& event);
  void add_gpu(const EventText& event, GpuEventKind kind);
  void add_launch(const EventText& event);
  void add_annotation(const EventText& event, bool on_gpu);

  std::unordered_map<std::string, Track> tracks_;
  std::optional<std::int64_t> earliest_ns_;
};

}  // namespace moeline
