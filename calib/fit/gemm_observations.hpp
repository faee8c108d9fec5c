// Observations from benchmarks of FP8 GEMMs, nothing beside them. `tiles`: of the kernel set that is fitted. Folds: n x
// k, in all layouts at once, since they share constants.
#pragma once

#include <string>
#include <vector>

#include "base/csv.hpp"
#include "calib/fit/observation.hpp"

namespace moeline {

/// Dense (columns m, n, k, latency_us): rows with m >= 64.
[[nodiscard]] bool is_dense_gemm_table(const CsvTable& table);
[[nodiscard]] std::vector<Observation> dense_gemm_observations(const CsvTable& table, const MachineFacts& machine,
                                                               TileSet tiles);

/// Grouped, contiguous or masked (columns num_local_experts, tokens_per_expert, hidden_size, intermediate_size,
/// up_proj_us, up_mfu, down_proj_us, down_mfu, and seq_len_per_gpu or batch_size_per_gpu).
///
/// The benchmark drew each group's rows, int(tokens_per_expert x U(0.7, 1.3)), from Python's generator with seed 0, the
/// masked one ten times for each row of the table and projection, of which the last was timed. The draws are repeated
/// here; that they are the same shows in their sums, which `mfu` (of 1979 TFLOP/s) gives exactly. Where one is not,
/// as in a table made otherwise, the sums alone are used, split evenly.
[[nodiscard]] bool is_grouped_gemm_table(const CsvTable& table);
[[nodiscard]] std::vector<Observation> grouped_gemm_observations(const CsvTable& table, const MachineFacts& machine,
                                                                 TileSet tiles);

/// Published figures (columns layout, groups, m, n, k, tflops, kernels; m: rows of each group): the rows of
/// `kernel_set`. Noise::profiled: beside the training trace they count as kernels of it, or would not at all.
[[nodiscard]] bool is_published_gemm_table(const CsvTable& table);
[[nodiscard]] std::vector<Observation> published_gemm_observations(const CsvTable& table, const MachineFacts& machine,
                                                                   const std::string& kernel_set, TileSet tiles);

/// A row of published figures as an operator.
[[nodiscard]] Operator published_gemm(const CsvTable& table, std::size_t row);

/// The rows of every group, per row of a grouped table and projection (up, down, up, ...). Empty where the draws are
/// not those of the table.
[[nodiscard]] std::vector<std::vector<int>> drawn_rows(const CsvTable& table);

}  // namespace moeline
