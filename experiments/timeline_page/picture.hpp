// The colour of a phase, as the papers have them: forward orange, backward green, weight gradients blue.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "timeline/kernel_spans.hpp"

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

// A timeline as a picture shows it: bars on lanes, without reasons.

struct PictureBar {
  std::string label, title;  ///< inside the bar where it fits, on two lines at most; of a tooltip
  Tint tint = Tint::none;
  bool communicates = false;
  Time start{}, end{};
};

struct PictureLane {
  std::string name;
  std::vector<PictureBar> bars;
};

/// One timeline; several stand below each other on one scale.
struct Picture {
  std::string name;
  std::vector<PictureLane> lanes;
  std::vector<std::pair<Tint, std::string>> legend{};  ///< empty: that of passes and micro-batches
};

// The phases of one rank, stream by stream.

/// Kernels of one phase that follow each other on a stream are one bar, which communicates if most of its time does.
/// `stream_names`: of streams that have one. REQUIRES: kernels of one rank, by start.
[[nodiscard]] std::vector<PictureLane> lanes_of_phases(const std::vector<KernelSpan>& kernels,
                                                       const std::map<std::uint32_t, std::string>& stream_names);

// Pictures as an SVG file, for papers and READMEs.

/// Time counts from each picture's first bar. Equal pictures give equal bytes.
[[nodiscard]] std::string to_svg(const std::vector<Picture>& pictures);

}  // namespace moeline
