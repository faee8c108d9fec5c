// A product held against sums in double precision, at sampled rows and columns of sampled groups.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace moeline::bench {

struct Product {
  std::int64_t groups = 1, m = 0, n = 0;
  /// Row of X or W as it counts in the product, scales included.
  std::function<std::vector<double>(std::int64_t group, std::int64_t row)> x, w;
  /// Where row `row` of D begins.
  std::function<const __nv_bfloat16*(std::int64_t group, std::int64_t row)> d;
  /// Allowed error, of the results' root mean square: 2^-8 of a result that is four times it, and the accumulator's.
  double tolerance = 0.025;
};

/// Throws WrongResult. REQUIRES: D is written, the stream is idle.
void require_product(const Product& product);

}  // namespace moeline::bench
