// What the keys of calib/bench's table have as parameters and metrics: calib/schema.md, for the reader.
#pragma once

#include <string>
#include <vector>

namespace moeline {

/// A parameter that is no number.
struct BenchWord {
  std::string name;
  std::vector<std::string> values;
};

struct BenchKey {
  std::string name;
  std::vector<std::string> shape;     ///< parameters that are whole numbers
  std::vector<BenchWord> words;       ///< and those that are not
  std::vector<std::string> optional;  ///< whole numbers that may be absent
  std::vector<std::string> metrics;   ///< all in us
};

[[nodiscard]] const std::vector<BenchKey>& bench_keys();

/// Null where there is none of that name. A contention has, besides its own parameters, those of the kernel that the
/// neighbour disturbs: `contention_of` adds them.
[[nodiscard]] const BenchKey* find_bench_key(const std::string& name);
[[nodiscard]] BenchKey contention_of(const BenchKey& kernel);

}  // namespace moeline
