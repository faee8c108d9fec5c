// Tables of calib/bench as a machine of known constants would have measured them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calib/bench/attention_grid.hpp"
#include "calib/bench/csv.hpp"
#include "calib/bench/grid.hpp"
#include "calib/fit/bench_observations.hpp"
#include "calib/fit/solve.hpp"

namespace moeline::testing {

struct KeyCases {
  std::string key;
  std::vector<bench::Case> cases;
  std::vector<std::string> metrics = {"time"};
};

/// What a preset measures, all keys that constants are fitted to.
inline std::vector<KeyCases> cases_of(bench::Preset preset) {
  return {{"gemm_fp8", bench::gemm_fp8_cases(preset, "1x128")},
          {"gemm_fp8_masked", bench::gemm_fp8_masked_cases(preset, "1x128")},
          {"gemm_bf16", bench::gemm_bf16_cases(preset)},
          {"gemm_bf16_grouped", bench::gemm_bf16_grouped_cases(preset)},
          {"gemm_bf16_batched", bench::gemm_bf16_batched_cases(preset)},
          {"attention_forward", bench::attention_forward_cases(preset)},
          {"attention_backward", bench::attention_backward_cases(preset)},
          {"mla_decode", bench::mla_decode_cases(preset)},
          {"streaming", bench::streaming_cases(preset)},
          {"rowwise", bench::rowwise_cases(preset)},
          {"cast_transpose", bench::cast_transpose_cases(preset)},
          {"swiglu", bench::swiglu_cases(preset)},
          {"strided", bench::strided_cases(preset)},
          {"small", bench::small_cases()},
          {"launch", bench::launch_cases(), {"time", "host"}}};
}

/// The value of a sample, by the line of the file that its measurement begins at, and its number.
using Sample = std::function<double(int line, int sample)>;

inline void write_bench_table(const std::filesystem::path& file, const std::vector<KeyCases>& keys, int samples,
                              const Sample& value) {
  std::ofstream stream(file);
  bench::TableWriter table(stream, {"NVIDIA H200", 132, "9.0", "580.65.06", "13.0", "13.0.2", 1830, 3201, "6a47841",
                                    "full", "2026-11-21T20:53:14Z"});
  int line = 14;  // of the first row
  for (const KeyCases& each : keys) {
    for (const bench::Case& c : each.cases) {
      for (const std::string& metric : each.metrics) {
        for (int sample = 0; sample < samples; ++sample) {
          table.row(each.key, c, metric, "us", sample, value(line, sample));
        }
        line += samples;
      }
    }
  }
  table.finish();
}

/// Writes what a machine with these constants measures; `disturb` gets the true time and returns the sample's.
inline void write_measured(const std::filesystem::path& file, const std::vector<KeyCases>& keys,
                           const MachineFacts& machine, const Constants& truth, int samples,
                           const std::function<double(double us, int line, int sample)>& disturb) {
  write_bench_table(file, keys, samples, [](int, int) { return 1.0; });
  std::map<int, double> times;  // by line
  for (const Observation& o : bench_observations(read_bench_table(file), machine, TileSet::wide)) {
    times[std::atoi(o.where.c_str() + o.where.find(':') + 1)] = evaluate(o, truth);
  }
  write_bench_table(file, keys, samples, [&](int line, int sample) {
    const auto found = times.find(line);
    return found == times.end() ? 1.0 : disturb(found->second, line, sample);
  });
}

}  // namespace moeline::testing
