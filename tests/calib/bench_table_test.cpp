// calib/bench's table: read whole, or refused with row and reason.
#include "calib/fit/bench_table.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "base/error.hpp"
#include "hardware/profile.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("calib/bench_table") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kHeader =
    "# moeline calibration 1\n# device: NVIDIA H200\n# sms: 132\n# compute_capability: 9.0\n# driver: 580.65.06\n"
    "# toolkit: 13.0\n# cublas: 13.0.2\n# sm_clock_mhz: 1830\n# memory_clock_mhz: 3201\n# commit: 6a47841\n"
    "# preset: full\n# started: 2026-11-21T20:53:14Z\nkey,parameters,metric,unit,sample,value\n";  // 13 lines
const std::string kGemm = "gemm_bf16,m=64;n=4096;k=7168,time,us,";
const std::string kSmall = "small,blocks=1,time,us,0,4\nsmall,blocks=16,time,us,0,4\n";
const std::string kSmallAndGap = kSmall +
                                 "launch,mode=stream,time,us,0,1.5\nlaunch,mode=stream,host,us,0,3\n"
                                 "launch,mode=graph,time,us,0,1\n";
const std::string kContention = "contention,kernel=gemm_bf16;m=64;n=4096;k=7168;beside=spin;sms=20;kernel_sms=112,";

struct File {
  TemporaryFolder folder;
  std::filesystem::path path;
  explicit File(const std::string& text) : path(folder.write("table.csv", text)) {}
};

BenchTable read(const std::string& text) { return read_bench_table(File(text).path); }

void refused(const std::string& text, int line, const std::string& why) {
  const File file(text);
  const std::string place = file.path.string() + ":" + std::to_string(line) + ": " + why;
  CHECK_THROWS_WITH_AS((void)read_bench_table(file.path), doctest::Contains(place.c_str()), SpecError);
}

// One row after the header.
void refused_row(const std::string& row, const std::string& why) { refused(kHeader + row + "\n# rows: 1\n", 14, why); }

}  // namespace

TEST_CASE("samples of one kernel are one measurement, and count by their median") {
  const BenchTable table =
      read(kHeader + kGemm + "0,20\n" + kGemm + "1,90\n" + kGemm + "2,22\n" + kContention + "time,us,0,30\n" +
           kContention + "time_alone,us,0,21\n" + "# skipped: gemm_fp8 m=64: no algorithm\n# rows: 5\n");
  REQUIRE(table.measurements.size() == 3);
  CHECK(table.measurements[0].median() == 22);
  CHECK(table.measurements[0].at("k") == 7168);
  CHECK(table.measurements[1].words.at("kernel") == "gemm_bf16");
  CHECK(table.measurements[1].at("kernel_sms") == 112);
  CHECK(table.header.at("device") == "NVIDIA H200");
  CHECK(table.skipped == std::vector<std::string>{"gemm_fp8 m=64: no algorithm"});
}

TEST_CASE("a table that was cut off is refused, wherever") {
  const std::string whole = kHeader + kGemm + "0,20\n" + kGemm + "1,21.5\n# rows: 2\n";
  CHECK(read(whole).measurements.size() == 1);
  for (std::size_t length = 1; length + 1 < whole.size(); ++length) {  // without its last line break it is still whole
    const File file(whole.substr(0, length));
    CAPTURE(length);
    CHECK_THROWS_AS((void)read_bench_table(file.path), SpecError);
  }
  refused(kHeader + kGemm + "0,20\n", 14, "the table was cut off: its last line must be '# rows: 1'");
}

TEST_CASE("rows that are missing or too many are noticed") {
  refused(kHeader + kGemm + "0,20\n# rows: 2\n", 15, "2 rows are counted, 1 are there");
  refused(kHeader + kGemm + "0,20\n" + kGemm + "2,20\n# rows: 2\n", 15, "sample 2 stands where 1 should");
  refused(kHeader + kGemm + "0,20\n# rows: 1\n" + kGemm + "1,20\n", 16, "nothing may follow the count of rows");
  refused(kHeader + kContention + "time,us,0,30\n# rows: 1\n", 14, "has a time, but no time_alone");
}

TEST_CASE("a row that is damaged is refused with its reason") {
  refused_row("gemm_bf16,m=64;n=4096;k=7168,time,us,0", "has 5 cells, its header 6");
  refused_row("gemm_bf17,m=64;n=4096;k=7168,time,us,0,20", "unknown key 'gemm_bf17'; did you mean 'gemm_bf16'?");
  refused_row("gemm_bf16,m=64;n=4096,time,us,0,20", "parameter 'k' is missing");
  refused_row("gemm_bf16,m=64;n=4096;k=7168;kk=1,time,us,0,20", "unknown parameter 'kk'");
  refused_row("gemm_bf16,m=64;m=64;n=4096;k=7168,time,us,0,20", "parameter 'm' is repeated");
  refused_row("gemm_bf16,m=6x4;n=4096;k=7168,time,us,0,20", "m: '6x4' is not a number");
  refused_row("gemm_bf16,m=6.4;n=4096;k=7168,time,us,0,20", "m must be a whole number, not 6.4");
  refused_row("gemm_bf16,m=64;n=4096;k=7168,tine,us,0,20", "unknown metric 'tine'; did you mean 'time'?");
  refused_row("gemm_bf16,m=64;n=4096;k=7168,time,ms,0,20", "the unit of time is us, not 'ms'");
  refused_row(kGemm + "0,0", "value must be from 0.001 to 1e+09 us, not 0");
  refused_row(kGemm + "0,-3", "value must be from 0.001 to 1e+09 us, not -3");
  refused_row(kGemm + "0,1e300", "value must be from 0.001 to 1e+09 us, not 1e+300");
  refused_row(kGemm + "0,nan", "value: 'nan' is not a number");
  refused_row(kGemm + "0,", "value: '' is not a number");
  refused_row("contention,beside=spin;sms=20,time,us,0,3", "parameter 'kernel' is missing");
  refused_row("contention,kernel=gem;beside=spin;sms=20,time,us,0,3", "unknown kernel 'gem'");
  refused_row("contention,kernel=copy;bytes=100;beside=spin;sms=20,time,us,0,3", "unknown kernel 'copy'");
  refused_row("contention,kernel=small;blocks=1;beside=spin;sms=0,time,us,0,3", "sms must be from 1 to 132, not 0");
  refused_row("contention,kernel=small;blocks=1;beside=spin;sms=133,time,us,0,3", "sms must be from 1 to 132, not 133");
  refused_row("contention,kernel=small;blocks=1;beside=kernel;sms=4,time,us,0,3", "sms must be 0 where beside=kernel");
  refused_row("contention,kernel=small;blocks=1;beside=foo;sms=4,time,us,0,3", "unknown beside 'foo'");
  refused_row("gemm_bf16,m=0;n=4096;k=7168,time,us,0,20", "m must be from 1 to 10000000000000, not 0");
  refused_row("gemm_fp8,m=64;n=4096;k=7168;scaling=bogus,time,us,0,20", "unknown scaling 'bogus'");
  refused_row("launch,mode=foo,time,us,0,3", "unknown mode 'foo'");
  refused_row("attention_forward,batch=1;heads=64;kv_heads=48;query_len=64;kv_len=64;qk_dim=128;v_dim=128,time,us,0,20",
              "kv_heads 48 must divide heads 64");
}

TEST_CASE("a header that is damaged is refused") {
  const auto without = [](const std::string& line) {
    std::string text = kHeader;
    return text.erase(text.find(line), line.size());
  };
  refused("key,parameters\n", 1, "the first line must be '# moeline calibration 1'");
  refused("# moeline calibration 2\n", 1, "format 2 is not known, only 1");
  std::string text = kHeader;
  refused(text.replace(text.find("1830"), 4, "fast"), 8, "sm_clock_mhz: 'fast' is not a number");
  text = kHeader;
  refused(text.replace(text.find("2026-11"), 7, "2026-13"), 12, "started must be a date like 2026-11-21T20:53:14Z");
  refused(without("# driver: 580.65.06\n"), 12, "the header has no line '# driver: ...'");
  refused("# moeline calibration 1\n# device\n", 2, "a line of the header must be '# name: value'");
  refused("# moeline calibration 1\n# device: \"x\"\n", 2, "a line of the header holds");
  refused(without("key,"), 13, "the columns must be 'key,parameters,metric,unit,sample,value'");
}

TEST_CASE("calibrate finds the profile by the device's name, names the set by the month, and cross-validates") {
  const File file(kHeader + kSmallAndGap + "# skipped: gemm_fp8 m=64: no algorithm\n# rows: 5\n");
  const std::string profile = file.folder / "h200.yaml";
  const Outcome outcome = run_moeline({"calibrate", file.path.string(), "-o", profile});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const HardwareProfile made = load_profile(profile);
  CHECK(made.name == "h200");
  const auto bench = std::find_if(made.kernel_sets.begin(), made.kernel_sets.end(),
                                  [](const KernelSet& set) { return set.name == "bench-2026-11"; });
  REQUIRE(bench != made.kernel_sets.end());
  CHECK((*bench)[Constant::kernel_gap] == doctest::Approx(1.5));
  CHECK((*bench)[Constant::small] == doctest::Approx(2.5));
  CHECK(outcome.out.find("skipped: gemm_fp8 m=64: no algorithm") != std::string::npos);
}

TEST_CASE("calibrate does not mix machines, nor take a time for what it is not") {
  const TemporaryFolder folder;
  const auto table = [&](const std::string& name, const std::string& device, const std::string& rows, int count) {
    std::string header = kHeader;
    header.replace(header.find("NVIDIA H200"), 11, device);
    return folder.write(name, header + rows + "# rows: " + std::to_string(count) + "\n");
  };
  const std::string h200 = table("h200.csv", "NVIDIA H200", kSmallAndGap, 5);
  const std::string h100 = table("h100.csv", "NVIDIA H100 80GB HBM3", kSmallAndGap, 5);
  const std::string pcie = table("pcie.csv", "NVIDIA H100 PCIe", kSmallAndGap, 5);
  const std::string no_gap = table("no_gap.csv", "NVIDIA H200", kSmall, 2);
  const std::string copies = table("copies.csv", "NVIDIA H200", "copy,bytes=1000000,time,us,0,1\n", 1);
  const std::string out = folder / "never.yaml";
  const auto refuse = [&](std::vector<std::string> arguments, const std::string& place, const std::string& says) {
    arguments.insert(arguments.begin(), "calibrate");
    arguments.insert(arguments.end(), {"-o", out});
    check_refused(arguments, place, says);
    CHECK_FALSE(std::filesystem::exists(out));
  };
  refuse({h200, h100}, h200 + ":2: device is NVIDIA H200, and " + h100, "was measured on NVIDIA H100 80GB HBM3");
  refuse({h200, "--hardware", "h800"}, h200 + ":2: ", "device is NVIDIA H200, not h800");
  refuse({pcie}, pcie + ":2: ", "device 'NVIDIA H100 PCIe' names no profile: --hardware names one with its facts");
  refuse({h200, h200}, h200, "is given twice");
  refuse({no_gap}, no_gap, "contain the gap to the next one, and no table measures it");
  refuse({h200, source("calib/data/deepgemm_published.csv").string()}, h200 + ":2: device is ",
         "kernels that others timed elsewhere");
  refuse({copies}, copies, "no table measures it");
  refuse({h200, "--kernels", "a b: c-2026-11"}, "", "may hold letters, digits");
  refuse({h200, "--kernels", "x-2026-11\ny"}, "", "may hold letters, digits");
}

TEST_CASE("calibrate refuses a damaged table with exit code 3 and leaves the profile alone") {
  const File file(kHeader + kGemm + "0,20\n");
  const std::string profile = file.folder / "never_written.yaml";
  check_refused({"calibrate", file.path.string(), "-o", profile},
                file.path.string() + ":14: ", "the table was cut off");
  CHECK_FALSE(std::filesystem::exists(profile));
}

}  // TEST_SUITE("calib/bench_table")
