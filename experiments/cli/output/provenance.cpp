#include "experiments/cli/output/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/cli/output/left_out_output.hpp"
#include "experiments/cli/output/metrics_output.hpp"

namespace moeline {

Fields<Price> provenance_fields(bool with_correction) {
  Fields<Price> fields;
  fields.add("provenance", kHowKnown, [](auto& p) { return name_of(p.provenance); },
             {.words = words_to(Provenance::datasheet)});
  fields.add("provenance_note", "what speaks against the price",
             [](auto& p) { return only_if(!p.note.empty(), p.note.text()); });
  if (with_correction) {
    fields.add("correction", "factor of the curve", [](auto& p) { return only_if(p.gain != 1, p.gain); },
               {.decimals = 4});
  }
  fields.add("kernel_set", "whose constants", [](auto& p) { return if_any(p.kernel_set); });
  fields.add("bound_by", "what binds", [](auto& p) { return if_any(p.bound_by); });
  return fields;
}

std::string note_of(const Price& price) {
  if (price.gain == 1) return price.note.text();
  const std::string corrected = fmt::format("corrected {:+.1f} %", 100 * (price.gain - 1));
  return price.note.empty() ? corrected : price.note.text() + ", " + corrected;
}

namespace {

// "  outside what was measured, %", "roofline (not measured), %": what tables call it, in a sentence.
std::string_view name_in_sentence(const Metric& share) {
  const std::string_view title = share.shown.title;
  const std::size_t begin = title.find_first_not_of(' ');
  return title.substr(begin, std::min(title.find(", %"), title.find(" (")) - begin);
}

}  // namespace

Fields<KnownTime> known_fields() {
  Fields<KnownTime> fields;
  for (std::size_t i = 0; i < kKnownShares; ++i) {
    const Metric& share = known_shares()[i];
    fields.add(
        share.name, meaning_of(share), [=](auto& time) { return time.share(i); }, as_of(share));
  }
  return fields.object("carried_over", kCarriedOver, &KnownTime::carried, carried_over_fields());
}

void add_known_shares(Json& json, const KnownTime& time) { known_fields().write(json, time); }

std::string known_line(const std::string& whose, const KnownTime& time) {
  std::string text = "of " + whose + " time alone:";
  for (std::size_t i = 0; i < time.us.size(); ++i) {
    text += fmt::format("{} {:.1f} % {}", i == 0 ? "" : ",", 100 * time.share(i), name_in_sentence(known_shares()[i]));
  }
  if (time.carried && time.carried->error) text += "; " + short_band(*time.carried);
  return text;
}

}  // namespace moeline
