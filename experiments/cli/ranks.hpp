// Ranks on the command line.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace moeline {

/// "all", or numbers; none of them: empty. Throws SpecError for one that was not simulated.
[[nodiscard]] std::set<std::uint32_t> parse_ranks(const std::string& option, const std::vector<std::string>& texts,
                                                  const std::set<std::uint32_t>& simulated);

}  // namespace moeline
