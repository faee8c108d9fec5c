// What limits a measured run.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/cli/analysis_output.hpp"

namespace moeline {
namespace {

double ms(Time time) { return to_us(time) / 1e3; }

}  // namespace

std::string limits_of(const AnalysisReport& r, const RankAnalysis& rank) {
  const Breakdown& t = rank.times;
  std::vector<std::string> sentences;
  const double compute = ratio(t.compute, t.span);
  const GapSum waiting = sum_of(rank, GapCause::communication);
  const GapSum launches = sum_of(rank, GapCause::launch);
  const GapSum between = sum_of(rank, GapCause::between);
  constexpr double kMost = 0.9;
  const Time exposed_or_idle = t.exposed + t.idle;
  std::string verdict = "Nothing alone limits the run";
  if (compute >= kMost) {
    verdict = "The run is compute-bound";
  } else if (2 * t.exposed > exposed_or_idle && ratio(t.exposed, t.span) > 1 - kMost) {
    verdict = "The run is bound by communication";
  } else if (2 * launches.sum > exposed_or_idle) {
    verdict = "The run is launch-bound";
  } else if (ratio(t.idle, t.span) > 1 - kMost) {
    verdict = "The GPU idles";
  }
  sentences.push_back(
      fmt::format("{}: kernels that compute run for {:.1f} % of the span of {:.3f} ms, and {:.1f} % of "
                  "the {:.3f} ms of communication run beside them.",
                  verdict, 100 * compute, ms(t.span), 100 * t.overlap_fraction(), ms(t.communication)));
  if (r.counterfactuals) {
    const Counterfactuals& c = *r.counterfactuals;
    const auto change = [&](Time span) { return 100 * (ratio(span, c.replay) - 1); };
    sentences.push_back(
        fmt::format("Replayed with free communication it takes {:+.1f} %, without gaps before kernels "
                    "{:+.1f} %.",
                    change(c.no_communication), change(c.no_gaps)));
    if (c.transfer_knee > 0) {
      sentences.push_back(
          fmt::format("Without barriers, transfers could take {:.2f} times as long before the span "
                      "grows by 1 %.",
                      c.transfer_knee));
    }
  }
  if (waiting.count > 0) {
    const auto longest = std::find_if(rank.gaps.begin(), rank.gaps.end(),
                                      [](const Gap& gap) { return gap.cause == GapCause::communication; });
    sentences.push_back(
        fmt::format("Compute waits for communication {} times, {:.0f} us in all, longest {:.0f} us "
                    "before {}, for {}.",
                    waiting.count, to_us(waiting.sum), to_us(longest->length), place_name(*r.measured, longest->event),
                    place_name(*r.measured, longest->waited_for)));
  }
  sentences.push_back(fmt::format("{} gaps between kernels take {:.0f} us, {} waits for launches {:.0f} us.",
                                  between.count, to_us(between.sum), launches.count, to_us(launches.sum)));
  const auto most = std::find_if(rank.classes.begin(), rank.classes.end(), [](const ClassUse& use) {
    return !is_communication(use.kernel_class) && use.kernel_class != KernelClass::copy;
  });
  if (most != rank.classes.end()) {
    sentences.push_back(fmt::format("Most of the compute time, {:.1f} %, is {}.", 100 * ratio(most->busy, t.compute),
                                    name_of(most->kernel_class)));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

}  // namespace moeline
