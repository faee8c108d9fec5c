// How fast a measured trace of 300 MB is read, and read and analysed. The trace: DeepSeek's, repeated with later times
// (MOELINE_DATA; skipped where it is absent). Limits: 2.5 s for the analysis, 200 MB; memory by /usr/bin/time on
// `moeline analyze`, with the file that --keep=FILE leaves behind.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "measured/analysis.hpp"
#include "tests/support/trace_edit.hpp"

namespace {

using namespace moeline;
namespace fs = std::filesystem;

std::uintmax_t megabytes = 300;
fs::path long_trace;

fs::path training_trace() {
  const char* set = std::getenv("MOELINE_DATA");
  const fs::path data =
      set != nullptr && *set != '\0' ? fs::path(set) : fs::path(MOELINE_SOURCE_DIR) / "../shared/data";
  return data / "traces/deepseek_v3_train_h800_ep64.json.gz";
}

void write_long_trace() {
  const std::string text = testing::unpacked(training_trace());
  const std::string opening = "\"traceEvents\": [";
  const std::size_t begin = text.find(opening) + opening.size();
  const std::size_t end = text.rfind("]");
  const std::string events = text.substr(begin, end - begin);
  std::ofstream out(long_trace, std::ios::binary);
  out << text.substr(0, begin) << events;
  for (std::int64_t shift = 1; static_cast<std::uintmax_t>(out.tellp()) < megabytes * 1'000'000; ++shift) {
    out << "," << testing::shifted_events(events, shift);
  }
  out << text.substr(end);
}

void report(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(fs::file_size(long_trace)) * state.iterations());
}

void ReadTrace(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(read_trace(long_trace).gpu_events.size());
  report(state);
}
BENCHMARK(ReadTrace)->Unit(benchmark::kMillisecond);

void AnalyzeTrace(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(analyze(understand(read_trace(long_trace))).gpu_events);
  report(state);
}
BENCHMARK(AnalyzeTrace)->Unit(benchmark::kMillisecond);

}  // namespace

// trace_benchmark [--mb=N] [--keep=FILE] [Google Benchmark's options]
int main(int argc, char** argv) {
  bool keep = false;
  long_trace = fs::temp_directory_path() / "moeline-trace-benchmark.json";
  int left = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--mb=")) {
      megabytes = std::stoull(argument.substr(5));
    } else if (argument.starts_with("--keep=")) {
      long_trace = argument.substr(7);
      keep = true;
    } else {
      argv[left++] = argv[i];
    }
  }
  if (!fs::exists(training_trace())) {
    std::cout << "skipped: " << training_trace().string() << " is absent\n";
    return 0;
  }
  write_long_trace();
  benchmark::Initialize(&left, argv);
  benchmark::RunSpecifiedBenchmarks();
  if (!keep) fs::remove(long_trace);
}
