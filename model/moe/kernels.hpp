// Short names for the kernels that operator lists are made of. Sizes in elements, bytes counted once per tensor.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "moe/operator.hpp"
#include "moe/small_kernels.hpp"

namespace moeline::kernels {

inline constexpr double kFp8 = 1;
inline constexpr double kBf16 = 2;
inline constexpr double kFp32 = 4;
inline constexpr double kScaleBlock = 128;  // columns that share one FP32 scale

/// The same kernel as part of a module.
inline Operator in(const char* module, Operator op) {
  op.module = module;
  return op;
}

/// Kernels in launch order, each part of a module.
class KernelList {
 public:
  void add(const char* module, Operator op) { ops_.push_back(in(module, std::move(op))); }
  void add(const char* module, std::vector<Operator> ops) {
    for (Operator& op : ops) add(module, std::move(op));
  }
  [[nodiscard]] std::vector<Operator>& ops() { return ops_; }

 private:
  std::vector<Operator> ops_;
};

inline Operator memory(Family family, std::string name, double bytes) {
  Operator op;
  op.name = std::move(name);
  op.family = family;
  op.bytes = bytes;
  op.measured_as = family == Family::rowwise ? name_of(family) : "";
  return op;
}

inline Operator small(std::string name) {
  Operator op = memory(Family::small, std::move(name), 0);
  op.blocks = 32;
  return op;
}

inline Operator gemm(Family family, std::string name, double m, double n, double k, double groups = 1) {
  Operator op;
  op.name = std::move(name);
  op.family = family;
  op.m = m;
  op.n = n;
  op.k = k;
  op.groups = groups;
  op.flops = 2 * m * n * k;
  const double in = number_bytes(row_of(family).precision);
  const double out = family == Family::gemm_fp8_wgrad ? 2 * kFp32 : kBf16;  // weight gradients: read, add, write
  op.bytes = in * (m * k + groups * k * n) + out * m * n;
  return op;
}

/// Top-k of the router or DeepEP's layout: scans `items` token-expert pairs.
inline Operator routing_scan(std::string name, double items) {
  Operator op = memory(Family::routing_scan, std::move(name), 0);
  op.items = items;
  return op;
}

/// One thread block per row: with few rows, few SMs.
inline Operator rowwise(std::string name, double rows, double bytes) {
  constexpr double kPlenty = 128;
  Operator op = memory(Family::rowwise, std::move(name), bytes);
  if (rows < kPlenty) op.blocks = static_cast<int>(std::ceil(rows));
  return op;
}
/// BF16 -> FP8 with 1x128 scales, or another format, or back.
inline Operator cast(std::string name, double rows, double columns, Precision to = Precision::fp8) {
  return rowwise(std::move(name), rows, rows * columns * (kBf16 + number_bytes(to)));
}
inline Operator cast_transpose(std::string name, double rows, double columns) {
  return memory(Family::cast_transpose, std::move(name), rows * columns * (kBf16 + kFp8));
}

/// Tables of serving stacks list linear layers whole, GEMM and cast of its input; each says which layer it is of.
inline std::string linear_family(Precision precision) { return "linear_" + name_of(precision); }

/// The GEMM of a linear layer, m x k times k x n, by tensor cores of this format.
inline Operator linear_gemm(Precision precision, std::string name, double m, double n, double k) {
  const Family family = precision == Precision::nvfp4 ? Family::gemm_nvfp4
                        : is_fp8_by_tensor(precision) ? Family::gemm_fp8_tensor
                        : precision == Precision::fp8 ? Family::gemm_fp8
                                                      : Family::gemm_bf16;
  Operator op = gemm(family, std::move(name), m, n, k);
  op.measured_as = linear_family(precision);
  return op;
}

/// The same in BF16 with weights that lie packed in four bits and are unpacked on the way, their scales beside them.
inline Operator unpacking_gemm(Precision stored, std::string name, double m, double n, double k) {
  Operator op = linear_gemm(Precision::bf16, std::move(name), m, n, k);
  op.precision = Precision::int4;
  op.measured_as = linear_family(Precision::int4);
  op.bytes = n * k * bytes_per_weight(stored) + kBf16 * (m * k + m * n);
  return op;
}

/// One GEMM of m x k times k x n per head: MLA's absorbed projections.
inline Operator per_head_gemm(Precision precision, std::string name, double heads, double m, double n, double k) {
  Operator op = gemm(Family::gemm_bf16_batched, std::move(name), heads * m, n, k, heads);
  op.precision = precision;
  op.measured_as = std::string(n > k ? "mla_up_" : "mla_down_") + name_of(precision);
  return op;
}

/// The cast of its input, from BF16.
inline Operator linear_cast(Precision precision, std::string name, double m, double n, double k) {
  Operator op = rowwise(std::move(name), m, m * k * (kBf16 + number_bytes(precision)));
  op.m = m;
  op.n = n;
  op.k = k;
  op.precision = precision;
  op.measured_as = linear_family(precision);
  return op;
}

/// RMSNorm over `tensors` tensors of rows x columns, read or written (residual and gradient included).
inline Operator norm(std::string name, double rows, double columns, double tensors) {
  return as_small(SmallKernel::norm, rowwise(std::move(name), rows, rows * columns * tensors * kBf16));
}
/// Reads and writes `tensors` BF16 tensors in all.
inline Operator elementwise(std::string name, double elements, double tensors) {
  return memory(Family::streaming, std::move(name), elements * tensors * kBf16);
}
inline Operator transpose_weights(std::string name, double elements) {
  Operator op = memory(Family::streaming, std::move(name), elements * 2 * kFp8);
  op.of_weights = true;
  return op;
}
/// FP32 scales of rows x columns into the layout a GEMM wants, by a thread block for each 128 x 128 of them.
inline Operator transpose_scales(double rows, double columns) {
  constexpr double kTile = 128;
  const double scales = columns / kScaleBlock;
  Operator op = memory(Family::strided, "transpose scales", rows * scales * 2 * kFp32);
  op.blocks = static_cast<int>(std::ceil(rows / kTile) * std::ceil(scales / kTile));
  return op;
}

inline Operator recomputed(Operator op) {
  op.recomputed_flops = op.flops;
  op.purpose = Purpose::recompute;
  op.name += " (recompute)";
  return op;
}
inline Operator stored(Operator op) {
  op.purpose = Purpose::storage;
  return op;
}

}  // namespace moeline::kernels
