#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "check.hpp"

namespace moeline::bench {

std::vector<std::int64_t> sampled_places(std::int64_t size, int count) {
  std::vector<std::int64_t> places{0, size - 1};
  for (int i = 1; i + 1 < count; ++i) places.push_back((i * size / (count - 1) + 37 * i * i) % size);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

void require_close(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  double squares = 0;
  for (const double x : want) squares += x * x;
  const double scale = std::sqrt(squares / static_cast<double>(want.size()));
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]) / scale;
    if (error <= tolerance) continue;  // false for a NaN too
    char text[160];
    std::snprintf(text, sizeof text, "error %.3g of the results' root mean square (allowed %.3g): %.6g, reference %.6g",
                  error, tolerance, got[i], want[i]);
    throw WrongResult(text);
  }
}

}  // namespace moeline::bench
