// moeline calibrate: measurements -> a hardware profile with a fitted kernel set.
#include "calib/fit/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/file.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/hardware_table.hpp"
#include "experiments/cli/output_file.hpp"

namespace moeline {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string output;
  std::string hardware = "h800";
  std::string model = "deepseek-v3";
  CalibrationRequest request;
  bool report = false;
};

void print_summary(const Calibration& calibration) {
  fmt::print("{}: fitted to {} observations\n{}\n\n", calibration.kernels.name, calibration.observations.size(),
             count_constants(calibration.kernels));
  fmt::print("{:<46} {:>10}\n", "constant", "value");
  for (std::size_t i = 0; i < kConstants; ++i) {
    const double constant = calibration.kernels.constants[i];
    if (!std::isnan(constant)) fmt::print("{:<46} {:>10.5g}\n", kConstantNames[i], constant);
  }
  fmt::print("\nErrors are predicted / measured - 1. Held-out: each fold predicted by a fit to everything else.\n");
  fmt::print("{:<20} {:>8} {:>10} {:>12} {:>10} {:>10} {:>10}\n", "family", "kernels", "errors", "median |e|",
             "95 % |e|", "mean e", "worst e");
  for (const auto& [family, fit] : calibration.kernels.fits) {
    fmt::print("{:<20} {:>8} {:>10} {:>11.1f}% {:>9.1f}% {:>+9.1f}% {:>+9.1f}%\n", family, fit.kernels,
               fit.held_out ? "held-out" : "in-sample", 100 * fit.median_abs_error, 100 * fit.p95_abs_error,
               100 * fit.mean_error, 100 * fit.worst_error);
  }
}

std::string percent(double error) { return std::isnan(error) ? "" : fmt::format("{:+.1f}%", 100 * error); }

void print_report(const Calibration& calibration) {
  fmt::print("\n{:<20} {:<40} {:>12} {:>12} {:>9} {:>9}\n", "family", "where", "measured us", "fitted us", "error",
             "left out");
  for (std::size_t i = 0; i < calibration.observations.size(); ++i) {
    const Observation& o = calibration.observations[i];
    const double left_out = calibration.left_out.empty() ? kUnknown : calibration.left_out[i];
    fmt::print("{:<20} {:<40} {:>12.1f} {:>12.1f} {:>9} {:>9}\n", o.family, o.where, o.measured_us,
               calibration.fitted[i], percent(error_of(calibration.fitted[i], o)), percent(error_of(left_out, o)));
  }
}

void run(const Options& options) {
  check_output("-o", options.output, options.files);
  HardwareProfile profile = load_profile(options.hardware);
  const Architecture model = load_architecture(options.model);
  const Calibration calibration =
      calibrate({options.files.begin(), options.files.end()}, options.request, model, profile.facts);
  std::erase_if(profile.kernel_sets, [&](const KernelSet& set) { return set.name == calibration.kernels.name; });
  profile.kernel_sets.push_back(calibration.kernels);
  write_text(options.output, to_yaml(profile));
  print_summary(calibration);
  if (options.report) print_report(calibration);
}

}  // namespace

void add_calibrate(CLI::App& app, int& /*exit_code*/) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("calibrate", "fit the constants of a kernel set to measured kernels");
  command->add_option("csv", options->files, "measured tables: those that calib/fit/README.md describes")->required();
  command->add_option("-o,--output", options->output, "the hardware profile to write")->required();
  command->add_option("--hardware", options->hardware, "profile whose machine facts and other kernel sets are kept");
  command->add_option("--model", options->model, "model that ran in the trace");
  command->add_option("--kernels", options->request.kernels,
                      "name of the kernel set, NAME-DATE: deepseek-2025-02, open-2025-late");
  command->add_flag("--cross-validate", options->request.cross_validate,
                    "score benchmark tables on shapes left out of the fit");
  command->add_option("--layers", options->request.layers, "layers of the trace to fit on")->delimiter(',');
  command->add_flag("--report", options->report, "print every observation with its fitted value");
  command->callback([options] { run(*options); });
}

}  // namespace moeline
