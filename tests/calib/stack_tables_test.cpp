// Tables of serving stacks: read by a mapping, hiccups dropped by rule, bad ones refused with nothing written.
#include "calib/fit/stack_tables.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "calib/fit/read_rows.hpp"
#include "hardware/profile.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("calib/stack_tables") {

using namespace moeline;
using namespace moeline::testing;
namespace fs = std::filesystem;

namespace {

const std::string kMapping =
    "schema: 1\n"
    "rows:\n"
    "  casts:\n"
    "    file: casts\n"
    "    where: {kind: [fp8, half]}\n"
    "    form: rows\n"
    "    op: memory\n"
    "    keys: {kind: =rowwise, bytes: 3 * m * k, l2: mode if any}\n"
    "    words: {half: fp16}\n"
    "    time: latency ms\n"
    "    slice: [k]\n"
    "    spikes: {rising: [m, k], above: 1.25}\n"
    "    witness: {file: casts_of_another, above: 1.3}\n"
    "    leave_out:\n"
    "      not of the grid: {m x k: [7x7]}\n"
    "      too long: {latency: {above: 100}}\n";

// 3 us and the bytes at 1 TB/s.
double cast_ms(int m, int k) { return 3e-3 + 3.0 * m * k / 1e9; }

std::string casts(double factor = 1) {
  std::string text = "kind,m,k,latency\n";
  for (const int m : {64, 256, 1024, 4096}) {
    for (const int k : {1024, 3072, 7168}) text += fmt::format("fp8,{},{},{}\n", m, k, factor * cast_ms(m, k));
  }
  return text;
}

struct Tables {
  TemporaryFolder folder;
  std::string mapping = folder.write("mapping.yaml", kMapping);

  [[nodiscard]] StackCalibration calibrated(const std::vector<fs::path>& files) const {
    const MachineFacts machine = load_profile("b200").facts;
    return calibrate_stack(files, read_row_kinds(mapping),
                           {.kernels = "stack-1.0", .date = "2026-08", .profile = "b200"}, machine);
  }
  [[nodiscard]] StackCalibration calibrated(const std::string& content) {
    return calibrated(std::vector<fs::path>{folder.write("casts.csv", content)});
  }
};

bool notes(const StackCalibration& calibration, const std::string& what) {
  return std::any_of(calibration.log.begin(), calibration.log.end(),
                     [&](const std::string& line) { return line.find(what) != std::string::npos; });
}

}  // namespace

TEST_CASE("a row becomes an OP by the mapping of its columns") {
  const Tables tables;
  const std::vector<RowKind> kinds = read_row_kinds(tables.mapping);
  REQUIRE(kinds.size() == 1);
  const CsvTable plain(tables.folder.write("a.csv", "kind,m,k,latency\nfp8,2,5,1\n"));
  CHECK(op_of(kinds[0], plain, 0) == "memory:kind=rowwise,bytes=30");
  const CsvTable with_mode(tables.folder.write("b.csv", "kind,m,k,latency,mode\nfp8,2,5,1,hot\n"));
  CHECK(op_of(kinds[0], with_mode, 0) == "memory:kind=rowwise,bytes=30,l2=hot");
}

TEST_CASE("what made a table is found again, and the set says so") {
  Tables tables;
  const StackCalibration calibration = tables.calibrated(casts());
  const FamilyFit& fit = calibration.kernels.fits.at("rowwise");
  CHECK(fit.kernels == 12);
  CHECK(fit.held_out);
  CHECK(fit.graph_timed);
  CHECK(fit.median_abs_error < 0.01);
  CHECK(fit.range.at(Dimension::bytes).high == 3.0 * 4096 * 7168);
  CHECK(calibration.log.empty());
}

TEST_CASE("repeats count by their median, and hiccups and what the mapping leaves out not at all") {
  Tables tables;
  const std::string text = casts() + fmt::format("fp8,64,1024,{}\nfp8,64,1024,{}\n", cast_ms(64, 1024), 9.0) +
                           "fp8,128,1024,8\nfp8,7,7,1\nfp8,8192,16384,200\nint8,1,1,1\n";
  const StackCalibration calibration = tables.calibrated(text);
  CHECK(calibration.kernels.fits.at("rowwise").kernels == 12);
  CHECK(notes(calibration, "casts: 2 rows were repeats"));
  CHECK(notes(calibration, "casts: 1 rows left out: above 1.25 times a row with more work"));
  CHECK(notes(calibration, "casts: 1 rows left out: not of the grid"));
  CHECK(notes(calibration, "casts: 1 rows left out: too long"));
}

TEST_CASE("rows that another version ran much faster are left out") {
  const Tables tables;
  std::string slow = casts();
  slow += fmt::format("fp8,8192,7168,{}\n", 2 * cast_ms(8192, 7168));
  const std::string other = casts(1.1) + fmt::format("fp8,8192,7168,{}\n", 1.1 * cast_ms(8192, 7168));
  const StackCalibration calibration = tables.calibrated(
      {tables.folder.write("casts.csv", slow), tables.folder.write("casts_of_another_1.0.csv", other)});
  CHECK(calibration.kernels.fits.at("rowwise").kernels == 12);
  CHECK(notes(calibration, "above 1.3 times their time in casts_of_another_1.0"));
}

TEST_CASE("what another table has of the same kernels is taken off, and rows that it lacks are left out") {
  const Tables tables;
  const std::string mapping =
      replaced(kMapping, "    slice: [k]\n", "    slice: [k]\n    less: {file: scales, by: [m, k]}\n");
  const TemporaryFolder folder;
  std::string slow = "kind,m,k,latency\n", scales = "m,k,latency\n";
  for (const int m : {64, 256, 1024, 4096}) {
    for (const int k : {1024, 3072, 7168}) {
      slow += fmt::format("fp8,{},{},{}\n", m, k, cast_ms(m, k) + 8e-3);
      if (m < 4096) scales += fmt::format("{},{},8e-3\n", m, k);
    }
  }
  const StackCalibration calibration =
      calibrate_stack({folder.write("casts.csv", slow), folder.write("scales.csv", scales)},
                      read_row_kinds(folder.write("mapping.yaml", mapping)),
                      {.kernels = "stack-1.0", .date = "2026-08", .profile = "b200"}, load_profile("b200").facts);
  const FamilyFit& fit = calibration.kernels.fits.at("rowwise");
  CHECK(fit.kernels == 9);
  CHECK(fit.constants[0] == doctest::Approx(3).epsilon(0.02));  // us, as without the scales
  CHECK(notes(calibration, "casts: 3 rows left out: more than that, or nothing, in scales"));
}

TEST_CASE("how far two times of an OP are apart is told, of one table and of two versions") {
  const Tables tables;
  const std::string repeated = casts() + fmt::format("fp8,64,1024,{}\n", 1.2 * cast_ms(64, 1024));
  const StackCalibration calibration = tables.calibrated(
      {tables.folder.write("casts.csv", repeated), tables.folder.write("casts_of_another_1.0.csv", casts(0.8))});
  REQUIRE(calibration.repeatability.size() == 2);
  const Repeatability& within = calibration.repeatability[0];
  CHECK(within.beside == "the same table");
  CHECK(within.pairs == 1);
  CHECK(within.deviation.median_abs == doctest::Approx(0.1 / 1.1));
  const Repeatability& between = calibration.repeatability[1];
  CHECK(between.beside == "casts_of_another_1.0");
  CHECK(between.pairs == 12);
  CHECK(between.deviation.median == doctest::Approx(0.25));
}

TEST_CASE("a mapping that cannot be read is refused at its line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& says) {
    const std::string file = folder.write("mapping.yaml", replaced(kMapping, from, to));
    CAPTURE(to);
    try {
      (void)read_row_kinds(file);
      FAIL("was read");
    } catch (const SpecError& error) {
      CHECK(std::string(error.what()).find(says) != std::string::npos);
    }
  };
  refused("form: rows", "form: row", "did you mean 'rows'");
  refused("time: latency ms", "time: latency s", "'COLUMN ms' or 'COLUMN us'");
  refused("slice: [k]", "slices: [k]", "unknown key");
  refused("{rising: [m, k], above: 1.25}", "{raising: [m, k], above: 1.25}", "unknown key");
  refused("schema: 1", "schema: 2", "schema");
  const auto corrections = [&](const std::string& what, const std::string& says) {
    refused("schema: 1\n", "schema: 1\ncorrections: " + what + "\n", says);
  };
  corrections("{memory: {by size: {bites: 7}}}", "unknown key");
  corrections("{memory: {by size: {bytes: 1}}}", "bytes");
  corrections("{memory: {by size: {}}}", "at least one dimension");
  corrections("{linear: {by shape: {m: 7}}}", "is the OP of no entry");
}

TEST_CASE("damaged, mixed-up and foreign tables are refused with file and reason, and nothing is written") {
  const Tables tables;
  const std::string out = tables.folder / "out.yaml";
  const auto refused = [&](const Arguments& files, const std::string& place, const std::string& says) {
    Arguments call = {"calibrate"};
    call.insert(call.end(), files.begin(), files.end());
    const Arguments rest = {"--tables", tables.mapping, "--hardware", "b200", "--kernels",
                            "x-1.0",    "--date",       "2026-08",    "-o",   out};
    call.insert(call.end(), rest.begin(), rest.end());
    check_refused(call, place, says);
    CHECK_FALSE(fs::exists(out));
  };
  const auto written = [&](const std::string& content) { return tables.folder.write("casts.csv", content); };
  const std::string file = written("kind,m,k,latency\nfp8,2\n");
  refused({file}, file + ":2", "has 2 cells");
  refused({written("kind,m,k,latency\nfp8,two,5,1\n")}, file + ":2", "m: 'two' is not a number");
  refused({written("kind,m,k,latency\nfp8,2,5,-1\n")}, file + ":2", "latency must be above 0");
  refused({written("kind,m,k,latency\nfp8,2,0,1\n")}, file + ":2", "bytes");
  refused({written("kind,m,latency\nfp8,2,1\n")}, file, "has no column 'k'");
  const std::string gzip = tables.folder.write("casts.csv.gz", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00", 8));
  refused({gzip}, gzip, "gzip");
  written(casts());
  const std::string foreign = tables.folder.write("other.csv", "a,b\n1,2\n");
  refused({file, foreign}, foreign, "is no table of a serving stack");
  const Arguments undated = {"calibrate", file,        "--tables", tables.mapping, "--hardware",
                             "b200",      "--kernels", "x",        "-o",           out};
  CHECK(run_moeline(undated).exit_code == 3);
}

TEST_CASE("tables of another machine are refused by their manifest") {
  const fs::path file = data_folder() / "aic/h100_sxm/gemm_trtllm.csv.gz";
  if (!present(file)) return;
  CHECK(manifest_entry(file)->device == "NVIDIA H100 80GB HBM3");
  const TemporaryFolder folder;
  check_refused({"calibrate", file.string(), "--hardware", "b200", "--kernels", "trtllm-1.3.0", "--date", "2026-08",
                 "-o", folder / "out.yaml"},
                file.string(), "was measured on NVIDIA H100 80GB HBM3");
}

TEST_CASE("the shipped sets are what their tables give") {
  const fs::path folder = data_folder() / "aic/b200_sxm";
  if (!present(folder / "gemm_trtllm.csv.gz")) return;
  const HardwareProfile profile = load_profile("b200");
  std::vector<fs::path> tables = {folder / "mla_decode_trtllm.csv.gz", folder / "nccl.csv"};
  if (!kSanitized) tables.insert(tables.begin(), folder / "gemm_trtllm.csv.gz");
  const StackCalibration calibration =
      calibrate_stack(tables, read_row_kinds(source("calib/tables/serving_stacks.yaml")),
                      {.kernels = "trtllm-1.3.0", .date = "2026-08", .profile = "b200"}, profile.facts);
  const auto shipped = std::find_if(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                                    [](const KernelSet& set) { return set.name == "trtllm-1.3.0"; });
  REQUIRE(shipped != profile.kernel_sets.end());
  for (const auto& [family, fit] : calibration.kernels.fits) {
    MOELINE_CAPTURE_BINDING(family);
    REQUIRE(shipped->fits.contains(family));
    const FamilyFit& ours = shipped->fits.at(family);
    CHECK(ours.form == fit.form);
    CHECK(ours.kernels == fit.kernels);
    REQUIRE(ours.correction.gains.size() == fit.correction.gains.size());
    for (std::size_t i = 0; i < fit.correction.gains.size(); ++i) {
      CHECK(std::abs(ours.correction.gains[i] - fit.correction.gains[i]) < 0.0015);
    }
    for (std::size_t i = 0; i < fit.constants.size(); ++i) {
      CHECK(ours.constants[i] == doctest::Approx(fit.constants[i]).epsilon(1e-3));
    }
  }
}

TEST_CASE("the page of held-out errors is what the profiles say") {
  const std::string page = read_text(source("calib/tables/held_out.md"));
  const std::vector<std::string> machines = {"a100", "h100", "h200", "b200", "gb200-nvl72"};
  for (const std::string stack : {"sglang", "trtllm"}) {
    for (const std::string& machine : machines) {
      const HardwareProfile profile = load_profile(machine);
      const std::string name = profile.set_named(stack);
      for (const KernelSet& set : profile.kernel_sets) {
        if (set.name != name) continue;
        for (const auto& [family, fit] : set.fits) {
          const std::string errors = fmt::format("{:+.1f} / {:.1f} / {:.1f}", 100 * fit.median_error,
                                                 100 * fit.median_abs_error, 100 * fit.p95_abs_error);
          CAPTURE(machine);
          MOELINE_CAPTURE_BINDING(family);
          CHECK(page.find(fit.held_out ? " " + errors + " |" : " (" + errors + ") |") != std::string::npos);
        }
      }
    }
  }
}

}  // TEST_SUITE("calib/stack_tables")
