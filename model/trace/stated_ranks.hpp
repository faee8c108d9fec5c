// The ranks of a process group as PyTorch writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace moeline {

/// Of more than 30 ranks PyTorch writes the first ones and the last: "[0, 8, ..., 504]".
struct StatedRanks {
  std::vector<std::uint32_t> ranks;
  bool abbreviated = false;  ///< some are left out before the last
};

/// From "[0, 1, 2]", with or without brackets and commas. Nothing where it is no list of different ranks.
[[nodiscard]] std::optional<StatedRanks> stated_ranks(std::string_view text);

/// All of them, as far as they follow: those left out are known where the others are equally far apart and as many as
/// `size` says lead to the last. Nothing: they are not known.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> all_ranks(const StatedRanks& stated, std::uint32_t size);

}  // namespace moeline
