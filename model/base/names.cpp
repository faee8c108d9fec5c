#include "base/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace moeline {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_letter(char a, char b) { return lower(a) == lower(b); }

// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substitute = diagonal + (same_letter(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_letter);
}

std::optional<std::string> known_name(std::string_view name, std::span<const std::string> candidates) {
  const auto as_written = std::find(candidates.begin(), candidates.end(), name);
  if (as_written != candidates.end()) return *as_written;
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const std::string& candidate) { return same_but_for_case(candidate, name); });
  return found == candidates.end() ? std::nullopt : std::optional(*found);
}

std::string spelt_as(std::string_view known, std::string_view name) {
  return std::string(same_but_for_case(known, name) ? known : name);
}

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  if (name.size() > 200) return "";
  const auto shared_beginning = [&](const std::string& candidate) {
    const auto end = std::mismatch(name.begin(), name.end(), candidate.begin(), candidate.end(), same_letter).first;
    return end - name.begin();
  };
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance > best_distance) continue;
    if (distance == best_distance && (best.empty() || shared_beginning(candidate) <= shared_beginning(best))) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string unknown_name(std::string_view kind, std::string_view name, std::span<const std::string> candidates,
                         std::string_view prefix) {
  const std::string_view shown = name.substr(0, 80);
  if (const std::string near = nearest(name, candidates); !near.empty()) {
    return fmt::format("unknown {} '{}{}'; did you mean '{}{}'?", kind, prefix, shown, prefix, near);
  }
  return fmt::format("unknown {} '{}{}'; there is: {}", kind, prefix, shown, fmt::join(candidates, ", "));
}

}  // namespace moeline
