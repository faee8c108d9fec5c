// DeepEP's tables: what the fits make of them, held out where they can be.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "calib/fit/calibrate.hpp"
#include "calib/fit/deepep_observations.hpp"
#include "calib/fit/solve.hpp"
#include "hardware/price.hpp"
#include "moe/all_to_all.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("calib/deepep_tables") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const char* const kLate = "open-2025-late";
const char* const kFebruary = "deepseek-2025-02";

MachineFacts facts(double nvlink_GBps) {
  MachineFacts machine;
  machine.sms = 132;
  machine.fp8_tflops = 1979;
  machine.bf16_tflops = 989.5;
  machine.sm_clock_mhz = 1830;
  machine.hbm_GBps = 3350;
  machine.nvlink_GBps = nvlink_GBps;
  machine.nic_GBps = 50;
  machine.gpus_per_node = 8;
  machine.memory_gib = 80;
  machine.nic_latency_us = 3.7;
  return machine;
}

MachineFacts h800() { return facts(160); }
MachineFacts h100() { return facts(450); }

std::filesystem::path normal_table() { return data_folder() / "deepep/deepep_v1_h100_normal.csv"; }
std::filesystem::path low_latency_table() { return data_folder() / "deepep/deepep_v1_h100_low_latency.csv"; }
std::filesystem::path published_table() { return source("calib/data/deepep_published.csv"); }
std::filesystem::path hold_table() { return source("calib/data/low_latency_hold.csv"); }

bool measured() { return present(normal_table()) && present(low_latency_table()); }

KernelSet fitted(const MachineFacts& machine, const std::string& kernel_set, bool cross_validate) {
  std::vector<std::filesystem::path> files{normal_table(), low_latency_table(), hold_table()};
  if (machine.nvlink_GBps == h800().nvlink_GBps) files.push_back(published_table());
  CalibrationRequest request;
  request.kernels = kernel_set;
  request.cross_validate = cross_validate;
  return calibrate(files, request, load_architecture("deepseek-v3"), machine).kernels;
}

double mean_abs_error(const std::vector<Observation>& observations, const Constants& constants) {
  double sum = 0;
  for (const Observation& o : observations) sum += std::abs(evaluate(o, constants) / o.measured_us - 1);
  return sum / static_cast<double>(observations.size());
}

// Mean |error| of one kernel's rows, each predicted without its fold; of all rows with "".
double left_out_error(const std::vector<Observation>& observations, Cut cut, const std::string& kernel) {
  const Predictions predictions = predict_left_out(observations, cut);
  double sum = 0;
  int rows = 0;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Observation& o = observations[i];
    if (o.where.find("::" + kernel) == std::string::npos || std::isnan(predictions[i])) continue;
    sum += std::abs(error_of(predictions[i], o));
    ++rows;
  }
  REQUIRE(rows > 0);
  return sum / rows;
}

}  // namespace

TEST_CASE("H100, normal mode, in sample: EP16 and EP32 from 256 tokens on 4 to 24 SMs, EP8 on 20: 3 % on average") {
  if (!measured()) return;
  const std::vector<Observation> large =
      normal_observations(CsvTable(normal_table()), load_architecture("deepseek-v3"), h100());
  CHECK(large.size() == 250);  // all but the outlier's ten
  CHECK(mean_abs_error(large, fitted(h100(), kLate, false).constants) < 0.03);
}

TEST_CASE("H100, normal mode, each EP left out in turn, or each number of SMs: 6 % on average, from 256 tokens") {
  if (!measured()) return;
  const std::vector<Observation> large =
      normal_observations(CsvTable(normal_table()), load_architecture("deepseek-v3"), h100());
  for (const char* kernel : {"dispatch", "combine"}) {
    CHECK(left_out_error(large, &Observation::fold, kernel) < 0.06);
    CHECK(left_out_error(large, &Observation::fold_across, kernel) < 0.06);
  }
}

TEST_CASE("H100, normal mode, fewer tokens than were fitted: within 12 % on average from 1 to 160") {
  if (!measured()) return;
  const std::vector<Observation> few = normal_observations(CsvTable(normal_table()), load_architecture("deepseek-v3"),
                                                           h100(), {.from = 1, .below = 256});
  CHECK(few.size() == 325);
  CHECK(mean_abs_error(few, fitted(h100(), kLate, false).constants) < 0.12);
}

TEST_CASE(
    "H100, low latency, each EP left out in turn, or each number of tokens: 5 % on average, from 1 token to 2048") {
  if (!measured()) return;
  const std::vector<Observation> table = low_latency_observations(
      CsvTable(low_latency_table()), load_architecture("deepseek-v3"), h100(), library_of(kLate));
  CHECK(table.size() == 86);
  for (const Cut cut : {&Observation::fold, &Observation::fold_across}) {
    for (const char* kernel : {"dispatch", "combine"}) CHECK(left_out_error(table, cut, kernel) < 0.055);
    CHECK(left_out_error(table, cut, "") < 0.05);
  }
}

TEST_CASE("one node is left out by tokens: no other row tells NVLink") {
  if (!measured()) return;
  const Architecture model = load_architecture("deepseek-v3");
  const std::vector<Observation> table =
      low_latency_observations(CsvTable(low_latency_table()), model, h100(), library_of(kLate));
  for (const Observation& o : table) {
    const bool one_node = o.dimensions.at(Dimension::ranks) == 8;
    CHECK((o.fold.find("tokens") != std::string::npos) == one_node);
  }
}

TEST_CASE(
    "H800, published low-latency table: 6 % on average once the rates of its links are fitted, start-ups of H100") {
  if (!measured()) return;
  const Architecture model = load_architecture("deepseek-v3");
  const Constants constants = fitted(h800(), kLate, false).constants;
  std::vector<Observation> low_latency;
  for (const Observation& o : published_observations(CsvTable(published_table()), model, h800(), kLate)) {
    if (o.family == "low_latency") low_latency.push_back(o);
  }
  CHECK(low_latency.size() == 8);
  CHECK(mean_abs_error(low_latency, constants) < 0.06);
}

TEST_CASE("H800, published tables, both library generations, in sample: normal mode within 6 % in every row") {
  if (!measured()) return;
  for (const char* kernels : {kFebruary, kLate}) {
    const FamilyFit fit = fitted(h800(), kernels, false).fits.at("all_to_all_alone");
    CHECK(fit.kernels == 8);
    CHECK(std::abs(fit.worst_error) < 0.06);
  }
}

TEST_CASE("February's normal kernels send the own node's tokens over the NIC, which then is as fast as later") {
  if (!measured()) return;
  const KernelSet with = fitted(h800(), kFebruary, false);
  CHECK(with[Constant::normal_own_node] == with[Constant::normal_nic]);
  CHECK(fitted(h800(), kLate, false)[Constant::normal_own_node] == 0);
  CHECK(with[Constant::normal_nic] ==
        doctest::Approx(fitted(h800(), kLate, false)[Constant::normal_nic]).epsilon(0.04));  // the NIC is the same
}

TEST_CASE("H800, February, low latency: EP128 predicted from the other EPs within 6 %") {
  if (!measured()) return;
  const Architecture model = load_architecture("deepseek-v3");
  std::vector<Observation> kept =
      low_latency_observations(CsvTable(low_latency_table()), model, h800(), library_of(kFebruary));
  std::vector<Observation> held_out;
  for (const Observation& o : published_observations(CsvTable(published_table()), model, h800(), kFebruary)) {
    if (o.family == "low_latency") (o.dimensions.at(Dimension::ranks) == 128 ? held_out : kept).push_back(o);
  }
  REQUIRE(held_out.size() == 2);
  const Constants constants = solve(kept);
  for (const Observation& o : held_out) {
    CHECK(evaluate(o, constants) == doctest::Approx(o.measured_us).epsilon(0.06));
  }
}

TEST_CASE("low-latency kernels hold SMs for the 30 and 39 us at EP72 that were fitted, an even split on both sides") {
  if (!measured()) return;
  const KernelSet set = fitted(h100(), kLate, false);
  const AllToAllWork work{7168, 8, 128, 288, 72, 8, {}};
  const auto us = [&](const Operator& op) { return price(op, {.sms = 132}, h100(), set).solo_us; };
  CHECK(us(low_latency_dispatch(work, Stage::issue)) == doctest::Approx(15).epsilon(0.01));
  CHECK(us(low_latency_combine(work, Stage::receive)) == doctest::Approx(19.5).epsilon(0.01));
}

TEST_CASE("DeepEP's second version: four figures give the NIC's rate and the SMs' copies, the rest is given") {
  const HardwareProfile profile = load_profile("h100");
  CalibrationRequest request{.kernels = "deepep_v2-2026-04", .given = {"all_to_all_hop", "all_to_all_nvlink"}};
  request.lender = profile.kernels("open-2025-late").constants;
  const auto calibrated = [&] {
    return calibrate({published_table()}, request, load_architecture("deepseek-v3"), profile.facts).kernels;
  };
  const KernelSet set = calibrated();
  CHECK(set.fits.at("all_to_all_alone").kernels == 4);
  CHECK(set.fits.at("sm_copies").kernels == 4);
  CHECK_FALSE(set.knows("all_to_all_hop"));  // given, not its own
  CHECK(set[Constant::normal_nic] == doctest::Approx(1.07).epsilon(0.01));
  CHECK(set[Constant::dispatch_copy] < 0.6 * profile.kernels("open-2025-late")[Constant::dispatch_copy]);
  request.given.clear();  // then the start-up must be fitted as well, and lies in every row
  CHECK(calibrated().knows("all_to_all_hop"));
}

TEST_CASE("a published table with an unknown op is refused with its line") {
  const auto file = std::filesystem::temp_directory_path() / "moeline_bad_deepep.csv";
  std::ofstream(file) << "mode,ep,tokens_per_rank,op,sms,latency_us,logical_bandwidth_GBps,kernels\n"
                         "normal,16,4096,scatter,24,,43,open-2025-late\n";
  CHECK_THROWS_WITH_AS((void)published_observations(CsvTable(file), load_architecture("deepseek-v3"), h800(), kLate),
                       doctest::Contains("neither dispatch nor combine"), SpecError);
  std::filesystem::remove(file);
}

TEST_CASE("a transfer's time or rate that is not above 0 is refused with file, line and column") {
  const auto file = std::filesystem::temp_directory_path() / "moeline_zero_deepep.csv";
  const Architecture model = load_architecture("deepseek-v3");
  const auto refused = [&](const std::string& text, const std::string& says, auto read) {
    std::ofstream(file) << text;
    CHECK_THROWS_WITH_AS((void)read(CsvTable(file)), (file.string() + says).c_str(), SpecError);
    std::filesystem::remove(file);
  };
  refused("ep,num_token,dispatch_sms,combine_sms,dispatch_transmit_us,combine_transmit_us\n16,4096,8,8,900,0\n",
          ":2: combine_transmit_us must be above 0, not 0",
          [&](const CsvTable& t) { return normal_observations(t, model, h800()); });
  refused("ep,num_token,dispatch_avg_t_us,combine_avg_t_us\n16,1,-5,30\n",
          ":2: dispatch_avg_t_us must be above 0, not -5",
          [&](const CsvTable& t) { return low_latency_observations(t, model, h800(), library_of(kLate)); });
  const std::string published = "mode,ep,tokens_per_rank,op,sms,latency_us,logical_bandwidth_GBps,kernels\n";
  const auto read_published = [&](const CsvTable& t) { return published_observations(t, model, h800(), kLate); };
  refused(published + "normal,16,4096,dispatch,24,,0,open-2025-late\n",
          ":2: logical_bandwidth_GBps must be above 0, not 0", read_published);
  refused(published + "low_latency,16,128,dispatch,,0,63,open-2025-late\n", ":2: latency_us must be above 0, not 0",
          read_published);
  refused("ep,tokens_per_rank,op,holds_sms_us\n72,128,dispatch,0\n", ":2: holds_sms_us must be above 0, not 0",
          [&](const CsvTable& t) { return hold_observations(t, model, h800()); });
}

}  // TEST_SUITE("calib/deepep_tables")
