// calib/bench's table: read whole, or refused with row and reason.
#include "calib/fit/bench_table.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "base/error.hpp"
#include "tests/support/cli.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kHeader =
    "# moeline calibration 1\n# device: NVIDIA H200\n# sms: 132\n# compute_capability: 9.0\n# driver: 580.65.06\n"
    "# toolkit: 13.0\n# cublas: 13.0.2\n# sm_clock_mhz: 1830\n# memory_clock_mhz: 3201\n# commit: 6a47841\n"
    "# preset: full\n# started: 2026-11-21T20:53:14Z\nkey,parameters,metric,unit,sample,value\n";  // 13 lines
const std::string kGemm = "gemm_bf16,m=64;n=4096;k=7168,time,us,";
const std::string kContention = "contention,kernel=gemm_bf16;m=64;n=4096;k=7168;beside=spin;sms=20;kernel_sms=112,";

struct File {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "moeline_bench_table.csv";
  explicit File(const std::string& text) { std::ofstream(path) << text; }
  ~File() { std::filesystem::remove(path); }
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
  refused_row(kGemm + "0,0", "value must be above 0, not 0");
  refused_row(kGemm + "0,-3", "value must be above 0, not -3");
  refused_row(kGemm + "0,nan", "value: 'nan' is not a number");
  refused_row(kGemm + "0,", "value: '' is not a number");
  refused_row("contention,beside=spin;sms=20,time,us,0,3", "parameter 'kernel' is missing");
  refused_row("contention,kernel=gem;beside=spin;sms=20,time,us,0,3", "unknown kernel 'gem'");
}

TEST_CASE("a header that is damaged is refused") {
  const auto without = [](const std::string& line) {
    std::string text = kHeader;
    return text.erase(text.find(line), line.size());
  };
  refused("key,parameters\n", 1, "the first line must be '# moeline calibration 1'");
  refused("# moeline calibration 2\n", 1, "format 2 is not known, only 1");
  refused(without("# driver: 580.65.06\n"), 12, "the header has no line '# driver: ...'");
  refused("# moeline calibration 1\n# device\n", 2, "a line of the header must be '# name: value'");
  refused("# moeline calibration 1\n# device: \"x\"\n", 2, "a line of the header holds");
  refused(without("key,"), 13, "the columns must be 'key,parameters,metric,unit,sample,value'");
}

TEST_CASE("calibrate finds the profile by the device's name, names the set by the month, and cross-validates") {
  std::string rows;
  int count = 0;
  for (const char* nk : {"n=4096;k=7168", "n=7168;k=2048", "n=2112;k=7168"}) {
    for (const int m : {64, 256, 1024, 4096, 16384}) {
      rows += "gemm_bf16,m=" + std::to_string(m) + ";" + nk + ",time,us,0," + std::to_string(10 + m / 10) + "\n";
      ++count;
    }
  }
  const File file(kHeader + rows + "# skipped: gemm_fp8 m=64: no algorithm\n# rows: " + std::to_string(count) + "\n");
  const std::string profile = (std::filesystem::temp_directory_path() / "moeline_from_bench.yaml").string();
  const Outcome outcome = run_moeline({"calibrate", file.path.string(), "-o", profile});
  if (outcome.exit_code == 0) {  // invented times may make a constant negative
    const std::string yaml = content_of(profile);
    CHECK(yaml.starts_with("name: h200\n"));
    CHECK(yaml.find("  bench-2026-11:\n") != std::string::npos);
    CHECK(yaml.find("errors: held-out") != std::string::npos);
    CHECK(outcome.out.find("skipped: gemm_fp8 m=64: no algorithm") != std::string::npos);
  }
  std::filesystem::remove(profile);
}

TEST_CASE("calibrate refuses a damaged table with exit code 3 and leaves the profile alone") {
  const File file(kHeader + kGemm + "0,20\n");
  const std::string profile = (std::filesystem::temp_directory_path() / "moeline_never_written.yaml").string();
  check_refused({"calibrate", file.path.string(), "--hardware", "h100", "--kernels", "x-2026-11", "-o", profile},
                file.path.string() + ":14: ", "the table was cut off");
  CHECK_FALSE(std::filesystem::exists(profile));
}
