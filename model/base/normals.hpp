// Normal numbers that many ask for: the points of a sweep are drawn alike, and drawing is most of what a draw costs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace moeline {

using Normals = std::shared_ptr<const std::vector<double>>;

/// The first numbers of Random(seed, stream).normal(), `count` or more of them, the same ones for whoever asks again.
/// Thread-safe; forgets all when it has drawn many.
[[nodiscard]] Normals normals(std::uint64_t seed, std::uint64_t stream, std::size_t count);

}  // namespace moeline
