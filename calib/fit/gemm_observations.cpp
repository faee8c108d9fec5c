#include "calib/fit/gemm_observations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "calib/fit/python_random.hpp"
#include "moe/kernels.hpp"
#include "routing/routing.hpp"

namespace moeline {
namespace {

constexpr int kFewestRows = 64;      // of a dense GEMM; below, the launch is most of it
constexpr double kMfuTflops = 1979;  // that the tables' mfu is of
constexpr int kMaskedDraws = 10;
constexpr int kMostDimension = 1 << 24;
constexpr int kMostGroups = 1 << 14;

struct Projection {
  std::string name;
  double n = 0, k = 0, us = 0, rows = 0;
};

bool is_masked(const CsvTable& table) { return table.has("batch_size_per_gpu"); }

int groups_of(const CsvTable& table, std::size_t row) {
  return table.integer(row, "num_local_experts", 1, kMostGroups);
}

// Rows that were really computed, from the rate.
double computed_rows(const CsvTable& table, std::size_t row, const Projection& p) {
  const double mfu = table.positive(row, p.name + "_mfu");
  const double rows = std::round(mfu * kMfuTflops * 1e6 * p.us / (2 * p.n * p.k));
  if (rows >= 1 && rows <= kMostDimension) return rows;
  throw SpecError(table.file(), table.line(row),
                  fmt::format("{0}_mfu: {1} in the {2} us of {0}_proj_us is a GEMM of {3} rows; expected 1 to {4}",
                              p.name, mfu, p.us, rows, kMostDimension));
}

std::array<Projection, 2> projections(const CsvTable& table, std::size_t row) {
  const double hidden = table.integer(row, "hidden_size", 1, kMostDimension);
  const double ffn = table.integer(row, "intermediate_size", 1, kMostDimension);
  std::array<Projection, 2> both = {{{"up", 2 * ffn, hidden}, {"down", hidden, ffn}}};
  for (Projection& p : both) {
    p.us = table.positive(row, p.name + "_proj_us");
    p.rows = computed_rows(table, row, p);
  }
  return both;
}

std::vector<int> draw(PythonRandom& random, int groups, int expected) {
  std::vector<int> rows;
  for (int group = 0; group < groups; ++group) rows.push_back(static_cast<int>(expected * random.uniform(0.7, 1.3)));
  return rows;
}

// On all SMs, which these persistent kernels hold.
Observation on_all_sms(const CsvTable& table, std::size_t row, const Operator& op, double us, Curve curve,
                       const MachineFacts& machine) {
  return timed(table, row, op, static_cast<int>(machine.sms), us, std::move(curve));
}

std::vector<int> even_rows(double rows, int groups) {
  return std::vector<int>(static_cast<std::size_t>(groups), static_cast<int>(std::ceil(rows / groups)));
}

Observation masked_observation(const CsvTable& table, std::size_t row, const Projection& p,
                               const std::vector<int>& rows, const MachineFacts& machine, TileSet tiles) {
  const auto used = static_cast<double>(std::count_if(rows.begin(), rows.end(), [](int r) { return r > 0; }));
  const double expected = table.integer(row, "tokens_per_expert", 1, kMostDimension);
  Operator op = kernels::gemm(Family::gemm_fp8_masked, p.name, p.rows, p.n, p.k, used);
  op.groups = groups_of(table, row);
  Curve curve = masked_gemm_curve(op, expected, rows, static_cast<int>(machine.sms), machine, tiles);
  return on_all_sms(table, row, op, p.us, std::move(curve), machine);
}

Observation contiguous_observation(const CsvTable& table, std::size_t row, const Projection& p,
                                   const std::vector<int>& rows, const MachineFacts& machine, TileSet tiles) {
  const auto padded = [](double sum, int r) { return sum + (r + kRowPadding - 1) / kRowPadding * kRowPadding; };
  const double m = std::accumulate(rows.begin(), rows.end(), 0.0, padded);
  const Operator op = kernels::gemm(Family::gemm_fp8_grouped, p.name, m, p.n, p.k, groups_of(table, row));
  Curve curve = gemm_curve(op, static_cast<int>(machine.sms), machine, tiles);
  return on_all_sms(table, row, op, p.us, std::move(curve), machine);
}

Family family_of(const CsvTable& table, std::size_t row) {
  const std::string& layout = table.text(row, "layout");
  if (layout == "dense") return Family::gemm_fp8;
  if (layout == "contiguous") return Family::gemm_fp8_grouped;
  if (layout == "masked") return Family::gemm_fp8_masked;
  throw SpecError(table.file(), table.line(row),
                  fmt::format("layout: '{}' is none of dense, contiguous, masked", layout));
}

}  // namespace

bool is_dense_gemm_table(const CsvTable& table) {
  return table.has("m") && table.has("n") && table.has("k") && table.has("latency_us");
}

bool is_grouped_gemm_table(const CsvTable& table) { return table.has("up_proj_us"); }

bool is_published_gemm_table(const CsvTable& table) { return table.has("layout") && table.has("tflops"); }

std::vector<Observation> dense_gemm_observations(const CsvTable& table, const MachineFacts& machine, TileSet tiles) {
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int m = table.integer(row, "m", 1, kMostDimension);
    const int n = table.integer(row, "n", 1, kMostDimension), k = table.integer(row, "k", 1, kMostDimension);
    if (m < kFewestRows) continue;
    const Operator op = kernels::gemm(Family::gemm_fp8, fmt::format("{}x{}x{}", m, n, k), m, n, k);
    Curve curve = gemm_curve(op, static_cast<int>(machine.sms), machine, tiles);
    Observation o = on_all_sms(table, row, op, table.positive(row, "latency_us"), std::move(curve), machine);
    o.fold = fmt::format("{}x{}", n, k);
    observations.push_back(std::move(o));
  }
  return observations;
}

std::vector<std::vector<int>> drawn_rows(const CsvTable& table) {
  PythonRandom random(0);
  std::vector<std::vector<int>> drawn;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int groups = groups_of(table, row);
    const int expected = table.integer(row, "tokens_per_expert", 1, kMostDimension);
    for (const Projection& p : projections(table, row)) {
      for (int skipped = 1; is_masked(table) && skipped < kMaskedDraws; ++skipped) draw(random, groups, expected);
      drawn.push_back(draw(random, groups, expected));
      if (std::accumulate(drawn.back().begin(), drawn.back().end(), 0.0) != p.rows) return {};
    }
  }
  return drawn;
}

std::vector<Observation> grouped_gemm_observations(const CsvTable& table, const MachineFacts& machine, TileSet tiles) {
  const std::vector<std::vector<int>> drawn = drawn_rows(table);
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const Projection& p : projections(table, row)) {
      const int groups = groups_of(table, row);
      const std::vector<int> rows = drawn.empty() ? even_rows(p.rows, groups) : drawn[observations.size()];
      observations.push_back(is_masked(table) ? masked_observation(table, row, p, rows, machine, tiles)
                                              : contiguous_observation(table, row, p, rows, machine, tiles));
      observations.back().fold = fmt::format("{}x{}", p.n, p.k);
    }
  }
  return observations;
}

Operator published_gemm(const CsvTable& table, std::size_t row) {
  const int groups = table.integer(row, "groups", 1, kMostGroups);
  const int m = table.integer(row, "m", 1, kMostDimension);
  const int n = table.integer(row, "n", 1, kMostDimension), k = table.integer(row, "k", 1, kMostDimension);
  const std::string name = fmt::format("{} x {}x{}x{}", groups, m, n, k);
  return kernels::gemm(family_of(table, row), name, static_cast<double>(m) * groups, n, k, groups);
}

std::vector<Observation> published_gemm_observations(const CsvTable& table, const MachineFacts& machine,
                                                     const std::string& kernel_set, TileSet tiles) {
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!is_for(kernel_set, table, row)) continue;
    const Operator op = published_gemm(table, row);
    Curve curve = gemm_curve(op, static_cast<int>(machine.sms), machine, tiles);
    const double us = flops_at_peak_us(op.flops, table.positive(row, "tflops"));
    Observation o = on_all_sms(table, row, op, us, std::move(curve), machine);
    o.noise = Noise::profiled;
    observations.push_back(std::move(o));
  }
  return observations;
}

}  // namespace moeline
