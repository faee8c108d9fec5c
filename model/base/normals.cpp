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
  constexpr std::size_t kMany = std::size_t{1} << 22U;  // 32 MiB
  static std::mutex mutex;
  static std::map<std::pair<std::uint64_t, std::uint64_t>, Normals> known;
  static std::size_t drawn = 0;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find({seed, stream}); found != known.end()) {
    if (found->second->size() >= count) return found->second;
    count = std::max(count, 2 * found->second->size());
    drawn -= found->second->size();
    known.erase(found);
  }
  if (drawn + count > kMany) {
    known.clear();
    drawn = 0;
  }
  drawn += count;
  return known[{seed, stream}] = draw(seed, stream, count);
}

}  // namespace moeline
