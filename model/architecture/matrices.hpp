// The matrices of one layer, under the names that checkpoints give them behind "layers.N.".
#pragma once

#include <string>
#include <vector>

#include "architecture/architecture.hpp"

namespace moeline {

/// Which of a module's GEMMs a matrix belongs to.
enum class MatrixUse {
  in,    ///< those before the core
  out,   ///< the one behind it
  side,  ///< small ones beside these: gates, decays, scores
};

struct Matrix {
  std::vector<std::string> names;  ///< by family; of experts that of the first one
  double parameters = 0;
  MatrixUse use = MatrixUse::in;
};

/// Projections of attention; none where the layer has no attention.
[[nodiscard]] std::vector<Matrix> attention_matrices(const Architecture& model, const LayerAttention& attention);
/// Of the indexer that chooses keys, where the layer has its own.
[[nodiscard]] std::vector<Matrix> indexer_matrices(const Architecture& model, const LayerAttention& attention);
/// Of compressed attention: how many blocks a token is compressed into.
[[nodiscard]] double overlap_of(const LayerAttention& attention);
/// Gate, up and down projection of one dense FFN, of one routed and of one shared expert; without a gate two of them.
[[nodiscard]] std::vector<Matrix> dense_matrices(const Architecture& model, int width);
[[nodiscard]] std::vector<Matrix> expert_matrices(const Architecture& model);
[[nodiscard]] std::vector<Matrix> shared_matrices(const Architecture& model);

/// Heads that a rank has of those that `tp` ranks share; of fewer keys than ranks several have the same.
[[nodiscard]] LayerAttention attention_of_rank(LayerAttention attention, int tp);

[[nodiscard]] double parameters_of(const std::vector<Matrix>& matrices);

}  // namespace moeline
