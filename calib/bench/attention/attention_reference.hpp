// Attention of single queries and keys in double precision, from the definition: what kernels are held against. Plain
// C++, for the benchmarks on a device and for the tests without one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace moeline::bench {

/// Rows of a matrix: `columns` numbers each, `stride` apart.
struct Rows {
  const double* data;
  std::size_t stride;
  std::size_t columns;
  [[nodiscard]] const double* at(std::size_t row) const { return data + row * stride; }
};

inline double dot(const double* a, const double* b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

inline void add_scaled(std::vector<double>& sum, const double* row, double factor) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * row[i];
}

/// One query and the keys that it sees.
struct Attended {
  std::vector<double> weights;
  std::vector<double> output;
  double log_sum;  ///< of the exponentials of the scaled scores, in base 2
};

[[nodiscard]] inline Attended attend(const double* query, const Rows& keys, const Rows& values, std::size_t visible,
                                     double scale) {
  Attended result{std::vector<double>(visible), std::vector<double>(values.columns), 0};
  for (std::size_t j = 0; j < visible; ++j) result.weights[j] = scale * dot(query, keys.at(j), keys.columns);
  const double maximum = *std::max_element(result.weights.begin(), result.weights.end());
  double sum = 0;
  for (double& weight : result.weights) sum += weight = std::exp(weight - maximum);
  for (double& weight : result.weights) weight /= sum;
  for (std::size_t j = 0; j < visible; ++j) add_scaled(result.output, values.at(j), result.weights[j]);
  result.log_sum = (maximum + std::log(sum)) / std::log(2.0);
  return result;
}

[[nodiscard]] inline std::vector<double> query_gradient(const Attended& attended, const double* output_gradient,
                                                        const Rows& keys, const Rows& values, double scale) {
  const double mean = dot(attended.output.data(), output_gradient, values.columns);
  std::vector<double> result(keys.columns);
  for (std::size_t j = 0; j < attended.weights.size(); ++j) {
    const double of_weight = dot(values.at(j), output_gradient, values.columns);
    add_scaled(result, keys.at(j), scale * attended.weights[j] * (of_weight - mean));
  }
  return result;
}

/// What one key and its value receive from the queries that see them.
struct KeyGradient {
  std::vector<double> key, value;
};

/// The queries of one head from `first_query` on; `log_sum` as in Attended.
struct Queries {
  Rows query, output, output_gradient;
  const double* log_sum;
  std::size_t count;
};

inline void add_queries(KeyGradient& gradient, const double* key, const double* value, const Queries& queries,
                        std::size_t first_query, double scale) {
  const std::size_t dim = queries.query.columns, v_dim = queries.output.columns;
  for (std::size_t i = first_query; i < queries.count; ++i) {
    const double* of_output = queries.output_gradient.at(i);
    const double weight = std::exp2(scale * dot(queries.query.at(i), key, dim) / std::log(2.0) - queries.log_sum[i]);
    const double of_weight = dot(of_output, value, v_dim) - dot(of_output, queries.output.at(i), v_dim);
    add_scaled(gradient.value, of_output, weight);
    add_scaled(gradient.key, queries.query.at(i), scale * weight * of_weight);
  }
}

}  // namespace moeline::bench
