// The constants of DeepEP's second version: fitted to some rows of its table, scored on the others.
#include "curves/deep_ep_v2.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/csv.hpp"
#include "curves/topology.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/profile.hpp"
#include "tests/support/least_squares.hpp"

TEST_SUITE("calib/deep_ep_v2") {

using namespace moeline;

namespace {

struct Row {
  Operator op;
  int sms;
  MachineFacts machine;
  double measured_us;
  bool fitted, epilogue;
};

std::vector<Row> read_rows() {
  const CsvTable table(std::string(MOELINE_SOURCE_DIR) + "/calib/data/deepep_v2/transfers.csv");
  std::vector<Row> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto text = [&](const char* column) { return table.text(i, column); };
    const MachineFacts facts = load_profile(text("machine"), {"nic=" + text("network")}).facts;
    const std::string sms = text("sms") == "0" ? "" : ",sms=" + text("sms");
    const RequestedOp asked = parse_op(
        fmt::format("{}:mode=deepep_v2,part={},layout={},ep={},tokens={},hidden={},top_k={},experts={},dtype={}{}",
                    text("op"), text("part"), text("layout"), text("ep"), text("tokens"), text("hidden"), text("top_k"),
                    text("experts"), text("dtype"), sms),
        facts);
    rows.push_back({asked.kernels.front(), asked.conditions.sms, facts, table.positive(i, "us"),
                    text("use") == "fitted", text("part") == "epilogue"});
  }
  return rows;
}

const std::vector<Row>& all_rows() {
  static const std::vector<Row> kRows = read_rows();
  return kRows;
}

double predicted_us(const Row& row, const DeepEpV2Constants& constants) {
  if (row.epilogue) return deep_ep_v2_epilogue_us(row.op, row.sms, row.machine, constants);
  return deep_ep_v2_times(row.op, row.sms, row.machine, constants).total() +
         farthest_latency_us(row.op.traffic.ranks, row.machine);
}

double squared_errors(const DeepEpV2Constants& constants) {
  double sum = 0;
  for (const Row& row : all_rows()) {
    if (row.fitted) sum += std::pow(std::log(predicted_us(row, constants) / row.measured_us), 2);
  }
  return sum;
}

}  // namespace

TEST_CASE("no constant moved by a hundredth comes closer to the rows that it was fitted to") {
  testing::check_least<DeepEpV2Constants>(
      [](const DeepEpV2Constants& constants) { return squared_errors(constants); },
      {&DeepEpV2Constants::dispatch_start_us, &DeepEpV2Constants::combine_start_us,
       &DeepEpV2Constants::efa_dispatch_start_us, &DeepEpV2Constants::efa_combine_start_us,
       &DeepEpV2Constants::read_us_per_MB, &DeepEpV2Constants::sum_us_per_MB, &DeepEpV2Constants::write_us_per_MB,
       &DeepEpV2Constants::nvlink4_share, &DeepEpV2Constants::nvlink5_share, &DeepEpV2Constants::infiniband_share,
       &DeepEpV2Constants::efa_share, &DeepEpV2Constants::copy_start_us, &DeepEpV2Constants::reduce_start_us,
       &DeepEpV2Constants::copy_share, &DeepEpV2Constants::expand_share, &DeepEpV2Constants::reduce_share,
       &DeepEpV2Constants::token_us_per_MB});
}

TEST_CASE("of the rows that nothing was fitted to the median is within 6 %, and five of six within 16 %") {
  std::vector<double> errors;
  for (const Row& row : all_rows()) {
    if (!row.fitted) errors.push_back(std::abs(predicted_us(row, {}) / row.measured_us - 1));
  }
  REQUIRE(errors.size() > 40);
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] < 0.06);
  CHECK(errors[errors.size() * 5 / 6] < 0.16);
}

}  // TEST_SUITE("calib/deep_ep_v2")
