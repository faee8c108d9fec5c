#include "trace/stated_ranks.hpp"

#include <algorithm>

#include "trace/trace_records.hpp"

namespace moeline {
namespace {

bool are_different(std::vector<std::uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
}

std::string_view without_brackets(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return text;
}

// The next word, which it takes with the separators around it.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kSeparators = " ,;\t";
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kSeparators)));
  const std::string_view word = text.substr(0, text.find_first_of(kSeparators));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

std::optional<StatedRanks> stated_ranks(std::string_view text) {
  text = without_brackets(text);
  StatedRanks stated;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    if (word == "..." && !stated.abbreviated) {
      stated.abbreviated = true;
      continue;
    }
    const auto rank = whole_number<std::uint32_t>(word);
    if (!rank) return std::nullopt;
    stated.ranks.push_back(*rank);
  }
  if (stated.ranks.empty() || !are_different(stated.ranks)) return std::nullopt;
  return stated;
}

std::optional<std::vector<std::uint32_t>> all_ranks(const StatedRanks& stated, std::uint32_t size) {
  const std::vector<std::uint32_t>& known = stated.ranks;
  if (!stated.abbreviated) return known;
  constexpr std::uint32_t kMost = 1U << 20U;
  if (known.size() < 3 || known[1] <= known[0] || size < known.size() || size > kMost) return std::nullopt;
  const std::uint64_t step = known[1] - known[0];
  std::vector<std::uint32_t> all;
  for (std::uint64_t i = 0; i < size; ++i) all.push_back(static_cast<std::uint32_t>(known[0] + i * step));
  const bool begins_so = std::equal(known.begin(), std::prev(known.end()), all.begin());
  if (!begins_so || known[0] + (size - 1) * step != known.back()) return std::nullopt;
  return all;
}

}  // namespace moeline
