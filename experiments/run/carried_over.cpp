#include "experiments/run/carried_over.hpp"

#include <fmt/format.h>

#include "experiments/run/run_metrics.hpp"

namespace moeline {
namespace {

// A mixed step has not been tried, and neither has training.
std::string steps_of(const Run& run) {
  if (decodes(run) == prefills(run)) return "";
  return decodes(run) ? "decode step" : "prefill step";
}

}  // namespace

std::optional<CarriedOver> carried_over(const Run& run) {
  constexpr double kMost = 0.5;
  const double share = carried_over_share(run);
  if (share <= kMost) return std::nullopt;
  CarriedOver carried{
      .share = share, .kin = kin_of(run.setup.machine.facts, run.setup.kernels().fitted_on), .steps = steps_of(run)};
  carried.error = left_out_error(carried.kin, carried.steps);
  return carried;
}

std::string short_band(const CarriedOver& c) {
  return fmt::format("such steps have been {:.0f} % off in the median, {:.0f} at 95 %", 100 * c.error->median_abs_error,
                     100 * c.error->p95_abs_error);
}

std::string carried_over_warning(const CarriedOver& c) {
  const std::string start = fmt::format(
      "{:.0f} % of the solo time is another machine's kernels at these facts ({}): ", 100 * c.share, name_of(c.kin));
  if (!c.error) return start + "no measured machine was left out and derived so, to say how far such steps may be off";
  return start + fmt::format(
                     "{} {}s of measured machines that were left out and derived so came within {:.0f} % at the "
                     "median, {:.0f} at 95 %, on average {:+.0f}, at worst {:+.0f}",
                     c.error->cases, c.steps, 100 * c.error->median_abs_error, 100 * c.error->p95_abs_error,
                     100 * c.error->mean_error, 100 * c.error->worst_error);
}

}  // namespace moeline
