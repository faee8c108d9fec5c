#include "experiments/decide/why.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace moeline {
namespace {

// "31.2 us of GEMMs and 4.0 of small kernels"
std::string list_of_parts(const std::vector<PartDifference>& parts, double sign, double least_us) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> texts;
  for (const PartDifference& part : parts) {
    const double us = sign * part.us();
    if (us <= least_us || texts.size() == kMost) continue;
    texts.push_back(fmt::format("{:.{}f}{} of {}", us,
                                us < 10     ? 2
                                : us < 1000 ? 1
                                            : 0,
                                texts.empty() ? " us" : "", part.what));
  }
  if (texts.size() < 2) return texts.empty() ? "" : texts.front();
  const std::string last = texts.back();
  texts.pop_back();
  return fmt::format("{} and {}", fmt::join(texts, ", "), last);
}

}  // namespace

std::vector<PartDifference> differences(const std::vector<TimePart>& from, const std::vector<TimePart>& to) {
  std::map<std::string, PartDifference> by_name;
  for (const TimePart& part : from) by_name[part.what].from_us += part.us;
  for (const TimePart& part : to) by_name[part.what].to_us += part.us;
  std::vector<PartDifference> parts;
  for (auto& [what, part] : by_name) {
    part.what = what;
    parts.push_back(part);
  }
  std::stable_sort(parts.begin(), parts.end(), [](const PartDifference& a, const PartDifference& b) {
    return std::abs(a.us()) > std::abs(b.us());
  });
  return parts;
}

std::string saves_and_pays(const std::vector<PartDifference>& parts) {
  constexpr double kLittle = 0.05;
  double all = 0;
  for (const PartDifference& part : parts) all += std::abs(part.us());
  const std::string saved = list_of_parts(parts, -1, kLittle * all);
  const std::string paid = list_of_parts(parts, 1, kLittle * all);
  if (saved.empty() && paid.empty()) return "takes as long in every part";
  if (paid.empty()) return "saves " + saved;
  return saved.empty() ? "pays " + paid : fmt::format("saves {}, pays {}", saved, paid);
}

}  // namespace moeline
