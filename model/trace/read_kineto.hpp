// What the events of a trace are, by their categories: "cat" of the Chrome trace's JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "trace/gzip_stream.hpp"
#include "trace/trace.hpp"

namespace moeline {

enum class TraceCategory : std::uint8_t {
  kernel,
  memcpy,
  memset,
  call,             ///< of a runtime or driver
  synchronisation,  ///< what a call of a runtime waited for
  annotation,       ///< on the host
  gpu_annotation,   ///< the same on a stream
  cpu_operator,
  other,
};

/// Names are those of Kineto's ActivityType (libkineto/src/ActivityType.cpp), with any device's word in front, as in
/// "xpu_runtime" and "mlu_memcpy", and with the capitals that Kineto wrote until 2022. MTIA's kernels are
/// "mtia_ccp_events".
[[nodiscard]] TraceCategory trace_category(std::string_view cat);

/// Whether this is how rocprof calls the process of a GPU's kernels, which have no category: "GPU0", or "5 GPU0".
[[nodiscard]] bool is_gpu_of_rocprof(std::string_view process);

// Kineto's JSON, read.

/// Reads what read_trace says of Kineto's traces. `path` names the file in messages, and its name may tell the rank.
[[nodiscard]] Trace read_kineto(GzipStream& stream, const std::filesystem::path& path);

}  // namespace moeline
