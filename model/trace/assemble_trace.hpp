// Annotations around the modules and layers of a model, as the servers' layerwise markers of NVTX make them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace_records.hpp"

namespace moeline {

/// The phase that an annotation is, without the number of its layer, so that all layers have it alike: "mlp.experts" of
/// "{'Module': 'model.layers.3.mlp.experts', 'TrainableParams': {...}, 'Inputs': [[32, 7168]]}" (SGLang, TensorRT-LLM,
/// vLLM) and of "layers.3.mlp.experts", "decoder.mlp" of "decoder.layers.3.mlp", "layer" of "layer_3". Any other name
/// as it is.
[[nodiscard]] std::string phase_of_module(std::string_view annotation);

// What each annotation of a trace is: a step, a phase of one, or neither.

enum class AnnotationLevel : std::uint8_t {
  ignored,  ///< a framework's own, or around steps
  phase,
  step,
};

struct Levels {
  std::vector<AnnotationLevel> of;  ///< by annotation
  bool by_profiler = false;         ///< the steps are PyTorch's ProfilerStep#N, and nothing finer is known
};

/// Steps are the annotations that step_names knows and those whose name is in `also`; where there are none, the
/// profiler's. What encloses a step on its own track is no phase, wherever else its name stands.
/// REQUIRES annotations by start, longer ones first.
[[nodiscard]] Levels levels_of(const TraceRecords& records, const std::set<std::string>& also = {});

// Which annotations a GPU event belongs to.

enum class Where : std::uint8_t { on_stream, at_launch };

/// By GPU event: of the annotations of this level the innermost one that contains the event on its own track, or the
/// innermost one that contains the start of its launch, on the launch's thread, else on any thread (the autograd thread
/// launches kernels whose annotation stands on the main thread). An index; -1: there is none.
/// Innermost: latest to start; of those, first to end; of those, the last one listed. Bounds belong to an annotation.
/// REQUIRES annotations by start, longer ones first, and events that know their calls. O(n log n).
[[nodiscard]] std::vector<std::int32_t> innermost(const TraceRecords& records,
                                                  const std::vector<AnnotationLevel>& levels, AnnotationLevel level,
                                                  Where where);

/// Sets the annotation of every GPU event: the phase around it on its own track, else that around its launch.
void attribute(TraceRecords& records, const std::vector<AnnotationLevel>& levels);

// Records of any profiler, made a trace: what was launched by what, in which phase and step.

/// What a file says besides its records.
struct TraceFacts {
  double memory_bytes = 0;            ///< of the first GPU; 0: not in the file
  std::uint32_t world_size = 0;       ///< ranks of the run; 0: not in the file
  std::string scenario;               ///< that was simulated; empty: not in the file
  std::string device;                 ///< name of the first GPU; empty: not in the file
  std::uint32_t sms = 0;              ///< of it; 0: not in the file
  std::int64_t base_time_ns = 0;      ///< absolute time of the records' 0; up to kLargestTraceTimeNs
  bool counts_from_zero = false;      ///< the file states that base, and it is 0
  std::optional<std::uint32_t> rank;  ///< of the file; nothing: its name tells
};

/// Finds calls, phases, steps and flows of the records. Throws SpecError (with the file) where they last longer than
/// trace.hpp allows. REQUIRES at least one GPU event; none ends before it starts.
[[nodiscard]] Trace assemble(TraceRecords records, const TraceFacts& facts, const std::filesystem::path& path);

}  // namespace moeline
