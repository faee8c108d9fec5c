// Where a family was measured, and what lies outside.
#include "hardware/measured_range.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "hardware/price.hpp"
#include "hardware/provenance.hpp"
#include "moe/kernels.hpp"
#include "tests/support/capture.hpp"

TEST_SUITE("hardware/measured_range") {

using namespace moeline;

namespace {

// As text, "" where nothing lies outside.
std::string note(const MeasuredRange& range, const Dimensions& dimensions) {
  ProvenanceNote note;
  for (const Outside& each : outside(range, dimensions)) note.add(each);
  return note.text();
}

}  // namespace

TEST_CASE("sizes within 1 % of what was measured are inside, numbers of SMs and ranks are not") {
  const MeasuredRange range = {{Dimension::m, {64, 4096}}, {Dimension::sms, {112, 132}}};
  CHECK(note(range, {{Dimension::m, 64}, {Dimension::sms, 112}}).empty());
  CHECK(note(range, {{Dimension::m, 63.4}, {Dimension::sms, 132}}).empty());
  CHECK(note(range, {{Dimension::m, 4136}, {Dimension::sms, 120}}).empty());
  CHECK(note(range, {{Dimension::m, 63}, {Dimension::sms, 112}}) == "m 63 < 64");
  CHECK(note(range, {{Dimension::m, 4138}, {Dimension::sms, 111}}) == "m 4138 > 4096, sms 111 < 112");
  CHECK(note({{Dimension::ranks, {64, 64}}}, {{Dimension::ranks, 65}}) == "ranks 65 > 64");
}

TEST_CASE("a dimension that a range does not know lies outside") {
  CHECK(note({{Dimension::m, {64, 4096}}}, {{Dimension::m, 64}, {Dimension::groups, 4}}) == "groups not measured");
  CHECK(note({}, {{Dimension::bytes, 1e6}}) == "bytes not measured");
}

TEST_CASE("a range is a point where its ends are one value, to the noise of measurement") {
  CHECK(is_point({{Dimension::items, {28702, 28822}}, {Dimension::ranks, {64, 64}}}));
  CHECK_FALSE(is_point({{Dimension::items, {28702, 29002}}}));
  CHECK_FALSE(is_point({{Dimension::ranks, {128, 129}}}));
  CHECK_FALSE(is_point({}));
}

TEST_CASE("a range grows around what it is shown") {
  MeasuredRange range;
  for (const double m : {128.0, 64.0, 4096.0}) extend(range, {{Dimension::m, m}, {Dimension::k, 512}});
  CHECK(range.at(Dimension::m).low == 64);
  CHECK(range.at(Dimension::m).high == 4096);
  CHECK(range.at(Dimension::k).low == 512);
  CHECK(range.at(Dimension::k).high == 512);
}

TEST_CASE("of several kernels the note keeps the one that lies farthest outside, on each side") {
  const MeasuredRange range = {{Dimension::m, {64, 4096}}};
  ProvenanceNote note;
  for (const double m : {16.0, 8.0, 32.0, 8192.0, 5000.0}) {
    for (const Outside& each : outside(range, {{Dimension::m, m}})) note.add(each);
  }
  note.reasons.insert("other machine");
  CHECK(note.text() == "other machine, m 8 < 64, m 8192 > 4096");
}

TEST_CASE("the rows of a masked GEMM are those of each group, of a contiguous one those of all") {
  const auto rows = [](Family family) {
    return dimensions_of(kernels::gemm(family, "g", 4 * 256, 4096, 7168, 4), 132).at(Dimension::m);
  };
  CHECK(rows(Family::gemm_fp8_masked) == 256);
  CHECK(rows(Family::gemm_fp8_grouped) == 1024);
}

TEST_CASE("every fitted family's range has the dimensions that its prices are checked for") {
  for (const char* machine : {"h800", "h100"}) {
    for (const KernelSet& set : load_profile(machine).kernel_sets) {
      for (const auto& [name, fit] : set.fits) {
        const std::optional<Family> family = family_named(name);
        if (!family) continue;  // part of a transfer, or launches
        MOELINE_CAPTURE_BINDING(name);
        Operator op;
        op.family = *family;
        const Dimensions dimensions = dimensions_of(op, 132);
        CHECK(fit.range.size() == dimensions.size());
        for (const auto& [dimension, value] : dimensions) CHECK(fit.range.contains(dimension));
      }
    }
  }
}

TEST_CASE("what was measured at one place comes out of its constants again, on average over its rows") {
  int points = 0;
  for (const KernelSet& set : load_profile("h800").kernel_sets) {
    for (const auto& [name, fit] : set.fits) {
      if (!is_point(fit.range)) continue;
      MOELINE_CAPTURE_BINDING(name);
      CHECK(std::abs(fit.mean_error) < 0.001);
      ++points;
    }
  }
  CHECK(points == 9);  // the training trace's: attention, transfers beside compute, 12-bit saves, the router's scans
}

}  // TEST_SUITE("hardware/measured_range")
