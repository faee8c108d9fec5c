#include "product_check.hpp"

#include <numeric>

#include "buffer.hpp"
#include "compare.hpp"

namespace moeline::bench {

void require_product(const Product& product) {
  const auto columns = sampled_places(product.n);
  std::vector<double> got, want;
  for (const auto group : sampled_places(product.groups, 3)) {
    std::vector<std::vector<double>> w;
    for (const auto column : columns) w.push_back(product.w(group, column));
    for (const auto row : sampled_places(product.m)) {
      const auto x = product.x(group, row);
      const auto d = fetch(product.d(group, row), product.n);
      for (std::size_t j = 0; j < columns.size(); ++j) {
        got.push_back(static_cast<float>(d[static_cast<std::size_t>(columns[j])]));
        want.push_back(std::inner_product(x.begin(), x.end(), w[j].begin(), 0.0));
      }
    }
  }
  require_close(got, want, product.tolerance);
}

}  // namespace moeline::bench
