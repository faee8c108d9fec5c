// How prices are known: of one kernel, and of the kernels' time behind a result.
#pragma once

#include <string>

#include "experiments/report/fields.hpp"
#include "experiments/run/run_metrics.hpp"
#include "hardware/price.hpp"

namespace moeline {

/// What schemas say of a price's provenance.
inline constexpr const char* kHowKnown =
    "how its price is known: measured or interpolated, outside of measurements (extrapolated), or by the machine's "
    "peaks (roofline) or facts (datasheet) alone";
[[nodiscard]] Fields<Price> provenance_fields(bool with_correction);

/// What speaks against a price, and what its correction made of it.
[[nodiscard]] std::string note_of(const Price& price);

inline constexpr const char* kProvenanceHelp =
    R"(provenance, by where a kernel lies among the measurements of its family (`moeline list hardware NAME`):
  measured      they lie at one place, and it is there
  interpolated  inside of them in every dimension, within 1 %; corners of that box may be far from any measurement
  learnt        from a trace of such kernels (`moeline learn`), within twice and half its tokens and keys
  extrapolated  outside, or unlike them as the note says: m 16 < 64, other machine
  roofline      there are none: the least time that the machine's peaks allow
  datasheet     by a fact of the machine
Inside of the measurements a family's curve may have a correction, whose share the note says: corrected +2.1 %)";

// How the kernels' time behind a result is known.

[[nodiscard]] Fields<KnownTime> known_fields();
void add_known_shares(Json& json, const KnownTime& time);

/// One line, of `whose` kernels.
[[nodiscard]] std::string known_line(const std::string& whose, const KnownTime& time);

}  // namespace moeline
