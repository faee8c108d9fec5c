// Observations from benchmarks of attention: InferSim's tables of H800, told apart by their names, and FlashMLA's
// published figures.
#pragma once

#include "base/csv.hpp"
#include "calib/fit/observation.hpp"

namespace moeline {

/// A table of alibaba/InferSim named mla_prefill_bf16_h128_d192_128, mla_decode_bf16_h128_d576_512 or
/// gqa_decode_bf16_32-2-128 (heads, KV heads, head dimension), .csv: columns latency_us and seq_len, or batch_size and
/// kv_len.
[[nodiscard]] bool is_attention_table(const CsvTable& table);

/// All its rows, each in a fold of cross-validation with what measures the same constants:
/// - prefill by sequence length. The shortest takes 1.5 times what its products do at the others' rate: taken as the
///   host's time for a call, the least there is, and never left out. A start-up of every prompt meets the others worse.
/// - MLA decode by batch size. At 128 heads the products take longer than reading the cache (FlashMLA's authors say so
///   too: docs/20250422-new-kernel-deep-dive.md), so nothing is learned about mla_decode_cache.
/// - GQA decode by table. Groups of 128 heads alone are bound by compute; their table is never left out.
/// Their clock runs on the host, so start-ups hold a launch. Host-side outliers stay in (241 us once for a kernel of
/// 27): errors are relative, so a row that is too slow weighs little.
/// Throws SpecError for another name, other types than bf16, and times that are not positive.
[[nodiscard]] std::vector<Observation> attention_observations(const CsvTable& table, const MachineFacts& machine);

/// Figures that FlashMLA's authors published (columns kernels, flash_mla_bound, tflops, GBps, batch, heads, query_len,
/// kv_len), the rows of `kernel_set`: rates of the products or of the cache in large kernels, at face value and without
/// overheads, which set_unfitted_overheads makes 0.
[[nodiscard]] std::vector<Observation> flash_mla_observations(const CsvTable& table, const std::string& kernel_set,
                                                              const MachineFacts& machine);

/// Where only rates of large kernels were fitted, MLA's three overheads are 0; by a clock of the device, a prefill's
/// least time.
void set_unfitted_overheads(Constants& constants);

}  // namespace moeline
