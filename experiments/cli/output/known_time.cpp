#include "experiments/cli/output/known_time.hpp"

#include <fmt/format.h>

namespace moeline {

Fields<KnownTime> known_fields() {
  constexpr std::array kMeaning = {"of the kernels' time alone, that of curves which were not measured where they lie",
                                   "of it: outside of what was measured of their family",
                                   "of it: by measurements of another machine",
                                   "families that nobody measured, by the peaks of the machine"};
  static_assert(kMeaning.size() == std::size(kKnownShares));
  Fields<KnownTime> fields;
  for (std::size_t i = 0; i < kMeaning.size(); ++i) {
    fields.add(kKnownShares[i].name, kMeaning[i], [=](auto& time) { return time.share(i); },
               {.decimals = 5, .most = 1});
  }
  return fields;
}

void add_known_shares(Json& json, const KnownTime& time) { known_fields().write(json, time); }

std::string known_line(const std::string& whose, const KnownTime& time) {
  std::string text = "of " + whose + " time alone:";
  for (std::size_t i = 0; i < time.us.size(); ++i) {
    text += fmt::format("{} {:.1f} % {}", i == 0 ? "" : ",", 100 * time.share(i), kKnownShares[i].words);
  }
  return text;
}

}  // namespace moeline
