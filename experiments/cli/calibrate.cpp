// moeline calibrate: measurements -> a hardware profile with a fitted kernel set.
#include "calib/fit/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "calib/fit/bench_table.hpp"
#include "calib/fit/row_kind.hpp"
#include "calib/fit/stack_tables.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/calibration_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"
#include "experiments/validate/host_speed.hpp"
#include "hardware/device_name.hpp"
#include "hardware/profile.hpp"

namespace moeline {
namespace {

struct CalibrateOptions {
  std::vector<std::string> files;
  std::string output;
  std::string hardware;
  std::string model = "deepseek-v3";
  std::string kernels;
  std::string date;    // of a serving stack's tables
  std::string tables;  // the mapping of their columns
  CalibrationRequest request;
  std::string html;
  bool report = false;
  bool force = false;
  std::set<std::string> given;  // names of the options that were typed
};

// An option that would be ignored is refused: whoever gave it expects that it counts.
void refuse_given(const CalibrateOptions& options, const std::vector<std::string>& names, const char* why) {
  for (const std::string& name : names) {
    if (options.given.contains(name)) throw UsageError(fmt::format("{} {}", name, why));
  }
}

std::string device_of(const BenchTable& table) { return table.header.at("device"); }

std::string profile_for(const BenchTable& table) {
  if (const auto profile = profile_named_by(device_of(table))) return *profile;
  throw table.error_at("device",
                       fmt::format("'{}' names no profile: --hardware names one with its facts", device_of(table)));
}

void expect_device(const BenchTable& table, const HardwareProfile& profile) {
  if (!is_another_machine(profile.name, device_of(table))) return;
  throw table.error_at("device", fmt::format("is {}, not {}", device_of(table), profile.name));
}

// Tables of calib/bench say what they were measured on and when, and are always cross-validated.
void take_from_bench(const std::vector<std::string>& files, CalibrateOptions& options) {
  for (const std::string& file : files) {
    if (!is_bench_table(file)) continue;
    const BenchTable table = read_bench_table(file);
    if (options.hardware.empty()) options.hardware = profile_for(table);
    if (options.kernels.empty()) options.kernels = "bench-" + table.header.at("started").substr(0, 7);
    options.request.cross_validate = true;
  }
}

std::vector<std::string> bench_key_names() {
  std::vector<std::string> names;
  for (const BenchKey& key : bench_keys()) {
    if (key.name != "launch") names.push_back(key.name);  // every time contains its gap
  }
  return names;
}

std::vector<std::string> group_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kConstants; ++i) {
    const std::string name(group_of(i));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

void replace_set(const KernelSet& set, HardwareProfile& profile) {
  std::erase_if(profile.kernel_sets, [&](const KernelSet& other) { return other.name == set.name; });
  profile.kernel_sets.push_back(set);
}

std::vector<RowKind> row_kinds(const CalibrateOptions& options) {
  return read_row_kinds(options.tables.empty() ? home() / "calib/tables/serving_stacks.yaml"
                                               : std::filesystem::path(options.tables));
}

// "2026-08"
bool is_month(const std::string& date) {
  if (date.size() != 7 || date[4] != '-' || date.find_first_not_of("0123456789-") != std::string::npos) return false;
  const std::string month = date.substr(5);
  return month >= "01" && month <= "12" && month[1] != '-';
}

// What a profile can hold as a key: a stack and its version, of letters, digits, '-', '_' and '.'.
bool is_set_name(const std::string& name) {
  constexpr const char* kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  const std::size_t dash = name.find('-');
  return name.find_first_not_of(kPlain) == std::string::npos && dash != std::string::npos && dash > 0;
}

// Which machine and which stack at which date no table says by itself.
void run_stack(const CalibrateOptions& options, const std::vector<RowKind>& kinds, const Console& console) {
  check_output({"--html", options.html, FileKind::page}, options.files, options.force);
  check_distinct({{"-o", options.output, FileKind::profile}, {"--html", options.html, FileKind::page}});
  for (const std::string& file : options.files) {
    if (is_stack_table(file, kinds)) continue;
    throw SpecError(file, 0, "is no table of a serving stack that the mapping knows, as the others are");
  }
  if (options.hardware.empty()) throw SpecError("--hardware is needed: whose machine the tables are of");
  if (!is_set_name(options.kernels)) {
    throw SpecError("--kernels is needed: the stack and its version, as sglang-0.5.14");
  }
  if (!is_month(options.date)) throw SpecError("--date is needed: the month of the tables, as 2026-08");
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_page_template();
  HardwareProfile profile = load_profile(options.hardware);
  const StackCalibration calibration = with_progress(console, [&](const Progress& progress) {
    return calibrate_stack({options.files.begin(), options.files.end()}, kinds,
                           {.kernels = options.kernels, .date = options.date, .profile = profile.name}, profile.facts,
                           progress);
  });
  replace_set(calibration.kernels, profile);
  write_text(options.output, to_yaml(profile));
  if (page_template) write_text(options.html, to_html(stack_page(calibration, profile.name), *page_template));
  console.print(fmt::format("{}{}", stack_text(calibration), options.report ? stack_report_text(calibration) : ""));
}

bool is_yaml(const std::string& file) { return file.ends_with(".yaml") || file.ends_with(".yml"); }

// Steps that wait for their host, written as facts are: what host it is, and nothing else.
void run_host(const CalibrateOptions& options, const Console& console) {
  if (options.files.size() > 1) throw SpecError(options.files[1], 0, "steps of one machine stand in one file");
  const Subject steps = read_subject(Spec::load(options.files.front()));
  const HostCalibration host =
      with_progress(console, [&](const Progress& progress) { return calibrate_host(steps, progress); });
  HardwareProfile profile = load_profile(options.hardware.empty() ? host.hardware : options.hardware);
  if (profile.name != host.hardware) {
    throw SpecError(options.files.front(), 0, fmt::format("has steps of {}, not {}", host.hardware, profile.name));
  }
  profile.facts.host_speed = host.speed;
  profile.sources["host_speed"] =
      fmt::format("calibrated on steps of training that wait for their host ({})", options.files.front());
  write_text(options.output, to_yaml(profile));
  console.print(host_text(host));
}

void run(CalibrateOptions options, const Console& console) {
  check_output({"-o", options.output, FileKind::profile}, options.files, options.force);
  if (is_yaml(options.files.front())) {
    refuse_given(options,
                 {"--model", "--kernels", "--date", "--tables", "--cross-validate", "--layers", "--without", "--given",
                  "--by-name-only", "--report", "--html"},
                 "does not apply to steps, which tell the speed of a host");
    return run_host(options, console);
  }
  const std::vector<RowKind> kinds = row_kinds(options);
  const auto is_stack = [&](const std::string& file) { return is_stack_table(file, kinds); };
  if (std::any_of(options.files.begin(), options.files.end(), is_stack)) {
    refuse_given(options, {"--model", "--cross-validate", "--layers", "--without", "--given", "--by-name-only"},
                 "does not apply to a serving stack's tables");
    return run_stack(options, kinds, console);
  }
  refuse_given(options, {"--date", "--tables", "--html"},
               "is for a serving stack's tables, of which none is known to the mapping here");
  take_from_bench(options.files, options);
  if (options.hardware.empty()) options.hardware = "h800";
  if (!options.kernels.empty()) options.request.kernels = options.kernels;
  HardwareProfile profile = load_profile(options.hardware);
  if (!options.request.given.empty()) options.request.lender = profile.kernels("").constants;
  const Architecture model = load_architecture(options.model);
  const Calibration calibration =
      calibrate({options.files.begin(), options.files.end()}, options.request, model, profile.facts);
  for (const BenchTable& table : calibration.benches) expect_device(table, profile);
  const std::string report = calibration_text(calibration) + benches_text(calibration, profile.facts) +
                             (options.report ? residuals_text(calibration) : "");
  replace_set(calibration.kernels, profile);
  write_text(options.output, to_yaml(profile));
  console.print(report);
}

}  // namespace

Command make_calibrate(Console& console) {
  auto options = std::make_shared<CalibrateOptions>();
  CalibrationRequest& request = options->request;
  return {
      .name = "calibrate",
      .about = "fit the constants of a kernel set to measured kernels, or a host's speed to steps",
      .options =
          {required({"csv", &options->files,
                     "measured tables: those that calib/fit/README.md describes; or a YAML file of host-bound steps"}),
           required({"-o,--output", &options->output, "the hardware profile to write", NotEmpty{}}),
           {"--hardware", &options->hardware,
            "profile whose machine facts and other kernel sets are kept: by default the one that a table of "
            "calib/bench names, else h800"},
           {"--model", &options->model, "model that ran in the trace"},
           {"--kernels", &options->kernels,
            "name of the kernel set, NAME-DATE: open-2025-late; by default bench-MONTH of a table of calib/bench, else "
            "deepseek-2025-02"},
           {"--date", &options->date, "month of a serving stack's tables: 2026-08"},
           {"--tables", &options->tables,
            "how a serving stack's tables are read: a mapping as calib/tables/README.md describes it"},
           {"--cross-validate", &request.cross_validate,
            "score benchmark tables on shapes left out of the fit; always of calib/bench's"},
           comma_separated({"--layers", &request.layers, "layers of the trace to fit on"}),
           comma_separated({"--without", &request.without,
                            "keys of calib/bench's tables that are not fitted: the set borrows them",
                            bench_key_names()}),
           comma_separated({"--given", &request.given,
                            "groups of constants that are not fitted: they are those of the profile's newest set",
                            group_names()}),
           {"--by-name-only", &request.by_name_only,
            "a set that is never a default and lends nothing: for few figures, or of another time"},
           force_option(options->force),
           {"--report", &options->report,
            "of a serving stack's tables the rows that are missed most, what to measure next, and how far the tables "
            "agree with each other; of others every observation with its fitted and its left-out value"},
           {"--html", &options->html, "the errors and the report on a serving stack's tables, as a page", NotEmpty{}}},
      .run = [options, &console] { run(*options, console); },
      .given = &options->given};
}

}  // namespace moeline
