#include "calib/bench/csv.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <sstream>
#include <stdexcept>

TEST_SUITE("calib/bench/csv") {

using namespace moeline::bench;

namespace {

Header an_h200() {
  return {"NVIDIA H200", 132,       "9.0",  "580.65.06",           "13.0", "13.0.2", 1980,
          3201,          "6a47841", "full", "2026-11-21T20:53:14Z"};
}

Case a_gemm() { return Case{}.with("m", 4096).with("n", 7168).with("k", 2048).with("scaling", "1x128"); }

}  // namespace

TEST_CASE("the table of calib/schema.md, byte for byte") {
  std::ostringstream out;
  TableWriter table(out, an_h200());
  table.row("gemm_fp8", a_gemm(), "time", "us", 0, 87.231);
  table.row("gemm_fp8", a_gemm(), "time", "us", 1, 187.10349);
  table.skipped("gemm_fp8_masked", Case{}.with("groups", 4).with("m", 256), "cuBLASLt has no algorithm");
  table.finish();
  CHECK(out.str() ==
        "# moeline calibration 1\n"
        "# device: NVIDIA H200\n"
        "# sms: 132\n"
        "# compute_capability: 9.0\n"
        "# driver: 580.65.06\n"
        "# toolkit: 13.0\n"
        "# cublas: 13.0.2\n"
        "# sm_clock_mhz: 1980\n"
        "# memory_clock_mhz: 3201\n"
        "# commit: 6a47841\n"
        "# preset: full\n"
        "# started: 2026-11-21T20:53:14Z\n"
        "key,parameters,metric,unit,sample,value\n"
        "gemm_fp8,m=4096;n=7168;k=2048;scaling=1x128,time,us,0,87.231000\n"
        "gemm_fp8,m=4096;n=7168;k=2048;scaling=1x128,time,us,1,187.103\n"
        "# skipped: gemm_fp8_masked groups=4;m=256: cuBLASLt has no algorithm\n"
        "# rows: 2\n");
}

TEST_CASE("a table without rows is whole") {
  std::ostringstream out;
  TableWriter(out, an_h200()).finish();
  CHECK(out.str().ends_with("sample,value\n# rows: 0\n"));
}

TEST_CASE("a reason of several lines stays on one") {
  std::ostringstream out;
  TableWriter table(out, an_h200());
  table.skipped("copy", Case{}.with("bytes", 8), "wrong result:\r\nerror 2");
  CHECK(out.str().ends_with("# skipped: copy bytes=8: wrong result:  error 2\n"));
}

TEST_CASE("what the format cannot hold is refused, and nothing of it is written") {
  std::ostringstream out;
  TableWriter table(out, an_h200());
  const std::string before = out.str();
  CHECK_THROWS_AS(table.row("a,b", a_gemm(), "time", "us", 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(table.row("copy", Case{}.with("bytes", "1;2"), "time", "us", 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(table.row("copy", Case{}.with("by=tes", 1), "time", "us", 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(table.row("copy", Case{}.with("bytes", "\"1\""), "time", "us", 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(table.row("copy", Case{}, "time", "us", 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(table.row("copy", a_gemm(), "time taken", "us", 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(table.skipped("copy", a_gemm(), ""), std::invalid_argument);
  CHECK(out.str() == before);
  auto header = an_h200();
  header.driver = "580\n# rows: 0";
  CHECK_THROWS_AS(TableWriter(out, header), std::invalid_argument);
  CHECK(out.str() == before);
}

TEST_CASE("a header that a reader would refuse is refused before anything is measured") {
  std::ostringstream out;
  auto header = an_h200();
  header.memory_clock_mhz = 0;
  CHECK_THROWS_WITH_AS(TableWriter(out, header), "memory_clock_mhz must be above 0, not 0", std::invalid_argument);
  header = an_h200();
  header.device = "a \"device\"";
  CHECK_THROWS_AS(TableWriter(out, header), std::invalid_argument);
  CHECK(out.str().empty());
}

TEST_CASE("the samples of a case stand metric by metric") {
  std::ostringstream out;
  TableWriter table(out, an_h200());
  table.measured("launch", Case{}.with("mode", "graph"), {{"time", "us", {1.5, 1.25}}, {"host", "us", {0.5}}});
  table.finish();
  CHECK(
      out.str().ends_with("sample,value\n"
                          "launch,mode=graph,time,us,0,1.500000\n"
                          "launch,mode=graph,time,us,1,1.250000\n"
                          "launch,mode=graph,host,us,0,0.500000\n"
                          "# rows: 3\n"));
}

TEST_CASE("a case is written whole, once, or not at all") {
  const Case copy = Case{}.with("bytes", 8);
  std::ostringstream out;
  TableWriter table(out, an_h200());
  const std::string before = out.str();
  CHECK_THROWS_AS(table.measured("copy", copy, {{"time", "us", {1, 2}}, {"time_alone", "us", {1, 0}}}),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(table.measured("copy", copy, {{"time", "us", {1, 2}}, {"time_alone", "us", {}}}),
                       "time_alone of copy bytes=8 has no samples", std::invalid_argument);
  CHECK(out.str() == before);
  table.measured("copy", copy, {{"time", "us", {1}}});
  CHECK_THROWS_WITH_AS(table.measured("copy", copy, {{"time", "us", {1}}}), "copy bytes=8 was measured before",
                       std::invalid_argument);
  table.finish();
  CHECK(out.str() == before + "copy,bytes=8,time,us,0,1.000000\n# rows: 1\n");
}

TEST_CASE("a value is finite, and one that a measurement can have") {
  std::ostringstream out;
  TableWriter table(out, an_h200());
  const std::string prefix = "copy," + to_string(a_gemm()) + ",time,us,0,";
  for (const double value : {0.0, -1.0, 1e-9, 0.9e-3, 1.1e9, 1e300, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS(table.row("copy", a_gemm(), "time", "us", 0, value), std::invalid_argument);
  for (const double value : {0.25, 1e-3, 1e9}) table.row("copy", a_gemm(), "time", "us", 0, value);
  CHECK(out.str().ends_with(",0.250000\n" + prefix + "0.001000\n" + prefix + "1000000000.000\n"));
}

TEST_CASE("a case names the parameter that it lacks") {
  CHECK(a_gemm().number("k") == 2048);
  CHECK(a_gemm().text("scaling") == "1x128");
  CHECK_FALSE(a_gemm().has("groups"));
  CHECK_THROWS_WITH_AS((void)a_gemm().number("groups"), "no parameter groups in m=4096;n=7168;k=2048;scaling=1x128",
                       std::out_of_range);
}

}  // TEST_SUITE("calib/bench/csv")
