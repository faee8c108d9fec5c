// The colour of a phase, as the papers have them: forward orange, backward green, weight gradients blue.
#pragma once

#include <cstdint>
#include <string_view>

namespace moeline {

/// What a phase's name says it is. Phases of inference have no pass: they go by micro-batch, for there two of them
/// overlap.
enum class Tint : std::uint8_t { none, forward, backward, weight, both, second };

[[nodiscard]] inline Tint tint_of(std::string_view phase, std::uint32_t micro_batch) {
  const auto is = [&](std::string_view slot, std::string_view ending) {
    return phase == slot || phase.ends_with(ending);
  };
  if (is("F&B", "(F&B)")) return Tint::both;
  if (is("F", "(F)")) return Tint::forward;
  if (is("B", "(B)")) return Tint::backward;
  if (is("W", "(W)")) return Tint::weight;
  if (phase.empty()) return Tint::none;
  return micro_batch % 2 == 0 ? Tint::forward : Tint::second;
}

}  // namespace moeline
