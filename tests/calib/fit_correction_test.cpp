// Corrections from rows: smooth residuals are found and pay on slices that were not seen, noise is not.
#include "calib/fit/fit_correction.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>

TEST_SUITE("calib/fit_correction") {

using namespace moeline;

namespace {

constexpr double kCurveUs = 10;
const Grid kGrid = {{Dimension::m, 7}, {Dimension::n, 5}, {Dimension::k, 5}};

// Rows of many shapes that take `gain` times what their curve says, the same of all; a slice is an n and a k.
template <class Gain>
std::vector<FormRow> rows_of(const Gain& gain) {
  std::vector<FormRow> rows;
  for (double m = 1; m <= 4096; m *= 2) {
    for (double n = 128; n <= 65536; n *= 2) {
      for (double k = 128; k <= 65536; k *= 2) {
        FormRow row;
        row.measured_us = kCurveUs * gain(m, n, k);
        row.dimensions = {{Dimension::m, m}, {Dimension::n, n}, {Dimension::k, k}, {Dimension::sms, 148}};
        row.slice = fmt::format("{} {}", n, k);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

// A fit to all of them.
RowFit whole(const std::vector<FormRow>& rows) {
  RowFit fit{{}, {}, std::vector<double>(rows.size(), kCurveUs)};
  for (std::size_t i = 0; i < rows.size(); ++i) fit.seen.push_back(i);
  return fit;
}

// Of a curve that is the same whatever it sees.
std::vector<RowFit> fits_of(const std::vector<FormRow>& rows) {
  constexpr std::size_t kParts = 7;  // no n and no k is in one part alone
  std::map<std::string, std::size_t> slices;
  for (const FormRow& row : rows) slices.try_emplace(row.slice, slices.size());
  std::vector<RowFit> fits(kParts);
  for (std::size_t part = 0; part < kParts; ++part) {
    fits[part].us.assign(rows.size(), kCurveUs);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool is_seen = slices.at(rows[i].slice) % kParts != part;
      (is_seen ? fits[part].seen : fits[part].left_out).push_back(i);
    }
  }
  return fits;
}

double smooth(double m, double n, double k) {
  return 1 + 0.2 * std::sin(std::log(m) / 2) + 0.1 * std::cos(std::log(n * k) / 5);
}

double noise(double m, double n, double k) {
  auto state = static_cast<std::uint64_t>(m * 1e12 + n * 1e6 + k);
  for (int i = 0; i < 3; ++i) state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return 0.85 + 0.3 * static_cast<double>(state >> 33U) / static_cast<double>(1ULL << 31U);
}

}  // namespace

TEST_CASE("smooth residuals are found, and met on slices that the correction has not seen") {
  const std::vector<FormRow> rows = rows_of(smooth);
  const std::vector<RowFit> fits = fits_of(rows);
  CHECK(choose_grid({kGrid}, rows, fits).grid == kGrid);
  const ErrorSummary alone = summary_of(errors_of(rows, predict_left_out({}, rows, fits)));
  const ErrorSummary with = summary_of(errors_of(rows, predict_left_out(kGrid, rows, fits)));
  CHECK(alone.median_abs > 0.08);
  CHECK(with.median_abs < 0.02);
  CHECK(with.p95_abs < 0.06);
}

TEST_CASE("noise has no correction") {
  const std::vector<FormRow> rows = rows_of(noise);
  CHECK(choose_grid({kGrid}, rows, fits_of(rows)).grid.empty());
}

TEST_CASE("without slices that were left out nothing tells whether a correction pays") {
  CHECK(choose_grid({kGrid}, rows_of(smooth), {}).grid.empty());
  CHECK(predict_left_out(kGrid, rows_of(smooth), {}).empty());
}

TEST_CASE("of two grids the one that is nearer to unseen slices is taken") {
  const std::vector<FormRow> rows = rows_of([](double m, double, double) { return 1 + 0.3 * std::sin(std::log(m)); });
  const Grid by_n = {{Dimension::n, 5}}, by_m = {{Dimension::m, 13}};
  CHECK(choose_grid({by_n, by_m}, rows, fits_of(rows)).grid == by_m);
  CHECK(choose_grid({by_m, by_n}, rows, fits_of(rows)).grid == by_m);
}

TEST_CASE("a correction spans what was measured, in the dimensions that vary") {
  std::vector<FormRow> rows = rows_of(smooth);
  for (FormRow& row : rows) row.dimensions[Dimension::k] = 128;
  const Correction c =
      fit_correction({{Dimension::m, 4}, {Dimension::k, 4}, {Dimension::window, 3}}, rows, whole(rows));
  REQUIRE(c.axes.size() == 1);
  CHECK(c.axes[0].dimension == Dimension::m);
  CHECK(c.axes[0].knots == std::vector<double>{1, 16, 256, 4096});
  CHECK(c.gains.size() == 4);
  const Correction few = fit_correction({{Dimension::m, 20}}, rows, whole(rows));
  CHECK(few.axes[0].knots.size() == 13);  // as many as were measured
}

TEST_CASE("where there are no rows a gain is between its neighbours' and 1") {
  std::vector<FormRow> rows = rows_of([](double, double, double) { return 1.3; });
  std::erase_if(rows, [](const FormRow& row) {
    return row.dimensions.at(Dimension::n) > 4096 && row.dimensions.at(Dimension::k) > 4096;
  });
  const Correction c = fit_correction(kGrid, rows, whole(rows));
  CHECK(c.gains.front() == doctest::Approx(1.3).epsilon(0.01));
  CHECK(c.gains.back() < 1.3);
  CHECK(c.gains.back() > 1);
}

TEST_CASE("rows that a hiccup made pull a gain by little, and none goes to absurd lengths") {
  std::vector<FormRow> rows = rows_of([](double, double, double) { return 1.1; });
  for (std::size_t i = 0; i < rows.size(); i += 20) rows[i].measured_us *= 10;
  for (const double gain : fit_correction(kGrid, rows, whole(rows)).gains) {
    CHECK(gain == doctest::Approx(1.1).epsilon(0.1));
  }
  const std::vector<FormRow> far = rows_of([](double m, double, double) { return m < 64 ? 0.01 : 100.0; });
  for (const double gain : fit_correction(kGrid, far, whole(far)).gains) {
    CHECK(gain >= 0.5);
    CHECK(gain <= 2);
  }
}

}  // TEST_SUITE("calib/fit_correction")
