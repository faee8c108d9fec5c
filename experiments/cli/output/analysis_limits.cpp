// What limits a measured run.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/cli/output/analysis_output.hpp"

namespace moeline {
namespace {

double ms(Time time) { return to_us(time) / 1e3; }

// Time in which nothing computes, by what there is instead.
struct Lack {
  std::string name;
  Time time{};
};

std::string verdict_of(const RankAnalysis& rank) {
  constexpr double kMost = 0.9;
  constexpr double kBinds = 0.25;
  const Breakdown& t = rank.times;
  if (ratio(t.compute, t.span) >= kMost) return "The run is compute-bound";
  const Time launches = sum_of(rank, GapCause::launch).sum + sum_of(rank, GapCause::host_wait).sum;
  const Time idle_for_host = std::min(launches, t.idle);
  const std::vector<Lack> lacks = {{"communication", t.exposed},
                                   {"copies", t.non_compute() - t.exposed},
                                   {"launches", idle_for_host},
                                   {"an idle GPU", t.idle - idle_for_host}};
  const Lack& worst =
      *std::max_element(lacks.begin(), lacks.end(), [](const Lack& a, const Lack& b) { return a.time < b.time; });
  const double share = ratio(worst.time, t.span);
  if (share >= kBinds) return fmt::format("The run is bound by {}", worst.name);
  return fmt::format("The run computes most of the time, and is held up by {} for {:.1f} %", worst.name, 100 * share);
}

std::string busy_sentence(const RankAnalysis& rank) {
  const Breakdown& t = rank.times;
  std::string text = fmt::format("{}: kernels that compute run for {:.1f} % of the span of {:.3f} ms", verdict_of(rank),
                                 100 * ratio(t.compute, t.span), ms(t.span));
  if (t.communication > Time::zero()) {
    text += fmt::format(", and {:.1f} % of the {:.3f} ms of communication run beside them", 100 * t.overlap_fraction(),
                        ms(t.communication));
  }
  return text + ".";
}

std::string replay_sentence(const Counterfactuals& c, const RankAnalysis& rank) {
  const auto change = [&](Time span) { return c.replay > Time::zero() ? 100 * (ratio(span, c.replay) - 1) : 0; };
  std::string text = "Replayed";
  if (rank.times.communication > Time::zero()) {
    text += fmt::format(" with free communication it takes {:+.1f} %,", change(c.no_communication));
  }
  if (c.no_host) text += fmt::format(" with a host that takes no time {:+.1f} %,", change(*c.no_host));
  text += fmt::format(" without gaps between kernels {:+.1f} %; kernels keep the contention they were measured with.",
                      change(c.no_gaps));
  if (c.transfer_knee > 0) {
    text += fmt::format(" {}ransfers could take {:.2f} times as long before the span grows by 1 %.",
                        c.without_barriers ? "Without barriers, t" : "T", c.transfer_knee);
  }
  return text;
}

}  // namespace

std::string limits_of(const AnalysisReport& r, const RankAnalysis& rank) {
  std::vector<std::string> sentences = {busy_sentence(rank)};
  if (r.counterfactuals) sentences.push_back(replay_sentence(*r.counterfactuals, rank));
  const GapSum waiting = sum_of(rank, GapCause::communication);
  if (waiting.count > 0) {
    const auto longest = std::find_if(rank.gaps.begin(), rank.gaps.end(),
                                      [](const Gap& gap) { return gap.cause == GapCause::communication; });
    sentences.push_back(
        fmt::format("Compute waits for communication {} times, {:.0f} us in all, longest {:.0f} us before {}, for {}.",
                    waiting.count, to_us(waiting.sum), to_us(longest->length), place_name(*r.measured, longest->event),
                    place_name(*r.measured, longest->waited_for)));
  }
  const GapSum between = sum_of(rank, GapCause::between);
  const GapSum launches = sum_of(rank, GapCause::launch);
  sentences.push_back(fmt::format("{} gaps between kernels take {:.0f} us, {} waits for launches {:.0f} us.",
                                  between.count, to_us(between.sum), launches.count, to_us(launches.sum)));
  const auto most = std::find_if(rank.classes.begin(), rank.classes.end(), [](const ClassUse& use) {
    return !is_communication(use.kernel_class) && use.kernel_class != KernelClass::copy;
  });
  if (most != rank.classes.end()) {
    sentences.push_back(fmt::format("Most of the compute time, {:.1f} %, is {}.",
                                    100 * ratio(most->busy, rank.times.compute), name_of(most->kernel_class)));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

}  // namespace moeline
