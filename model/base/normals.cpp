#include "base/normals.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/random.hpp"

namespace moeline {
namespace {

Normals draw(std::uint64_t seed, std::uint64_t stream, std::size_t count) {
  Random random(seed, stream);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = random.normal();
  return std::make_shared<const std::vector<double>>(std::move(numbers));
}

}  // namespace

Normals normals(std::uint64_t seed, std::uint64_t stream, std::size_t count) {
  constexpr std::size_t kMany = 64;
  static std::mutex mutex;
  static std::map<std::pair<std::uint64_t, std::uint64_t>, Normals> known;
  const std::scoped_lock lock(mutex);
  if (known.size() >= kMany) known.clear();
  Normals& numbers = known[{seed, stream}];
  if (!numbers || numbers->size() < count) {
    numbers = draw(seed, stream, std::max(count, numbers ? 2 * numbers->size() : 0));
  }
  return numbers;
}

}  // namespace moeline
