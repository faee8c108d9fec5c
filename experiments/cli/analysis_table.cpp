// `moeline analyze` for people.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "experiments/cli/analysis_output.hpp"

namespace moeline {
namespace {

std::string describe(GapCause cause) {
  switch (cause) {
    case GapCause::launch:
      return "launch-bound";
    case GapCause::host_wait:
      return "host waited for the GPU";
    case GapCause::communication:
      return "waiting for communication";
    case GapCause::other_stream:
      return "waiting for another stream";
    case GapCause::between:
      return "between kernels";
    case GapCause::unexplained:
      break;
  }
  return "without a reason in the trace";
}

// The busiest, in the order in which they stand.
std::vector<StreamBreakdown> busiest(std::vector<StreamBreakdown> streams, std::size_t most) {
  if (streams.size() <= most) return streams;
  std::stable_sort(streams.begin(), streams.end(), [](const StreamBreakdown& a, const StreamBreakdown& b) {
    return a.times.idle < b.times.idle;  // of the same span
  });
  streams.resize(most);
  std::sort(streams.begin(), streams.end(),
            [](const StreamBreakdown& a, const StreamBreakdown& b) { return a.stream < b.stream; });
  return streams;
}

std::string streams_table(const RankAnalysis& rank) {
  constexpr std::size_t kShown = 16;
  std::string text = fmt::format("{:>8} {:>8} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "stream", "events", "compute",
                                 "comm", "overlapped", "exposed", "idle us");
  for (const StreamBreakdown& s : busiest(rank.streams, kShown)) {
    text += fmt::format("{:>8} {:>8} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f}\n", s.stream, s.events,
                        to_us(s.times.compute), to_us(s.times.communication),
                        to_us(s.times.communication - s.times.exposed), to_us(s.times.exposed), to_us(s.times.idle));
  }
  if (rank.streams.size() > kShown) text += fmt::format("... {} more, less busy\n", rank.streams.size() - kShown);
  return text + "\n";
}

std::string breakdown_table(const RankAnalysis& rank) {
  std::string text = fmt::format("{:<26} {:>12} {:>9} {:>14}\n", "us", "", "of span", "as HTA counts");
  const auto row = [&](const char* name, Time time, Time hta) {
    text += fmt::format("{:<26} {:>12.0f} {:>7.2f} % {:>14.0f}\n", name, to_us(time),
                        100 * ratio(time, rank.times.span), to_us(hta));
  };
  row("span", rank.times.span, rank.hta.span);
  row("compute", rank.times.compute, rank.hta.compute);
  row("non-compute, not idle", rank.times.non_compute(), rank.hta.non_compute());
  row("idle", rank.times.idle, rank.hta.idle);
  text += fmt::format("{:<26} {:>12.0f}\n", "communication", to_us(rank.times.communication));
  text += fmt::format("{:<26} {:>12.0f} {:>7.2f} % of communication\n", "  overlapped by compute",
                      to_us(rank.times.communication - rank.times.exposed), 100 * rank.times.overlap_fraction());
  text += fmt::format("{:<26} {:>12.0f}\n\n", "  exposed", to_us(rank.times.exposed));
  return text;
}

std::string classes_table(const AnalysisReport& r, const RankAnalysis& rank) {
  std::string text = fmt::format("{:<14} {:>8} {:>12} {:>12} {:>9} {:>9} {:>9} {:>9}\n", "class", "kernels", "sum us",
                                 "union us", "TFLOP/s", "of peak", "GB/s", "of HBM");
  const auto cell = [](double value, double scale, const char* unit) {
    return value > 0 ? fmt::format("{:.0f}{}", value * scale, unit) : std::string("-");
  };
  for (const ClassUse& use : rank.classes) {
    const Rates rates = rates_of(r, use);
    text +=
        fmt::format("{:<14} {:>8} {:>12.0f} {:>12.0f} {:>9} {:>9} {:>9} {:>9}\n", name_of(use.kernel_class), use.count,
                    to_us(use.sum), to_us(use.busy), cell(rates.tflops, 1, ""), cell(rates.share_of_peak, 100, " %"),
                    cell(rates.GBps, 1, ""), cell(rates.share_of_memory, 100, " %"));
  }
  if (!r.shapes) {
    text += "Shapes: of copies, NCCL and operators with \"Input Dims\" only; --scenario SCENARIO supplies the rest.\n";
  }
  return text + "\n";
}

std::string gaps_table(const AnalysisReport& r, const RankAnalysis& rank) {
  constexpr std::size_t kShown = 8;
  std::string text =
      fmt::format("{:<34} {:>8} {:>12} {:>10}\n", "no kernel on the compute streams", "gaps", "sum us", "mean us");
  for (int i = 0; i < kGapCauses; ++i) {
    const GapSum sum = sum_of(rank, static_cast<GapCause>(i));
    if (sum.count == 0) continue;
    text += fmt::format("{:<34} {:>8} {:>12.0f} {:>10.2f}\n", describe(static_cast<GapCause>(i)), sum.count,
                        to_us(sum.sum), to_us(sum.sum) / static_cast<double>(sum.count));
  }
  for (std::size_t i = 0; i < std::min(kShown, rank.gaps.size()); ++i) {
    const Gap& gap = rank.gaps[i];
    if (gap.cause == GapCause::between) continue;
    text += fmt::format("  {:>9.0f} us before {}: {}{}\n", to_us(gap.length), place_name(*r.measured, gap.event),
                        describe(gap.cause),
                        gap.waited_for >= 0 ? ", " + place_name(*r.measured, gap.waited_for) : std::string());
  }
  return text + "\n";
}

std::string transfers_table(const AnalysisReport& r, const RankAnalysis& rank) {
  if (rank.transfers.empty()) return "";
  constexpr std::size_t kShown = 40;
  std::string text = fmt::format("{:>5} {:<14} {:>12} {:>12} {:>12} {:>12} {:>9}\n", "layer", "communication",
                                 "start us", "barrier us", "transfer us", "other us", "GB/s");
  for (std::size_t i = 0; i < std::min(kShown, rank.transfers.size()); ++i) {
    const Transfer& t = rank.transfers[i];
    const double GBps = bandwidth_GBps(r, rank, t);
    text += fmt::format("{:>5} {:<14} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>9}\n", t.times.layer,
                        short_phase_name(t.times.phase), to_us(t.times.start), to_us(t.times.barrier),
                        to_us(t.times.transfer), to_us(t.other), GBps > 0 ? fmt::format("{:.1f}", GBps) : "-");
  }
  if (rank.transfers.size() > kShown) text += fmt::format("... {} more\n", rank.transfers.size() - kShown);
  return text + "\n";
}

std::string layers_table(const RankAnalysis& rank) {
  if (rank.layers.empty()) return "";
  constexpr std::size_t kShown = 16;
  std::string text =
      fmt::format("{:>5} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", rank.layers_by_repetition ? "rep." : "layer",
                  "length us", "compute us", "comm us", "exposed us", "barrier us", "transfer us");
  for (std::size_t i = 0; i < std::min(kShown, rank.layers.size()); ++i) {
    const LayerWindow& w = rank.layers[i];
    text += fmt::format("{:>5} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f}\n", w.layer,
                        to_us(w.end - w.start), to_us(w.times.compute), to_us(w.times.communication),
                        to_us(w.times.exposed), to_us(w.barrier), to_us(w.transfer));
  }
  if (rank.layers.size() > kShown) text += fmt::format("... {} more\n", rank.layers.size() - kShown);
  return text + "\n";
}

std::string unclassified_text(const AnalysisReport& r) {
  if (r.analysis.unclassified.empty()) return "";
  constexpr std::size_t kShown = 8;
  Time sum{};
  for (const UnclassifiedKernel& kernel : r.analysis.unclassified) sum += kernel.sum;
  std::string text = fmt::format("{} kernel names are unclassified, {:.0f} us in all, taken for compute:\n",
                                 r.analysis.unclassified.size(), to_us(sum));
  for (std::size_t i = 0; i < std::min(kShown, r.analysis.unclassified.size()); ++i) {
    const UnclassifiedKernel& kernel = r.analysis.unclassified[i];
    text += fmt::format("  {:>9.0f} us in {} x {}\n", to_us(kernel.sum), kernel.count, short_kernel_name(kernel.name));
  }
  return text + "\n";
}

std::string wrapped(const std::string& paragraph) {
  constexpr std::size_t kWidth = 118;
  std::string text;
  std::size_t column = 0;
  for (std::size_t from = 0; from < paragraph.size();) {
    const std::size_t blank = std::min(paragraph.find(' ', from), paragraph.size());
    if (column + (blank - from) > kWidth) {
      text.back() = '\n';
      column = 0;
    }
    text += paragraph.substr(from, blank - from) + " ";
    column += blank - from + 1;
    from = blank + 1;
  }
  text.back() = '\n';
  return text;
}

std::string machine_line(const AnalysisReport& r) {
  if (r.machine) return fmt::format("machine: {}\n", r.machine->name);
  const std::string device = one_line(r.measured->trace.device);
  return fmt::format("machine: unknown, {}; --hardware names one, for shares of its peaks\n",
                     device.empty() ? "the trace names no device" : "no profile is that of '" + device + "'");
}

}  // namespace

std::string to_table(const AnalysisReport& r) {
  std::string text =
      fmt::format("{}: {} GPU events, {} of them in phases{}{}\n", r.file, r.analysis.gpu_events, r.analysis.attributed,
                  r.measured->trace.device.empty() ? "" : ", ", one_line(r.measured->trace.device));
  text += machine_line(r);
  for (const RankAnalysis& rank : r.analysis.ranks) {
    text += fmt::format("\nrank {}\n", rank.rank) + wrapped(limits_of(r, rank)) + "\n" + breakdown_table(rank) +
            streams_table(rank) + classes_table(r, rank) + gaps_table(r, rank) + layers_table(rank) +
            transfers_table(r, rank);
  }
  text += unclassified_text(r);
  for (const std::string& note : r.measured->trace.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace moeline
