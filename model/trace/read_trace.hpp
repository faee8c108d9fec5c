// Who reads a file as a trace, and which files are none that is read, known by their first bytes or by their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trace/trace.hpp"

namespace moeline {

inline constexpr std::string_view kWhatIsRead =
    "moeline reads Kineto's Chrome trace JSON, plain or gzipped, as torch.profiler's export_chrome_trace writes it, "
    "and "
    "Nsight Systems' SQLite exports";

/// What a file is whose text begins so, in words that follow "is"; nothing where that is not known. `beginning` should
/// have 512 bytes where the file does.
[[nodiscard]] std::optional<std::string_view> foreign_file(std::string_view file_name, std::string_view beginning);

/// The same of JSON without events, by keys of its outermost object.
[[nodiscard]] std::optional<std::string_view> foreign_json(std::span<const std::string> keys);

// What the events of a trace are, by their categories: "cat" of the Chrome trace's JSON.

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

// Who reads what read_trace (trace.hpp) says.

class GzipStream;

/// Kineto's JSON. `path` names the file in messages, and its name may tell the rank.
[[nodiscard]] Trace read_kineto(GzipStream& stream, const std::filesystem::path& path);

/// SQLite exports of Nsight Systems.
[[nodiscard]] Trace read_nsight(const std::filesystem::path& path);

}  // namespace moeline
