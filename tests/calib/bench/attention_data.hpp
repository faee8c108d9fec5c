// Tensors for the attention kernels, and what they should make of them, in double precision and without tiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "calib/bench/attention.cuh"

namespace moeline::testing {

using Bf16Tensor = std::vector<bench::Bf16>;

// 16-byte aligned as operator new aligns; values uniform in [-1, 1].
inline Bf16Tensor random_tensor(std::size_t elements, unsigned seed) {
  std::mt19937 bits(seed);
  Bf16Tensor tensor(elements);
  for (bench::Bf16& value : tensor) value = bench::to_bf16(static_cast<float>(bits() % 20001) / 10000.0f - 1.0f);
  return tensor;
}

struct AttentionProblem {
  bench::AttentionShape shape;
  int qk_dim, v_dim;
  Bf16Tensor query, key, value, output_gradient;

  AttentionProblem(const bench::AttentionShape& s, int qk, int v)
      : shape(s),
        qk_dim(qk),
        v_dim(v),
        query(random_tensor(rows(s.query_len, s.heads) * dim(qk), 1)),
        key(random_tensor(rows(s.kv_len, s.kv_heads) * dim(qk), 2)),
        value(random_tensor(rows(s.kv_len, s.kv_heads) * dim(v), 3)),
        output_gradient(random_tensor(rows(s.query_len, s.heads) * dim(v), 4)) {
    // Sharper than chance: the softmax should have a maximum that moves from tile to tile.
    for (bench::Bf16& x : query) x = bench::to_bf16(4 * bench::to_float(x));
  }

  std::size_t rows(int length, int heads) const { return dim(shape.batch) * dim(length) * dim(heads); }
  static std::size_t dim(int n) { return static_cast<std::size_t>(n); }
};

struct AttentionResult {
  std::vector<double> output, query_gradient, key_gradient, value_gradient;
};

// One row of a tensor [batch, length, heads, dim] of any element type.
template <class T>
auto* row_of(std::vector<T>& tensor, int batch, int length, int position, int heads, int head, int dim) {
  return tensor.data() + bench::offset_of(batch, length, position, heads, head, dim);
}
template <class T>
const T* row_of(const std::vector<T>& tensor, int batch, int length, int position, int heads, int head, int dim) {
  return tensor.data() + bench::offset_of(batch, length, position, heads, head, dim);
}

template <class A, class B>
double dot(const A* a, const B* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += double{bench::to_float(a[i])} * double{bench::to_float(b[i])};
  return sum;
}

inline void add_scaled(double* target, const bench::Bf16* row, double scale, int count) {
  for (int i = 0; i < count; ++i) target[i] += scale * double{bench::to_float(row[i])};
}

inline std::vector<double> softmax(std::vector<double> scores) {
  const double maximum = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - maximum);
  for (double& score : scores) score /= sum;
  return scores;
}

inline AttentionResult reference_attention(const AttentionProblem& p) {
  const bench::AttentionShape& s = p.shape;
  AttentionResult result{std::vector<double>(p.output_gradient.size()), std::vector<double>(p.query.size()),
                         std::vector<double>(p.key.size()), std::vector<double>(p.value.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(p.qk_dim));
  for (int b = 0; b < s.batch; ++b)
    for (int h = 0; h < s.heads; ++h)
      for (int i = 0; i < s.query_len; ++i) {
        const int visible = i + s.kv_len - s.query_len + 1, kv_head = h / (s.heads / s.kv_heads);
        const auto at = [&](auto& tensor, int j, int dim) {
          return row_of(tensor, b, s.kv_len, j, s.kv_heads, kv_head, dim);
        };
        const bench::Bf16* query = row_of(p.query, b, s.query_len, i, s.heads, h, p.qk_dim);
        const bench::Bf16* gradient = row_of(p.output_gradient, b, s.query_len, i, s.heads, h, p.v_dim);
        std::vector<double> weights(AttentionProblem::dim(visible)), weight_gradients(weights.size());
        for (int j = 0; j < visible; ++j)
          weights[AttentionProblem::dim(j)] = scale * dot(query, at(p.key, j, p.qk_dim), p.qk_dim);
        weights = softmax(weights);
        double weighted_gradient = 0;
        for (int j = 0; j < visible; ++j) {
          const double weight = weights[AttentionProblem::dim(j)];
          add_scaled(row_of(result.output, b, s.query_len, i, s.heads, h, p.v_dim), at(p.value, j, p.v_dim), weight,
                     p.v_dim);
          add_scaled(at(result.value_gradient, j, p.v_dim), gradient, weight, p.v_dim);
          weight_gradients[AttentionProblem::dim(j)] = dot(gradient, at(p.value, j, p.v_dim), p.v_dim);
          weighted_gradient += weight * weight_gradients[AttentionProblem::dim(j)];
        }
        for (int j = 0; j < visible; ++j) {
          const std::size_t k = AttentionProblem::dim(j);
          const double score_gradient = scale * weights[k] * (weight_gradients[k] - weighted_gradient);
          add_scaled(row_of(result.query_gradient, b, s.query_len, i, s.heads, h, p.qk_dim), at(p.key, j, p.qk_dim),
                     score_gradient, p.qk_dim);
          add_scaled(at(result.key_gradient, j, p.qk_dim), query, score_gradient, p.qk_dim);
        }
      }
  return result;
}

// The largest difference, as a share of the largest expected value: BF16 keeps 8 bits, so a rounding is off by up to
// 1/512 of it, and roundings of weights and score gradients average out in the sums. NaN gives NaN.
inline double worst_error(const Bf16Tensor& got, const std::vector<double>& expected) {
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(double{bench::to_float(got[i])} - expected[i]);
    largest = std::max(largest, std::abs(expected[i]));
    if (!(error <= worst)) worst = error;
  }
  return worst / largest;
}

}  // namespace moeline::testing
