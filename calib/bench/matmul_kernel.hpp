// A product by cuBLASLt with operands of its own: what the dense GEMMs and the batched FP8 one time.
#pragma once

#include "bench.hpp"
#include "matmul.hpp"

namespace moeline::bench {

/// `m n k`, and `groups`, `scaling` and `sms` where the case has them; BF16 where it has no scaling.
[[nodiscard]] MatmulShape matmul_shape(const Case& c);
[[nodiscard]] Kernel prepare_matmul(const Bench& bench, const MatmulShape& shape);

}  // namespace moeline::bench
