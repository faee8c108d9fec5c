// What settings are compared along: a key of the scenario and its values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moeline {

/// A key with dots, as after `--set`, and the values at which all settings are simulated first, in their order.
struct DecideAxis {
  enum class Kind {
    whole,  ///< between two of them there are other whole numbers
    real,   ///< other numbers
    words,  ///< nothing
  };
  std::string key{};
  std::vector<std::string> values{};  ///< numbers ascend
  Kind kind = Kind::words;
};

/// "KEY=A..B": whole numbers that double from A to B, or nine that are equally far apart where B is below 4 A or A is
/// 0; of other numbers the latter. "KEY=[a, b, c]": these. Throws SpecError for a text that is neither.
[[nodiscard]] DecideAxis read_axis(std::string_view text);

/// Half-way between two neighbours: whole numbers, and others that are a hundredth apart at least. Nothing where there
/// is nothing between them.
[[nodiscard]] std::optional<double> middle(const DecideAxis& axis, double low, double high);

}  // namespace moeline
