// Tensors for the attention kernels, and what the kernels should make of them.
#pragma once

#include <random>
#include <vector>

#include "calib/bench/attention/attention.cuh"
#include "calib/bench/attention/attention_reference.hpp"

namespace moeline::testing {

using Bf16Tensor = std::vector<bench::Bf16>;  // 16-byte aligned, as operator new aligns

inline std::size_t size(int n) { return static_cast<std::size_t>(n); }

/// Uniform in [-range, range].
inline Bf16Tensor random_tensor(std::size_t elements, unsigned seed, float range = 1) {
  std::mt19937 bits(seed);
  Bf16Tensor tensor(elements);
  for (bench::Bf16& value : tensor)
    value = bench::to_bf16(range * (static_cast<float>(bits() % 20001) / 10000.0f - 1.0f));
  return tensor;
}

inline std::vector<double> numbers(const Bf16Tensor& tensor) {
  std::vector<double> result;
  for (bench::Bf16 value : tensor) result.push_back(double{bench::to_float(value)});
  return result;
}

inline double root_mean_square(const std::vector<double>& row) {
  return std::sqrt(bench::dot(row.data(), row.data(), row.size()) / static_cast<double>(row.size()));
}

/// The largest error of results, row by row, in units of the row's root mean square; of rows that are much smaller than
/// the largest, in units of a part of that: their terms cancel, but not the rounding of them. NaN where a result is
/// none.
class WorstError {
 public:
  explicit WorstError(const Bf16Tensor& got) : got_(got) {}

  /// `row`: the place of `expected` among the rows of the tensor.
  void add(std::size_t row, std::vector<double> expected) {
    largest_ = std::max(largest_, root_mean_square(expected));
    rows_.push_back({row, std::move(expected)});
  }

  double value() const {
    double worst = 0;
    for (const auto& [row, expected] : rows_) {
      const double unit = std::max(root_mean_square(expected), largest_ / 8);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double error = std::abs(double{bench::to_float(got_[row * expected.size() + i])} - expected[i]) / unit;
        if (!(error <= worst)) worst = error;
      }
    }
    return worst;
  }

 private:
  struct Row {
    std::size_t place;
    std::vector<double> expected;
  };
  const Bf16Tensor& got_;
  std::vector<Row> rows_;
  double largest_ = 0;
};

struct AttentionProblem {
  bench::AttentionShape shape;
  int qk_dim, v_dim;
  Bf16Tensor query, key, value, output_gradient;

  AttentionProblem(const bench::AttentionShape& s, int qk, int v)
      : shape(s),
        qk_dim(qk),
        v_dim(v),
        query(random_tensor(query_rows() * size(qk), 1, 4)),  // sharper than chance: maxima that move between tiles
        key(random_tensor(key_rows() * size(qk), 2)),
        value(random_tensor(key_rows() * size(v), 3)),
        output_gradient(random_tensor(query_rows() * size(v), 4)) {}

  std::size_t query_rows() const { return size(shape.batch * shape.query_len * shape.heads); }
  std::size_t key_rows() const { return size(shape.batch * shape.kv_len * shape.kv_heads); }
  double scale() const { return 1 / std::sqrt(static_cast<double>(qk_dim)); }
};

/// A problem's tensors as doubles, head by head.
class AttentionReference {
 public:
  explicit AttentionReference(const AttentionProblem& problem)
      : p_(problem),
        query_(numbers(problem.query)),
        key_(numbers(problem.key)),
        value_(numbers(problem.value)),
        output_gradient_(numbers(problem.output_gradient)) {
    for (int batch = 0; batch < s().batch; ++batch)
      for (int head = 0; head < s().heads; ++head)
        for (int i = 0; i < s().query_len; ++i) attend(batch, head, i);
  }

  /// The place of a query's or key's row among the rows of its tensors.
  std::size_t query_row(int batch, int head, int i) const {
    return size(static_cast<int>(bench::offset_of(batch, s().query_len, i, s().heads, head, 1)));
  }
  std::size_t key_row(int batch, int kv_head, int j) const {
    return size(static_cast<int>(bench::offset_of(batch, s().kv_len, j, s().kv_heads, kv_head, 1)));
  }

  const bench::Attended& attended(int batch, int head, int i) const {
    return attended_[size((batch * s().heads + head) * s().query_len + i)];
  }

  std::vector<double> query_gradient(int batch, int head, int i) const {
    const double* gradient = output_gradient_.data() + query_row(batch, head, i) * size(p_.v_dim);
    return bench::query_gradient(attended(batch, head, i), gradient, keys(batch, kv_head(head)),
                                 values(batch, kv_head(head)), p_.scale());
  }

  bench::KeyGradient key_gradient(int batch, int kv_head, int j) const {
    const int sharing = s().heads / s().kv_heads, hidden = j - (s().kv_len - s().query_len);
    bench::KeyGradient gradient{std::vector<double>(size(p_.qk_dim)), std::vector<double>(size(p_.v_dim))};
    for (int head = kv_head * sharing; head < (kv_head + 1) * sharing; ++head) {
      std::vector<double> output, log_sum;
      for (int i = 0; i < s().query_len; ++i) {
        const bench::Attended& a = attended(batch, head, i);
        output.insert(output.end(), a.output.begin(), a.output.end());
        log_sum.push_back(a.log_sum);
      }
      const bench::Queries queries{rows(query_, query_row(batch, head, 0), s().heads, p_.qk_dim),
                                   {output.data(), size(p_.v_dim), size(p_.v_dim)},
                                   rows(output_gradient_, query_row(batch, head, 0), s().heads, p_.v_dim),
                                   log_sum.data(),
                                   size(s().query_len)};
      bench::add_queries(gradient, keys(batch, kv_head).at(size(j)), values(batch, kv_head).at(size(j)), queries,
                         size(std::max(hidden, 0)), p_.scale());
    }
    return gradient;
  }

 private:
  const bench::AttentionShape& s() const { return p_.shape; }
  int kv_head(int head) const { return head / (s().heads / s().kv_heads); }

  static bench::Rows rows(const std::vector<double>& tensor, std::size_t first_row, int heads, int dim) {
    return {tensor.data() + first_row * size(dim), size(heads * dim), size(dim)};
  }
  bench::Rows keys(int batch, int kv_head) const {
    return rows(key_, key_row(batch, kv_head, 0), s().kv_heads, p_.qk_dim);
  }
  bench::Rows values(int batch, int kv_head) const {
    return rows(value_, key_row(batch, kv_head, 0), s().kv_heads, p_.v_dim);
  }

  void attend(int batch, int head, int i) {
    const double* query = query_.data() + query_row(batch, head, i) * size(p_.qk_dim);
    attended_.push_back(bench::attend(query, keys(batch, kv_head(head)), values(batch, kv_head(head)),
                                      size(i + s().kv_len - s().query_len + 1), p_.scale()));
  }

  const AttentionProblem& p_;
  std::vector<double> query_, key_, value_, output_gradient_;
  std::vector<bench::Attended> attended_;
};

}  // namespace moeline::testing
