#include "experiments/cli/output/known_time.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace moeline {

void add_known_shares(Json& json, const KnownTime& time) {
  for (std::size_t i = 0; i < time.us.size(); ++i) json.add(kKnownShares[i].name, time.share(i), 5);
}

std::string known_line(const std::string& whose, const KnownTime& time) {
  std::string text = "of " + whose + " time alone:";
  for (std::size_t i = 0; i < time.us.size(); ++i) {
    std::string title = kKnownShares[i].title;
    title.erase(0, title.find_first_not_of(' '));
    title.erase(title.find_first_of(",:"));
    text += fmt::format("{} {:.1f} % {}", i == 0 ? "" : ",", 100 * time.share(i), title);
  }
  return text;
}

}  // namespace moeline
