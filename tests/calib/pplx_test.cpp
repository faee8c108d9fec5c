// The constants of Perplexity's all-to-all: fitted to some rows of its table, scored on the others.
#include "curves/pplx.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "base/csv.hpp"
#include "curves/topology.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/profile.hpp"
#include "tests/support/least_squares.hpp"

TEST_SUITE("calib/pplx") {

using namespace moeline;

namespace {

struct Row {
  Operator op;
  MachineFacts machine;
  double measured_us;
  std::string use;
};

std::vector<Row> read_rows() {
  const CsvTable table(std::string(MOELINE_SOURCE_DIR) + "/calib/data/pplx/transfers.csv");
  std::vector<Row> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto text = [&](const char* column) { return table.text(i, column); };
    const MachineFacts facts = load_profile("h200", {"nic=" + text("network")}).facts;
    const RequestedOp asked =
        parse_op(fmt::format("{}:mode=pplx,ep={},tokens={}", text("op"), text("ep"), text("tokens")), facts);
    rows.push_back({asked.kernels.front(), facts, table.positive(i, "us"), text("use")});
  }
  return rows;
}

const std::vector<Row>& all_rows() {
  static const std::vector<Row> kRows = read_rows();
  return kRows;
}

double squared_errors(const PplxConstants& constants, const std::string& use, int& count) {
  double sum = 0;
  for (const Row& row : all_rows()) {
    if (row.use != use) continue;
    ++count;
    sum += std::pow(std::log(pplx_us(row.op, row.machine, constants) / row.measured_us), 2);
  }
  return sum;
}

double squared_errors(const PplxConstants& constants) {
  int count = 0;
  return squared_errors(constants, "fitted", count);
}

}  // namespace

TEST_CASE("no constant moved by a hundredth comes closer to the rows that it was fitted to") {
  testing::check_least<PplxConstants>(
      [](const PplxConstants& constants) { return squared_errors(constants); },
      {&PplxConstants::node_dispatch_us, &PplxConstants::node_combine_us, &PplxConstants::dispatch_us,
       &PplxConstants::combine_us, &PplxConstants::efa_dispatch_us, &PplxConstants::efa_combine_us,
       &PplxConstants::nvlink_dispatch_share, &PplxConstants::nvlink_combine_share, &PplxConstants::infiniband_share,
       &PplxConstants::efa_share});
}

TEST_CASE("rows that nothing was fitted to come out within 7 % in the root mean square, and all within 15 %") {
  int count = 0;
  const double sum = squared_errors({}, "scored", count);
  REQUIRE(count >= 12);
  CHECK(std::sqrt(sum / count) < 0.07);
  for (const Row& row : all_rows()) {
    if (row.use != "scored") continue;
    CAPTURE(row.measured_us);
    CHECK(std::abs(pplx_us(row.op, row.machine) / row.measured_us - 1) < 0.15);
  }
}

}  // TEST_SUITE("calib/pplx")
