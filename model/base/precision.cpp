#include "base/precision.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace moeline {
namespace {

struct Format {
  std::string name;
  double bytes;
  double weight_scale, activation_scale;  // bytes of a number's share of its scale
  Precision multiplied_in;
};

const std::array<Format, kPrecisions>& formats() {
  static const std::array<Format, kPrecisions> kFormats = {
      {{"bf16", 2, 0, 0, Precision::bf16},
       {"fp8", 1, 4.0 / (128 * 128), 4.0 / 128, Precision::fp8},
       {"fp8_tensor", 1, 0, 0, Precision::fp8},
       {"fp8_static", 1, 0, 0, Precision::fp8},
       {"mxfp4", 0.5, 1.0 / 32, 1.0 / 32, Precision::bf16},
       {"nvfp4", 0.5, 1.0 / 16, 1.0 / 16, Precision::bf16},
       {"int4", 0.5, 2.0 / 128, 0, Precision::bf16}}};  // a scale for 128 weights, as most checkpoints have
  return kFormats;
}

const Format& format_of(Precision precision) { return formats()[static_cast<std::size_t>(precision)]; }

}  // namespace

const std::string& name_of(Precision precision) { return format_of(precision).name; }

Precision precision_named(const std::string& name) {
  const auto found =
      std::find_if(formats().begin(), formats().end(), [&](const Format& format) { return format.name == name; });
  MOELINE_CHECK(found != formats().end(), name);
  return static_cast<Precision>(found - formats().begin());
}

double number_bytes(Precision precision) { return format_of(precision).bytes; }

double bytes_per_weight(Precision precision) { return format_of(precision).bytes + format_of(precision).weight_scale; }

double activation_bytes(Precision precision) {
  return format_of(precision).bytes + format_of(precision).activation_scale;
}

Precision multiplied_in(Precision weights) { return format_of(weights).multiplied_in; }

}  // namespace moeline
