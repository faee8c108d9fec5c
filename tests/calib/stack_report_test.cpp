// What is said of a stack's kernel set: its errors, the rows that are missed, where nothing or too little was measured.
#include "calib/fit/stack_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/file.hpp"
#include "hardware/profile.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/variable.hpp"

TEST_SUITE("calib/stack_report") {

using namespace moeline;
using namespace moeline::testing;

namespace {

FormRow row_of(double bytes, double measured_us) {
  FormRow row;
  row.measured_us = measured_us;
  row.dimensions = {{Dimension::bytes, bytes}, {Dimension::ranks, 8}};
  row.where = fmt::format("row of {}", bytes);
  return row;
}

// Sizes that double but for one step of eight; the smallest are predicted 30 % too short, the rest 1 % too long.
StackFamily family(const std::string& name, bool held_out = true) {
  StackFamily made;
  made.name = name;
  made.form = form_named("rows");
  for (const double bytes : {1024.0, 2048.0, 16384.0, 32768.0}) {
    for (int i = 0; i < 5; ++i) {
      made.rows.push_back(row_of(bytes, 10 + i));
      const double error = bytes == 1024 ? 0.7 : 1.01;
      made.fitted.push_back((10 + i) * error);
      if (held_out) made.left_out.push_back(made.fitted.back());
    }
  }
  return made;
}

}  // namespace

TEST_CASE("a family's report has its errors, its worst rows, its widest gap and where it is worst") {
  StackCalibration calibration;
  calibration.families = {family("rowwise")};
  const FamilyReport report = report_of(calibration, 3).front();
  CHECK(report.rows == 20);
  CHECK(report.held_out.median == doctest::Approx(0.01));
  CHECK(report.held_out.p95_abs == doctest::Approx(0.3));
  CHECK(report.in_sample.median_abs == doctest::Approx(0.01));
  REQUIRE(report.worst.size() == 3);
  CHECK(report.worst[0].error == doctest::Approx(-0.3));
  CHECK(report.worst[0].predicted_us == doctest::Approx(0.7 * report.worst[0].row->measured_us));
  REQUIRE(report.gap);
  CHECK(report.gap->dimension == Dimension::bytes);
  CHECK(report.gap->low == 2048);
  CHECK(report.gap->high == 16384);
  REQUIRE(report.weakest);
  CHECK(report.weakest->value == 1024);
  CHECK(report.weakest->rows == 5);
  CHECK(report.weakest->median_abs == doctest::Approx(0.3));
}

TEST_CASE("the family with the largest error at the 95th percentile comes first, one slice by its fit") {
  StackCalibration calibration;
  calibration.families = {family("a"), family("b", false)};
  for (double& us : calibration.families[1].fitted) us *= 2;
  const std::vector<FamilyReport> reports = report_of(calibration, 1);
  CHECK(reports[0].family == "b");
  CHECK(std::isnan(reports[0].held_out.p95_abs));
  CHECK(reports[0].worst.front().error == doctest::Approx(1.02));
}

TEST_CASE("grids that double have no gap, and even errors no weakest value") {
  StackCalibration calibration;
  StackFamily even = family("even");
  std::erase_if(even.rows, [](const FormRow& row) { return row.dimensions.at(Dimension::bytes) > 2048; });
  even.fitted.assign(even.rows.size(), 0);
  for (std::size_t i = 0; i < even.rows.size(); ++i) even.fitted[i] = 1.05 * even.rows[i].measured_us;
  even.left_out = even.fitted;
  calibration.families = {even};
  const FamilyReport report = report_of(calibration, 1).front();
  CHECK_FALSE(report.gap);
  CHECK_FALSE(report.weakest);
}

namespace {

const std::string kMapping =
    "schema: 1\nrows:\n  casts: {file: casts, form: rows, op: memory, keys: {kind: =rowwise, bytes: bytes}, "
    "time: latency us, slice: [bytes]}\n";

struct Call {
  TemporaryFolder folder;
  std::string table;
  Arguments arguments;

  Call() {
    std::string text = "bytes,latency\n";
    for (int bytes = 1 << 20; bytes <= 1 << 27; bytes *= 2) text += fmt::format("{},{}\n", bytes, 3 + bytes / 1e6);
    table = folder.write("casts.csv", text);
    arguments = {"calibrate",  table,     "--tables",  folder.write("mapping.yaml", kMapping),
                 "--hardware", "b200",    "--kernels", "stack-1.0",
                 "--date",     "2026-08", "-o",        folder / "out.yaml"};
  }
  [[nodiscard]] Arguments with(const Arguments& more) const {
    Arguments all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

}  // namespace

TEST_CASE("--report prints what is missed and what to measure next, --html writes it as one page") {
  const Call call;
  const Outcome plain = run_moeline(call.arguments);
  CAPTURE(plain.err);
  REQUIRE(plain.exit_code == 0);
  CHECK(plain.out.find("held-out: median e") != std::string::npos);
  CHECK(plain.out.find("What to measure next") == std::string::npos);
  const std::string page = call.folder / "page.html";
  const Variable set("MOELINE_ECHARTS", call.folder.write("echarts.js", "/* draws */"));
  const Outcome report = run_moeline(call.with({"--report", "--html", page, "--force"}));
  CAPTURE(report.err);
  REQUIRE(report.exit_code == 0);
  CHECK(report.out.starts_with(plain.out));
  CHECK(report.out.find("What to measure next") != std::string::npos);
  CHECK(report.out.find("casts:2 memory:kind=rowwise,bytes=1048576") != std::string::npos);
  const std::string html = read_text(page);
  CHECK(html.find("Kernel set stack-1.0 of b200") != std::string::npos);
  CHECK(html.find("casts:2 memory:kind=rowwise,bytes=1048576") != std::string::npos);
  CHECK(html.find("src=\"http") == std::string::npos);
}

TEST_CASE("options that do not apply to a serving stack's tables are refused by name, nothing is written") {
  const Call call;
  const std::vector<Arguments> foreign = {{"--layers", "0"},  {"--without", "copy"}, {"--given", "gemm_fp8"},
                                          {"--by-name-only"}, {"--cross-validate"},  {"--model", "deepseek-v3"}};
  for (const Arguments& option : foreign) {
    check_wrong_usage(call.with(option), option[0] + " does not apply to a serving stack's tables");
    CHECK_FALSE(std::filesystem::exists(call.folder / "out.yaml"));
  }
  const std::string other = call.folder.write("other.csv", "ep,mode\n1,2\n");
  for (const Arguments& option : {Arguments{"--date", "2026-08"}, {"--html", call.folder / "page.html"}}) {
    Arguments arguments = {"calibrate", other, "-o", call.folder / "out.yaml"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    check_wrong_usage(arguments, option[0] + " is for a serving stack's tables");
  }
}

TEST_CASE("the report on measured tables names the noise between two versions" * doctest::skip(kSanitized)) {
  const std::filesystem::path folder = data_folder() / "aic/h100_sxm";
  const std::filesystem::path table = folder / "gemm_sglang.csv.gz",
                              other = folder / "gemm_fp8_block_sglang_0.5.10.csv.gz";
  if (!present(table)) return;
  const TemporaryFolder out;
  const Outcome report = run_moeline({"calibrate", table.string(), other.string(), "--hardware", "h100", "--kernels",
                                      "sglang-0.5.14", "--date", "2026-08", "--report", "-o", out / "out.yaml"});
  CAPTURE(report.err);
  REQUIRE(report.exit_code == 0);
  CHECK(report.out.find("gemm_fp8_block_sglang_0.5.10") != std::string::npos);
  CHECK(report.out.find("The rows that are missed most") != std::string::npos);
}

}  // TEST_SUITE("calib/stack_report")
