// Which cases each key is measured at: plain data, so that moeline's tests can hold it against calib/schema.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "case.hpp"

namespace moeline::bench {

/// Bytes that a memory-bound kernel reads and writes. Kernels that share a key are told apart by them.
[[nodiscard]] std::int64_t add_bytes(std::int64_t rows, std::int64_t columns);          ///< streaming: c = a + b, BF16
[[nodiscard]] std::int64_t permutation_bytes(std::int64_t rows, std::int64_t columns);  ///< streaming: rows by an index
[[nodiscard]] std::int64_t rms_norm_bytes(std::int64_t rows, std::int64_t columns);     ///< rowwise: BF16 to BF16
[[nodiscard]] std::int64_t cast_bytes(std::int64_t rows, std::int64_t columns);  ///< rowwise: BF16 to FP8, 1x128 scales
/// cast_transpose: BF16 to FP8 [columns, rows], a scale per 128 rows of a column.
[[nodiscard]] std::int64_t cast_transpose_bytes(std::int64_t rows, std::int64_t columns);
/// swiglu: BF16 gate and up, `columns` each, to FP8 with 1x128 scales.
[[nodiscard]] std::int64_t swiglu_bytes(std::int64_t rows, std::int64_t columns);
/// strided: rotary embedding of the last 64 columns of every head of 192; these alone, and each row's angles.
[[nodiscard]] std::int64_t rotary_bytes(std::int64_t rows, std::int64_t columns);
inline constexpr std::int64_t kHeadColumns = 192, kRotaryColumns = 64;

[[nodiscard]] std::vector<Case> streaming_cases(Preset preset);
[[nodiscard]] std::vector<Case> rowwise_cases(Preset preset);
[[nodiscard]] std::vector<Case> cast_transpose_cases(Preset preset);
[[nodiscard]] std::vector<Case> swiglu_cases(Preset preset);
[[nodiscard]] std::vector<Case> strided_cases(Preset preset);

/// `scaling`: that of the device, `1x128` or `mx32`.
[[nodiscard]] std::vector<Case> gemm_fp8_cases(Preset preset, const std::string& scaling);
[[nodiscard]] std::vector<Case> gemm_fp8_masked_cases(Preset preset, const std::string& scaling);
[[nodiscard]] std::vector<Case> gemm_bf16_cases(Preset preset);
[[nodiscard]] std::vector<Case> gemm_bf16_grouped_cases(Preset preset);
[[nodiscard]] std::vector<Case> gemm_bf16_batched_cases(Preset preset);

[[nodiscard]] std::vector<Case> small_cases();
[[nodiscard]] std::vector<Case> launch_cases();
[[nodiscard]] std::vector<Case> copy_cases(Preset preset);
/// GEMMs also as told to leave the SMs that are held: `kernel_sms`, of the `device_sms`.
[[nodiscard]] std::vector<Case> contention_cases(Preset preset, const std::string& scaling, int device_sms);

}  // namespace moeline::bench
