#include "experiments/cli/output/calibration_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.hpp"
#include "calib/fit/bench_observations.hpp"
#include "calib/fit/stack_report.hpp"
#include "experiments/cli/output/hardware_output.hpp"
#include "experiments/validate/contention.hpp"

namespace moeline {
namespace {

constexpr double kMissed = 0.15;

std::string error_text(double error) { return std::isnan(error) ? "" : fmt::format("{:+.1f}%", 100 * error); }

std::string constants_text(const KernelSet& kernels) {
  std::string text = fmt::format("{:<46} {:>10}\n", "constant", "value");
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (std::isnan(kernels.constants[i])) continue;
    text += fmt::format("{:<46} {:>10.5g}\n", constant_name(i), kernels.constants[i]);
  }
  return text;
}

std::string fits_text(const KernelSet& kernels) {
  std::string text =
      "\nErrors are predicted / measured - 1. Held-out: each fold predicted by a fit to everything else.\n";
  text += fmt::format("{:<20} {:>8} {:>10} {:>12} {:>10} {:>10} {:>10}\n", "family", "kernels", "errors", "median |e|",
                      "95 % |e|", "mean e", "worst e");
  for (const auto& [family, fit] : kernels.fits) {
    text += fmt::format("{:<20} {:>8} {:>10} {:>11.1f}% {:>9.1f}% {:>+9.1f}% {:>+9.1f}%\n", family, fit.kernels,
                        fit.held_out ? "held-out" : "in-sample", 100 * fit.median_abs_error, 100 * fit.p95_abs_error,
                        100 * fit.mean_error, 100 * fit.worst_error);
  }
  return text;
}

// Rows of benchmarks that no choice of the constants meets: the curve lacks something, or the row is wrong.
std::string missed_text(const Calibration& calibration) {
  std::string rows;
  for (std::size_t i = 0; i < calibration.observations.size(); ++i) {
    const Observation& o = calibration.observations[i];
    const double error = error_of(calibration.fitted[i], o);
    if (o.noise != Noise::timed || std::abs(error) < kMissed) continue;
    rows += fmt::format("{:<20} {:<56} {:>10.1f} us {:>9}\n", o.family, o.where, o.measured_us, error_text(error));
  }
  return rows.empty() ? "" : fmt::format("\nRows missed by {:.0f} % or more though fitted:\n{}", 100 * kMissed, rows);
}

std::string advice_text(const Calibration& calibration) {
  const std::vector<Advice> advice = measure_next(calibration.observations, calibration.fitted, calibration.left_out);
  if (advice.empty()) return "";
  std::string text = fmt::format("\nTo shrink the largest error of each family, measure\n");
  for (const Advice& each : advice) {
    const Observation& worst = calibration.observations[each.worst];
    text += fmt::format("{:<20} {:>8}  {}: {}\n", each.family, error_text(each.error), worst.where, each.measure);
  }
  return text;
}

// The fastest of a key, as a rate and a share of the peak.
struct Ceiling {
  const char* key;
  const char* unit;
  double MachineFacts::*peak;
};
constexpr Ceiling kCeilings[] = {{"copy", "GB/s", &MachineFacts::hbm_GBps},
                                 {"streaming", "GB/s", &MachineFacts::hbm_GBps},
                                 {"gemm_bf16", "TFLOP/s", &MachineFacts::bf16_tflops},
                                 {"gemm_fp8", "TFLOP/s", &MachineFacts::fp8_tflops},
                                 {"attention_forward", "TFLOP/s", &MachineFacts::bf16_tflops},
                                 {"attention_backward", "TFLOP/s", &MachineFacts::bf16_tflops},
                                 {"mla_decode", "TFLOP/s", &MachineFacts::bf16_tflops}};

double rate(const Measurement& m) {
  if (m.key == "copy") return m.at("bytes") / m.median() / 1e3;
  const Operator op = bench_operator(m);
  return op.flops > 0 ? op.flops / m.median() / 1e6 : op.bytes / m.median() / 1e3;
}

std::string ceilings_text(const BenchTable& table, const MachineFacts& machine) {
  std::string text = fmt::format("\n{:<20} {:>14} {:>16}\n", "fastest", "", "of the peak");
  for (const Ceiling& ceiling : kCeilings) {
    double best = 0;
    for (const Measurement& m : table.measurements) {
      if (m.key == ceiling.key) best = std::max(best, rate(m));
    }
    const double share = best / (machine.*ceiling.peak);
    if (best == 0) continue;
    text += fmt::format("{:<20} {:>6.0f} {:<7} {:>15.1f}%{}\n", ceiling.key, best, ceiling.unit, 100 * share,
                        share > 1.02 ? "  more than there is: are these the facts of that machine?" : "");
  }
  return text;
}

std::string contention_text(const BenchTable& table, const MachineFacts& machine) {
  const std::vector<ContentionScore> scores = score_contention(table, machine);
  if (scores.empty()) return "";
  std::string text =
      fmt::format("\n{:<72} {:>10} {:>10} {:>10} {:>8}\n", "contention", "alone us", "beside us", "engine us", "error");
  double sum = 0, worst = 0;
  int scored = 0;
  for (const ContentionScore& s : scores) {
    const double error = s.predicted_us / s.measured_us - 1;
    const bool waits = std::isnan(s.predicted_us);
    text += fmt::format("{:<72} {:>10.1f} {:>10.1f} {:>10} {:>8}\n", s.parameters, s.alone_us, s.measured_us,
                        waits ? "waits" : fmt::format("{:.1f}", s.predicted_us), error_text(error));
    if (waits) continue;
    sum += std::abs(error);
    if (std::abs(error) > std::abs(worst)) worst = error;
    ++scored;
  }
  if (scored > 0) text += fmt::format("mean |error| {:.1f} %, worst {:+.1f} %\n", 100 * sum / scored, 100 * worst);
  const int waiting = static_cast<int>(scores.size()) - scored;
  if (waiting == 0) return text;
  return text +
         fmt::format("{} ran beside SMs that were held; the engine lets a persistent kernel wait for all its SMs\n",
                     waiting);
}

}  // namespace

std::string calibration_text(const Calibration& calibration) {
  return fmt::format("{}: fitted to {} observations\n{}\n\n", calibration.kernels.name, calibration.observations.size(),
                     count_constants(calibration.kernels)) +
         constants_text(calibration.kernels) + fits_text(calibration.kernels) + missed_text(calibration) +
         advice_text(calibration);
}

std::string host_text(const HostCalibration& host) {
  TextTable table("lrrrr");
  table.row({"step", "measured, ms", "speed alone", "predicted, ms", "error"});
  for (const HostStep& step : host.steps) {
    table.row({step.id, fmt::format("{:.1f}", step.measured_ms), fmt::format("{:.3f}", step.speed),
               fmt::format("{:.1f}", step.predicted_ms), signed_percent(step.predicted_ms / step.measured_ms - 1)});
  }
  return fmt::format("host_speed of {}: {:.3f}, fitted to these steps, which are no test of it\n{}", host.hardware,
                     host.speed, table.text());
}

std::string residuals_text(const Calibration& calibration) {
  std::string text = fmt::format("\n{:<20} {:<56} {:>12} {:>12} {:>9} {:>9}\n", "family", "where", "measured us",
                                 "fitted us", "error", "left out");
  for (std::size_t i = 0; i < calibration.observations.size(); ++i) {
    const Observation& o = calibration.observations[i];
    const double left_out = calibration.left_out.empty() ? kUnknown : calibration.left_out[i];
    text += fmt::format("{:<20} {:<56} {:>12.1f} {:>12.1f} {:>9} {:>9}\n", o.family, o.where, o.measured_us,
                        calibration.fitted[i], error_text(error_of(calibration.fitted[i], o)),
                        error_text(error_of(left_out, o)));
  }
  return text;
}

std::string benches_text(const Calibration& calibration, const MachineFacts& machine) {
  std::string text;
  for (const BenchTable& table : calibration.benches) {
    text += fmt::format("\n{}: {}, driver {}, toolkit {}, {} MHz under load (the profile says {})\n", table.file,
                        table.header.at("device"), table.header.at("driver"), table.header.at("toolkit"),
                        table.header.at("sm_clock_mhz"), machine.sm_clock_mhz);
    for (const std::string& skipped : table.skipped) text += fmt::format("skipped: {}\n", skipped);
    text += ceilings_text(table, machine) + contention_text(table, machine);
  }
  return text;
}

}  // namespace moeline
