// A profiler trace as it stands in the file: GPU events, their launches, and the annotations around them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace moeline {

enum class GpuEventKind : std::uint8_t { kernel, memcpy, memset };

/// One record of a GPU stream. Times in ns since Trace::time_zero_ns.
struct GpuEvent {
  std::string name;
  GpuEventKind kind = GpuEventKind::kernel;
  std::uint32_t stream = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int32_t annotation = -1;  ///< index into Trace::annotations of the phase it belongs to; -1: none
};

/// Which layer and micro-batch a phase belongs to.
struct PhasePlace {
  std::uint32_t layer = 0;
  std::uint32_t micro_batch = 0;
};

/// A named range: on the CPU thread that launched the kernels, or on the GPU stream that ran them.
struct Annotation {
  std::string name;
  bool on_gpu = false;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<PhasePlace> place;  ///< args.layer and args.micro_batch, which our own traces have
};

struct Trace {
  std::uint32_t rank = 0;               ///< of distributedInfo, else of the file's name ("rank3"), else 0
  std::int64_t time_zero_ns = 0;        ///< absolute time of the earliest record that has a duration
  std::vector<GpuEvent> gpu_events;     ///< by start, then stream
  std::vector<Annotation> annotations;  ///< by start, then longer ones first; ProfilerStep among them
};

/// Reads Kineto's dialect of the Chrome trace, plain or gzipped, in one pass of RapidJSON's SAX reader.
/// `ts` and `dur` may be integers, decimals or strings, in us; they are read to the nanosecond without passing
/// through a double. A GPU event belongs to the innermost annotation that contains it on its own stream, else to the
/// innermost one that contains its launch (matched by `correlation`); ProfilerStep annotations never count.
/// Throws SpecError (with the file, and the byte offset of what is wrong) for a file that is missing, empty,
/// truncated, damaged, not a trace, or without GPU events. Offsets count the unpacked text.
[[nodiscard]] Trace read_trace(const std::filesystem::path& path);

}  // namespace moeline
