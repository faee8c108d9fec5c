// The matrices of one layer, under the names that checkpoints give them behind "layers.N.".
#pragma once

#include <string>
#include <vector>

#include "architecture/architecture.hpp"

namespace moeline {

struct Matrix {
  std::vector<std::string> names;  ///< by family; of experts that of the first one
  double parameters = 0;
};

/// Of attention's projections, behind the last dot of its name: the one of the output, and one of those before the
/// core.
inline constexpr const char* kOutputProjection = "o_proj";
[[nodiscard]] inline const char* input_projection(const Architecture& model) {
  return model.is_mla() ? "kv_a_proj_with_mqa" : "q_proj";
}

/// Projections of attention.
[[nodiscard]] std::vector<Matrix> attention_matrices(const Architecture& model);
/// Gate, up and down projection of one dense FFN, of one routed and of one shared expert.
[[nodiscard]] std::vector<Matrix> dense_matrices(const Architecture& model);
[[nodiscard]] std::vector<Matrix> expert_matrices(const Architecture& model);
[[nodiscard]] std::vector<Matrix> shared_matrices(const Architecture& model);

}  // namespace moeline
