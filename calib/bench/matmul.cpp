#include "matmul.hpp"

namespace moeline::bench {
namespace {

constexpr std::size_t kWorkspaceBytes = 32 << 20;  // what NVIDIA recommends for Hopper and later

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  CHECK_STATUS(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}

/// `rows` of `columns` numbers each, one row after another.
cublasLtMatrixLayout_t row_major(cudaDataType type, std::int64_t rows, std::int64_t columns, std::int64_t groups) {
  cublasLtMatrixLayout_t layout = nullptr;
  CHECK_STATUS(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), columns));
  if (groups == 1) return layout;
  const auto count = static_cast<std::int32_t>(groups);
  const std::int64_t stride = rows * columns;
  CHECK_STATUS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  CHECK_STATUS(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return layout;
}

std::int32_t mode_of(Scaling scaling, bool weights) {
  if (scaling == Scaling::mx) return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  return weights ? CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F : CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
}

}  // namespace

Scaling scaling_named(const std::string& name) { return name == "1x128" ? Scaling::hopper : Scaling::mx; }

std::string fp8_scaling_of(const Device& device) {
  if (device.major == 9) return "1x128";
  return device.major == 10 ? "mx32" : "";
}

std::int64_t ScaleLayout::count() const {
  const auto blocks = quotient_up(k, 128);
  switch (scaling) {
    case Scaling::none:
      return 0;
    case Scaling::hopper:
      return weights ? quotient_up(blocks, 4) * 4 * quotient_up(rows, 128) : rows * blocks;
    case Scaling::mx:
      return quotient_up(rows, 128) * blocks * 512;  // tiles of 128 rows x 4 blocks of 32
  }
  return 0;
}

std::int64_t ScaleLayout::place(std::int64_t row, std::int64_t k_index) const {
  const auto blocks = quotient_up(k, 128), block = k_index / 128;
  if (scaling == Scaling::hopper)
    return weights ? row / 128 * (quotient_up(blocks, 4) * 4) + block : block * rows + row;
  const auto tile = row / 128 * blocks + block;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + k_index / 32 % 4;
}

Matmul::Matmul(const Bench& bench, const MatmulShape& shape)
    : shape_(shape), workspace_(kWorkspaceBytes), handle_(bench.blas_lt) {
  if (shape.sms > bench.device.sms) throw Skip("the device has " + std::to_string(bench.device.sms) + " SMs");
  const cudaDataType type = shape.scaling == Scaling::none ? CUDA_R_16BF : CUDA_R_8F_E4M3;
  w_.reset(row_major(type, shape.n, shape.k, shape.groups));
  x_.reset(row_major(type, shape.m, shape.k, shape.groups));
  d_.reset(row_major(CUDA_R_16BF, shape.m, shape.n, shape.groups));
  describe_operation();
  choose_algorithm();
}

void Matmul::describe_operation() {
  cublasLtMatmulDesc_t operation = nullptr;
  CHECK_STATUS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  operation_.reset(operation);
  set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (shape_.sms > 0)
    set(operation_.get(), CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<std::int32_t>(shape_.sms));
  if (shape_.scaling == Scaling::none) return;
  set(operation_.get(), CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode_of(shape_.scaling, true));
  set(operation_.get(), CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode_of(shape_.scaling, false));
  // The heuristic looks at whether there are scales, not at where: launch() sets the real addresses.
  set(operation_.get(), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(workspace_.data()));
  set(operation_.get(), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(workspace_.data()));
}

void Matmul::choose_algorithm() {
  cublasLtMatmulPreference_t preference = nullptr;
  CHECK_STATUS(cublasLtMatmulPreferenceCreate(&preference));
  const std::size_t bytes = workspace_.bytes();
  CHECK_STATUS(
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, operation_.get(), w_.get(), x_.get(), d_.get(),
                                                               d_.get(), preference, 1, &best, &found);
  (void)cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Skip(std::string("cuBLASLt has no algorithm: ") + cublasGetStatusString(status));
  if (found == 0 || best.state != CUBLAS_STATUS_SUCCESS) throw Skip("cuBLASLt has no algorithm");
  algorithm_ = best.algo;
}

void Matmul::launch(cudaStream_t stream, const MatmulOperands& operands) {
  const float alpha = 1, beta = 0;
  if (shape_.scaling != Scaling::none) {
    set(operation_.get(), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.w_scale);
    set(operation_.get(), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.x_scale);
  }
  CHECK_STATUS(cublasLtMatmul(handle_, operation_.get(), &alpha, operands.w, w_.get(), operands.x, x_.get(), &beta,
                              operands.d, d_.get(), operands.d, d_.get(), &algorithm_, workspace_.data(),
                              workspace_.bytes(), stream));
}

}  // namespace moeline::bench
