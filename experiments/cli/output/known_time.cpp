#include "experiments/cli/output/known_time.hpp"

#include <fmt/format.h>

namespace moeline {

void add_known_shares(Json& json, const KnownTime& time) {
  for (std::size_t i = 0; i < time.us.size(); ++i) json.add(kKnownShares[i].name, time.share(i), 5);
}

std::string known_line(const std::string& whose, const KnownTime& time) {
  std::string text = "of " + whose + " time alone:";
  for (std::size_t i = 0; i < time.us.size(); ++i) {
    text += fmt::format("{} {:.1f} % {}", i == 0 ? "" : ",", 100 * time.share(i), kKnownShares[i].words);
  }
  return text;
}

}  // namespace moeline
