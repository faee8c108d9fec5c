// What the facts on attention share: a case's shape, its tensors, the forward kernel's launch.
#pragma once

#include <cuda_bf16.h>

#include <string>
#include <vector>

#include "attention_forward_kernel.cuh"
#include "attention_reference.hpp"
#include "buffer.hpp"
#include "case.hpp"
#include "numbers.hpp"
#include "random.hpp"

namespace moeline::bench {

struct AttentionCase {
  AttentionShape shape;
  int qk_dim, v_dim;

  [[nodiscard]] std::int64_t query_rows() const { return std::int64_t{shape.batch} * shape.query_len * shape.heads; }
  [[nodiscard]] std::int64_t key_rows() const { return std::int64_t{shape.batch} * shape.kv_len * shape.kv_heads; }
  [[nodiscard]] std::int64_t statistics() const {
    return std::int64_t{shape.batch} * shape.heads * padded_queries(shape.query_len);
  }
};

[[nodiscard]] AttentionCase attention_case(const Case& c);

/// Calls `run` with the head dimensions as template arguments. Throws Skip for those that no kernel is built for.
template <class Run>
void with_dims(const AttentionCase& c, Run run) {
  if (c.qk_dim == 192 && c.v_dim == 128) return run.template operator()<192, 128>();
  if (c.qk_dim == 128 && c.v_dim == 128) return run.template operator()<128, 128>();
  throw Skip("no kernel for these head dimensions");
}

/// Lets a kernel have so much shared memory, and an SM as many blocks of it as fit. Throws Skip where none fits.
template <class... Arguments>
void allow_shared(void (*kernel)(Arguments...), SharedAddress bytes, const Device& device) {
  if (static_cast<int>(bytes) > device.shared_per_block)
    throw Skip("needs " + std::to_string(bytes) + " bytes of shared memory per block");
  CHECK_STATUS(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  CHECK_STATUS(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    static_cast<int>(cudaSharedmemCarveoutMaxShared)));
}

/// For `cannot_run`: BF16 products, asynchronous copies.
[[nodiscard]] inline std::string needs_ampere(const Device& device) {
  return device.major >= 8 ? "" : "needs compute capability 8.0";
}

[[nodiscard]] inline Bf16* bits(__nv_bfloat16* data) { return reinterpret_cast<Bf16*>(data); }

/// Operands of the forward pass, in copies as buffer.hpp has them.
struct ForwardOperands {
  ForwardOperands(const AttentionCase& c, int sets);

  AttentionCase dims;
  Operand<__nv_bfloat16> query, key, value, output;
  Operand<float> log_sum;

  void fill_inputs(cudaStream_t stream) const;
  [[nodiscard]] ForwardArguments arguments(int turn) const;
};

/// Bytes of ForwardOperands that the kernel reads and writes.
[[nodiscard]] std::int64_t forward_bytes(const AttentionCase& c);

/// Before the first launch. Throws Skip where the kernel does not fit the device.
void allow_forward(const AttentionCase& c, const Device& device);
void launch_forward(const ForwardOperands& operands, cudaStream_t stream, int turn);

/// All rows of one head of a tensor [batch, length, heads, dim], on the host.
class HeadRows {
 public:
  HeadRows(const __nv_bfloat16* tensor, int batch, int length, int heads, int head, int dim);
  [[nodiscard]] Rows rows() const { return {values_.data(), dim_, dim_}; }
  [[nodiscard]] const double* at(std::size_t row) const { return rows().at(row); }

 private:
  std::size_t dim_;
  std::vector<double> values_;
};

/// One row of it.
[[nodiscard]] std::vector<double> fetch_row(const __nv_bfloat16* tensor, int batch, int length, int position, int heads,
                                            int head, int dim);

/// In units of a row's root mean square. Weights, score gradients and results are rounded to BF16 once each: of 2000
/// random rows of 2048 keys the worst is off by 0.018.
inline constexpr double kAttentionTolerance = 0.03;

}  // namespace moeline::bench
