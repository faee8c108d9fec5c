// Traces as a profiler writes them, event by event, and what the reader makes of such text.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <string>

#include "base/error.hpp"
#include "tests/support/process.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/trace_edit.hpp"
#include "trace/trace.hpp"

namespace moeline::testing {

inline Trace read(const std::string& content, const std::string& name = "trace.json") {
  const TemporaryFolder folder;
  return read_trace(folder.write(name, content));
}

inline std::string refusal(const std::filesystem::path& path) {
  return refusal_of([&] { (void)read_trace(path); });
}

/// What is said about a file of this content, behind the file's name.
inline std::string refusal_of(const std::string& content) {
  const TemporaryFolder folder;
  const std::string file = folder.write("trace.json", content);
  const std::string message = refusal(file);
  REQUIRE(message.starts_with(file + ": "));
  CHECK(message.find('\n') == std::string::npos);
  return message.substr(file.size() + 2);
}

inline std::string gzipped(const std::string& text) {
  const TemporaryFolder folder;
  const std::string file = folder / "packed.gz";
  gzFile gzip = gzopen(file.c_str(), "wb");
  gzwrite(gzip, text.data(), static_cast<unsigned>(text.size()));
  gzclose(gzip);
  return content_of(file);
}

inline std::string trace_of(const std::string& events) { return R"({"traceEvents": [)" + events + "]}"; }

/// A complete event ("X").
inline std::string slice(const std::string& cat, const std::string& name, const std::string& track,
                         const std::string& times, const std::string& args = "") {
  return R"({"ph": "X", "cat": ")" + cat + R"(", "name": ")" + name + R"(", )" + track + ", " + times +
         R"(, "args": {)" + args + "}}";
}

inline std::string times(const std::string& ts, const std::string& dur) {
  return R"("ts": )" + ts + R"(, "dur": )" + dur;
}

inline const std::string kStream7 = R"("pid": 0, "tid": 7)";
inline const std::string kStream27 = R"("pid": 0, "tid": 27)";
inline const std::string kMainThread = R"("pid": 1166, "tid": 1166)";
inline const std::string kAutogradThread = R"("pid": 1166, "tid": 2571)";

inline std::string kernel(const std::string& ts, const std::string& dur, int correlation = 1,
                          const std::string& track = kStream7) {
  return slice("kernel", "gemm", track, times(ts, dur),
               R"("stream": 7, "correlation": )" + std::to_string(correlation));
}

inline std::string launch(const std::string& ts, int correlation = 1, const std::string& track = kMainThread) {
  return slice("cuda_runtime", "cudaLaunchKernel", track, times(ts, "2"),
               R"("correlation": )" + std::to_string(correlation));
}

inline std::string range(const std::string& name, const std::string& ts, const std::string& dur,
                         const std::string& track = kMainThread) {
  return slice("user_annotation", name, track, times(ts, dur));
}

inline std::string gpu_range(const std::string& name, const std::string& ts, const std::string& dur,
                             const std::string& track = kStream7) {
  return slice("gpu_user_annotation", name, track, times(ts, dur));
}

}  // namespace moeline::testing
