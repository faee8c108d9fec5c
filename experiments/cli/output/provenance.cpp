#include "experiments/cli/output/provenance.hpp"

#include <fmt/format.h>

namespace moeline {

Fields<Price> provenance_fields(bool with_correction) {
  Fields<Price> fields;
  fields.add("provenance",
             "how its price is known: measured or interpolated, outside of measurements (extrapolated), or by the "
             "machine's peaks (roofline) or facts (datasheet) alone",
             [](auto& p) { return name_of(p.provenance); }, {.words = words_to(Provenance::datasheet)});
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

}  // namespace moeline
