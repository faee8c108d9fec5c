// What training, prefill and decode alike give a rank to do in one block of a model.
#pragma once

#include <cmath>
#include <string>

#include "architecture/architecture.hpp"
#include "moe/comm_mode.hpp"
#include "routing/routing.hpp"

namespace moeline {

/// What a kernel's weights of experts are rounded up to, filled with zeroes that it multiplies by.
struct ExpertPadding {
  int width = 1;   ///< a rank's columns of the FFN
  int hidden = 1;  ///< the model's hidden numbers

  [[nodiscard]] double padded_width(double columns) const { return std::ceil(columns / width) * width; }
  [[nodiscard]] double padded_hidden(double numbers) const { return std::ceil(numbers / hidden) * hidden; }
};

struct RankWork {
  Architecture model;
  int ep = 64;
  int gpus_per_node = 8;
  Spread spread;                          ///< of tokens over nodes and ranks
  ExpertLoad load;                        ///< of this rank's experts
  ElasticChoices elastic;                 ///< of DeepEP's second version
  bool has_fp4 = false;                   ///< tensor cores that multiply FP4; others unpack it
  Precision mxfp4_rows = Precision::fp8;  ///< with which these multiply MXFP4, in fused experts

  /// What weights of this format are multiplied in.
  [[nodiscard]] Precision tensor_format(Precision weights) const {
    const bool itself = is_fp8_by_tensor(weights) || (weights == Precision::nvfp4 && has_fp4);
    return itself ? weights : multiplied_in(weights);
  }
  /// The same of experts that run as one fused layer: tensor cores that multiply FP4 take MXFP4 with rows in MXFP8, or
  /// in BF16.
  [[nodiscard]] Precision fused_format(Precision weights) const {
    return weights == Precision::mxfp4 && has_fp4 ? mxfp4_rows : tensor_format(weights);
  }
};

// What needs whose result: facts of the model, whatever the schedule.

struct PhaseDependency {
  std::string before;
  std::string after;
  bool next_layer = false;  ///< `after` belongs to the layer executed next
};

/// By the names of all phases: "dispatch(F)", "combine".
[[nodiscard]] inline bool is_transfer(const std::string& phase) {
  return phase.starts_with("dispatch") || phase.starts_with("combine");
}

}  // namespace moeline
