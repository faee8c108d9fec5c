#include "hardware/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace moeline {

const char* name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::measured:
      return "measured";
    case Provenance::interpolated:
      return "interpolated";
    case Provenance::learnt:
      return "learnt";
    case Provenance::extrapolated:
      return "extrapolated";
    case Provenance::roofline:
      return "roofline";
    case Provenance::datasheet:
      return "datasheet";
  }
  return "";
}

void ProvenanceNote::add(const Outside& more) {
  const auto same_side = [&](const Outside& o) { return o.dimension == more.dimension && o.below() == more.below(); };
  const auto known = std::find_if(outside.begin(), outside.end(), same_side);
  if (known == outside.end()) {
    const auto before = [](const Outside& a, const Outside& b) { return a.dimension < b.dimension; };
    outside.insert(std::upper_bound(outside.begin(), outside.end(), more, before), more);
  } else if (more.below() ? more.value < known->value : more.value > known->value) {
    *known = more;
  }
}

void ProvenanceNote::add(const ProvenanceNote& more) {
  reasons.insert(more.reasons.begin(), more.reasons.end());
  for (const Outside& each : more.outside) add(each);
}

std::string ProvenanceNote::text() const {
  std::vector<std::string> parts(reasons.begin(), reasons.end());
  for (const Outside& each : outside) parts.push_back(to_text(each));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace moeline
