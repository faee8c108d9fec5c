#include "experiments/cli/ranks.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/error.hpp"

namespace moeline {

std::set<std::uint32_t> parse_ranks(const std::string& option, const std::vector<std::string>& texts,
                                    const std::set<std::uint32_t>& simulated) {
  if (texts == std::vector<std::string>{"all"}) return simulated;
  std::set<std::uint32_t> ranks;
  for (const std::string& text : texts) {
    std::uint32_t rank = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (failed != std::errc{} || end != text.data() + text.size() || !simulated.contains(rank)) {
      throw SpecError(
          fmt::format("{}: '{}' is not among the simulated ranks, 0 to {}", option, text, simulated.size() - 1));
    }
    ranks.insert(rank);
  }
  return ranks;
}

}  // namespace moeline
