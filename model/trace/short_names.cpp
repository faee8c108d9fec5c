#include "trace/short_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "trace/kernel_class.hpp"

namespace moeline {

std::string short_kernel_name(std::string_view name) {
  constexpr std::size_t kMost = 60;
  return one_line(subject_of(name), kMost);
}

std::string short_phase_name(std::string_view name) {
  constexpr std::size_t kMost = 48;
  return name.empty() ? "(no name)" : one_line(name, kMost);
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) shown.push_back(short_phase_name(names[i]));
  if (names.size() > kShown) shown.push_back(fmt::format("and {} more", names.size() - kShown));
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace moeline
