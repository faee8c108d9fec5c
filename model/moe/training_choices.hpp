// What a training run keeps, repeats and shares between replicas. The defaults are DeepSeek-V3's (arXiv 2412.19437,
// sections 3.2 and 3.3, and the kernels of its published profile).
#pragma once

namespace moeline {

/// What the backward pass computes again instead of finding it in memory.
enum class Recompute {
  selective,  ///< RMSNorm, MLA's up-projections, SwiGLU
  none,
  full,  ///< each layer's whole forward pass, but for combine; only layers' inputs are kept
};

struct TrainingChoices {
  Recompute recompute = Recompute::selective;
  bool narrow_activations = true;  ///< SwiGLU's input is kept in FP8, attention's output in 12 bits; else in BF16
  bool fp32_gradients = true;      ///< accumulated in FP32; else BF16
  bool fp32_moments = false;       ///< of AdamW; else BF16. Master weights are FP32
  bool zero1 = true;               ///< optimizer states are split over the replicas of their parameters
  bool overlap_gradients = true;  ///< a stage's gradients are reduced as soon as they are complete, else after the last
  bool mtp = true;                ///< the model's MTP modules are trained, too
  bool overlap_sends = true;      ///< a rank goes on while it sends activations to another stage
};

}  // namespace moeline
