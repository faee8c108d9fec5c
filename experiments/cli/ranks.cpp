#include "experiments/cli/ranks.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {

std::set<std::uint32_t> parse_ranks(const std::string& option, const std::vector<std::string>& texts,
                                    const std::set<std::uint32_t>& simulated) {
  if (texts == std::vector<std::string>{"all"}) return simulated;
  std::set<std::uint32_t> ranks;
  for (const std::string& text : texts) {
    const auto rank = as_number<std::uint32_t>(text);
    if (!rank || !simulated.contains(*rank)) {
      throw SpecError(
          fmt::format("{}: '{}' is not among the simulated ranks, 0 to {}", option, text, simulated.size() - 1));
    }
    ranks.insert(*rank);
  }
  return ranks;
}

}  // namespace moeline
