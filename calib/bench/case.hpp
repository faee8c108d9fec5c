// One point of a grid: the parameters of one measurement, as calib/schema.md names them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moeline::bench {

/// How much to measure: a whole run of `quick` is meant to take under two minutes on an H200, and of
/// `full` under nine.
enum class Preset { quick, full };

struct Parameter {
  std::string name;
  std::string value;
  bool operator==(const Parameter&) const = default;
};

/// Parameters in the order in which they are written.
struct Case {
  std::vector<Parameter> parameters;

  Case& with(std::string name, std::int64_t value);
  Case& with(std::string name, std::string value);
  [[nodiscard]] bool has(std::string_view name) const;
  /// Throws std::out_of_range with the name of a parameter that the case lacks.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] std::int64_t number(std::string_view name) const;
  bool operator==(const Case&) const = default;
};

/// `m=64;n=2112;k=7168`
[[nodiscard]] std::string to_string(const Case& c);

}  // namespace moeline::bench
