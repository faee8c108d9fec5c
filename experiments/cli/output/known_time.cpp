#include "experiments/cli/output/known_time.hpp"

#include <fmt/format.h>

#include "experiments/cli/output/metrics_output.hpp"

namespace moeline {
namespace {

// "  outside what was measured, %": what tables call it, in a sentence.
std::string_view name_in_sentence(const Metric& share) {
  const std::string_view title = share.shown.title;
  const std::size_t begin = title.find_first_not_of(' ');
  return title.substr(begin, title.find(", %") - begin);
}

}  // namespace

Fields<KnownTime> known_fields() {
  Fields<KnownTime> fields;
  for (std::size_t i = 0; i < kKnownShares; ++i) {
    const Metric& share = known_shares()[i];
    fields.add(share.name, share.meaning, [=](auto& time) { return time.share(i); },
               {.decimals = share.decimals, .most = 1});
  }
  return fields;
}

void add_known_shares(Json& json, const KnownTime& time) { known_fields().write(json, time); }

std::string known_line(const std::string& whose, const KnownTime& time) {
  std::string text = "of " + whose + " time alone:";
  for (std::size_t i = 0; i < time.us.size(); ++i) {
    text += fmt::format("{} {:.1f} % {}", i == 0 ? "" : ",", 100 * time.share(i), name_in_sentence(known_shares()[i]));
  }
  return text;
}

}  // namespace moeline
