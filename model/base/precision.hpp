// Number formats: of weights as they lie in memory, of what travels, and of the tensor cores that multiply.
#pragma once

#include <string>
#include <vector>

namespace moeline {

/// Scales: fp8 one FP32 per 128x128 weights or per 128 numbers of a row; fp8_tensor one per tensor or per row of it;
/// fp8_static the same, but those of activations stand in the checkpoint and are not looked for; mxfp4 8 bits per 32;
/// nvfp4 8 bits per 16; int4 (weights only) 16 bits per group.
enum class Precision { bf16, fp8, fp8_tensor, fp8_static, mxfp4, nvfp4, int4 };
inline constexpr int kPrecisions = static_cast<int>(Precision::int4) + 1;

/// "bf16", as scenarios and results write it.
[[nodiscard]] const std::string& name_of(Precision precision);
/// REQUIRES: the name of a precision.
[[nodiscard]] Precision precision_named(const std::string& name);

/// Bytes of one number, its scale apart.
[[nodiscard]] double number_bytes(Precision precision);
/// Bytes of one weight with its share of the scale.
[[nodiscard]] double bytes_per_weight(Precision precision);
/// Bytes of one number in a row of activations with its share of the scale.
[[nodiscard]] double activation_bytes(Precision precision);
/// FP8 with a scale for a whole tensor or row.
[[nodiscard]] constexpr bool is_fp8_by_tensor(Precision precision) {
  return precision == Precision::fp8_tensor || precision == Precision::fp8_static;
}
/// What tensor cores multiply weights of this format in: formats of weights alone are unpacked to BF16.
[[nodiscard]] Precision multiplied_in(Precision weights);

}  // namespace moeline
