// `moeline analyze` for people.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "experiments/cli/output/analysis_output.hpp"
#include "experiments/cli/output/named_kernels_output.hpp"

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
    case GapCause::after_last:
      return "after the last kernel";
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

// What HTA leaves out of its numbers; empty where it counts all.
std::string hta_text(const HtaBreakdown& hta) {
  if (hta.left_out() == 0) return "";
  return fmt::format(
      "HTA, by default, leaves out {} of {} GPU events where there are several profiler steps (here {}):\n"
      "{} launched in the last step, {} without a launch in the trace.\n",
      hta.left_out(), hta.left_out() + hta.events, hta.profiler_steps, hta.in_last_step, hta.without_launch);
}

std::string breakdown_table(const RankAnalysis& rank) {
  std::string text = fmt::format("{:<26} {:>12} {:>9} {:>14}\n", "us", "", "of span", "as HTA counts");
  const auto row = [&](const char* name, Time time, Time hta) {
    text += fmt::format("{:<26} {:>12.0f} {:>7.2f} % {:>14.0f}\n", name, to_us(time),
                        100 * ratio(time, rank.times.span), to_us(hta));
  };
  const Breakdown& hta = rank.hta.times;
  row("span", rank.times.span, hta.span);
  row("compute", rank.times.compute, hta.compute);
  row("non-compute, not idle", rank.times.non_compute(), hta.non_compute());
  row("idle", rank.times.idle, hta.idle);
  text += fmt::format("{:<26} {:>12.0f}\n", "communication", to_us(rank.times.communication));
  text += fmt::format("{:<26} {:>12.0f} {:>7.2f} % of communication\n", "  overlapped by compute",
                      to_us(rank.times.communication - rank.times.exposed), 100 * rank.times.overlap_fraction());
  text += fmt::format("{:<26} {:>12.0f}\n", "  exposed", to_us(rank.times.exposed));
  return text + hta_text(rank.hta) + "\n";
}

std::string cell(double value, double scale, const char* unit) {
  return value > 0 ? fmt::format("{:.0f}{}", value * scale, unit) : std::string("-");
}

// A share that is not nothing is not printed as nothing.
std::string share_cell(double share) {
  constexpr double kPrinted = 0.01;
  return share > 0 && share < kPrinted ? std::string("<1 %") : cell(share, 100, " %");
}

// Whole phases are of many classes, which the trace does not tell.
bool is_of_phases(const AnalysisReport& r, KernelClass c) {
  const std::vector<KernelName>& names = r.measured->trace.names;
  return c == KernelClass::unclassified &&
         std::any_of(names.begin(), names.end(), [](const KernelName& name) { return name.is_whole_phase(); });
}

std::string class_name(const AnalysisReport& r, KernelClass c) {
  return is_of_phases(r, c) ? "whole phases" : name_of(c);
}

std::string classes_table(const AnalysisReport& r, const RankAnalysis& rank) {
  std::string text = fmt::format("{:<14} {:>8} {:>12} {:>12} {:>9} {:>9} {:>8} {:>9} {:>9} {:>8}\n", "class", "kernels",
                                 "sum us", "union us", "TFLOP/s", "of peak", "of time", "GB/s", "of HBM", "of time");
  for (const ClassUse& use : rank.classes) {
    const Rates rates = rates_of(r, use);
    text +=
        fmt::format("{:<14} {:>8} {:>12.0f} {:>12.0f} {:>9} {:>9} {:>8} {:>9} {:>9} {:>8}\n",
                    class_name(r, use.kernel_class), use.count, to_us(use.sum), to_us(use.busy),
                    cell(rates.tflops, 1, ""), cell(rates.share_of_peak, 100, " %"), share_cell(rates.tflops_of_time),
                    cell(rates.GBps, 1, ""), share_cell(rates.share_of_memory), share_cell(rates.GBps_of_time));
  }
  if (!r.shapes) {
    text += "Shapes: of copies, NCCL and operators with \"Input Dims\" only; --scenario SCENARIO supplies the rest.\n";
  }
  return text + "\n";
}

struct PathWords {
  const char* name;
  const char* peak;  // what its rate is a share of
};

PathWords words_of(CopyPath path) {
  switch (path) {
    case CopyPath::in_memory:
      return {"copy in memory", "of HBM"};
    case CopyPath::set:
      return {"set", "of HBM"};
    case CopyPath::host_to_device:
      return {"host to device", "of its link"};
    case CopyPath::device_to_host:
      return {"device to host", "of its link"};
    case CopyPath::peer:
      return {"to another GPU", "of NVLink"};
    case CopyPath::unknown:
      break;
  }
  return {"copy", ""};
}

std::string copies_table(const AnalysisReport& r, const RankAnalysis& rank) {
  if (rank.copies.empty()) return "";
  std::string text =
      fmt::format("{:<14} {:>8} {:>12} {:>12} {:>9} {:>9}\n", "copies", "", "sum us", "union us", "GB/s", "of peak");
  for (const CopyUse& use : rank.copies) {
    const CopyRate rate = rate_of(r, use);
    const PathWords words = words_of(use.path);
    text += fmt::format("{:<14} {:>8} {:>12.0f} {:>12.0f} {:>9} {:>9}{}\n", words.name, use.count, to_us(use.sum),
                        to_us(use.busy), rate.GBps > 0 ? fmt::format("{:.1f}", rate.GBps) : std::string("-"),
                        share_cell(rate.share_of_peak),
                        rate.share_of_peak > 0 ? std::string(" ") + words.peak : std::string());
  }
  return text + "\n";
}

// Gaps and what the streams are busy are the span.
std::string gap_sums(const RankAnalysis& rank) {
  const auto row = [](const std::string& name, std::size_t gaps, Time sum) {
    return fmt::format("{:<34} {:>8} {:>12.0f} {:>10.2f}\n", name, gaps, to_us(sum),
                       gaps > 0 ? to_us(sum) / static_cast<double>(gaps) : 0);
  };
  std::string text =
      fmt::format("{:<34} {:>8} {:>12} {:>10}\n", "no kernel on the compute streams", "gaps", "sum us", "mean us");
  for (int i = 0; i < kGapCauses; ++i) {
    const GapSum sum = sum_of(rank, static_cast<GapCause>(i));
    if (sum.count > 0) text += row(describe(static_cast<GapCause>(i)), sum.count, sum.sum);
  }
  text += row("all gaps", rank.gaps.size(), rank.times.span - rank.compute_streams_busy);
  constexpr std::size_t kNamed = 4;
  const std::size_t streams = rank.compute_streams.size();
  std::string busy = streams == 1 ? "compute stream" : "compute streams";
  if (streams <= kNamed) busy += fmt::format(" {}", fmt::join(rank.compute_streams, ", "));
  return text + fmt::format("{:<43} {:>12.0f} of a span of {:.0f}\n", busy + " busy", to_us(rank.compute_streams_busy),
                            to_us(rank.times.span));
}

std::string gap_line(const Measured& m, const Gap& gap) {
  if (gap.cause == GapCause::after_last) {
    return fmt::format("  {:>9.0f} us {}, until the end of {}\n", to_us(gap.length), describe(gap.cause),
                       place_name(m, gap.event));
  }
  return fmt::format("  {:>9.0f} us before {}: {}{}\n", to_us(gap.length), place_name(m, gap.event),
                     describe(gap.cause), gap.waited_for >= 0 ? ", " + place_name(m, gap.waited_for) : std::string());
}

// Of a kernel whose launch the trace does not have, nobody can say that the host was late.
std::string launches_text(const RankAnalysis& rank) {
  if (rank.kernels_without_launch == 0) return "";
  return fmt::format(
      "{} of {} kernels have no recorded launch ({:.1f} %): their gaps are between kernels or, from {:.0f} us on,\n"
      "without a reason, even where the host was late.\n",
      rank.kernels_without_launch, rank.kernels,
      100.0 * static_cast<double>(rank.kernels_without_launch) / static_cast<double>(rank.kernels),
      static_cast<double>(kUnexplainedNs) / 1e3);
}

std::string gaps_table(const AnalysisReport& r, const RankAnalysis& rank) {
  constexpr std::size_t kShown = 8;
  std::string text = gap_sums(rank);
  for (std::size_t i = 0; i < std::min(kShown, rank.gaps.size()); ++i) {
    if (rank.gaps[i].cause != GapCause::between) text += gap_line(*r.measured, rank.gaps[i]);
  }
  return text + launches_text(rank) + "\n";
}

std::string list_of_steps(const AnalysisReport& r, const RankAnalysis& rank) {
  constexpr std::size_t kShown = 16;
  std::string text = fmt::format("{:>6} {:<48} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6}\n", "step", "name", "start us",
                                 "length us", "compute us", "exposed us", "idle us", "layers");
  for (std::size_t i = 0; i < std::min(kShown, rank.steps.size()); ++i) {
    const StepUse& s = rank.steps[i];
    text += fmt::format("{:>6} {:<48} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>6}\n", s.step.number,
                        short_phase_name(s.step.name), to_us(since_first(r, s.start)), to_us(s.times.span),
                        to_us(s.times.compute), to_us(s.times.exposed), to_us(s.times.idle), s.layers);
  }
  if (rank.steps.size() > kShown) text += fmt::format("... {} more\n", rank.steps.size() - kShown);
  std::vector<Interval> inside;
  for (const StepUse& s : rank.steps) inside.push_back({s.start, s.end});
  return text + fmt::format("{:.0f} us of the span lie in no step.\n\n",
                            to_us(rank.times.span - covered_by(std::move(inside))));
}

Time layer_length(const RankAnalysis& rank, std::size_t step) {
  Time sum{};
  for (const LayerWindow& w : rank.layers) {
    if (w.step == static_cast<std::int64_t>(step)) sum += w.end - w.start;
  }
  const auto layers = static_cast<std::int64_t>(rank.steps[step].layers);
  return layers > 0 ? sum / layers : Time::zero();
}

std::string list_of_kinds(const RankAnalysis& rank) {
  constexpr std::size_t kShown = 12;
  std::string text = fmt::format("{:>6} {:<48} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "steps", "of one kind",
                                 "median us", "min us", "max us", "layers", "layer us");
  for (std::size_t i = 0; i < std::min(kShown, rank.step_kinds.size()); ++i) {
    const StepKind& kind = rank.step_kinds[i];
    const auto length = [&](std::size_t step) { return rank.steps[step].times.span; };
    const auto [least, most] = std::minmax_element(kind.steps.begin(), kind.steps.end(),
                                                   [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
    text += fmt::format("{:>6} {:<48} {:>10.0f} {:>10.0f} {:>10.0f} {:>10} {:>10.1f}\n", kind.steps.size(),
                        short_phase_name(kind.kind), to_us(length(kind.median)), to_us(length(*least)),
                        to_us(length(*most)), rank.steps[kind.median].layers, to_us(layer_length(rank, kind.median)));
  }
  if (rank.step_kinds.size() > kShown) text += fmt::format("... {} more\n", rank.step_kinds.size() - kShown);
  return text + "\n";
}

std::string rows_of_layers(const std::vector<LayerWindow>& layers, const char* heading) {
  constexpr std::size_t kShown = 16;
  std::string text = fmt::format("{:>5} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", heading, "length us",
                                 "compute us", "comm us", "exposed us", "barrier us", "transfer us");
  for (std::size_t i = 0; i < std::min(kShown, layers.size()); ++i) {
    const LayerWindow& w = layers[i];
    text += fmt::format("{:>5} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f}\n", w.layer,
                        to_us(w.end - w.start), to_us(w.times.compute), to_us(w.times.communication),
                        to_us(w.times.exposed), to_us(w.barrier), to_us(w.transfer));
  }
  if (layers.size() > kShown) text += fmt::format("... {} more\n", layers.size() - kShown);
  return text + "\n";
}

// Of the kind of step that takes longest in all and has layers, those of its median.
std::string layers_in_steps(const RankAnalysis& rank) {
  const auto kind = std::find_if(rank.step_kinds.begin(), rank.step_kinds.end(),
                                 [&](const StepKind& k) { return rank.steps[k.median].layers > 0; });
  if (kind == rank.step_kinds.end()) return "";
  std::vector<LayerWindow> layers;
  std::copy_if(rank.layers.begin(), rank.layers.end(), std::back_inserter(layers),
               [&](const LayerWindow& w) { return w.step == static_cast<std::int64_t>(kind->median); });
  return fmt::format("layers of step {}, the median of {} {}, found by repetition:\n",
                     rank.steps[kind->median].step.number, kind->steps.size(), short_phase_name(kind->kind)) +
         rows_of_layers(layers, "layer");
}

// One step of the profiler's around everything says nothing.
bool steps_matter(const RankAnalysis& rank) {
  return rank.steps.size() > 1 || (rank.steps.size() == 1 && rank.step_kinds.front().kind != "ProfilerStep");
}

std::string steps_table(const AnalysisReport& r, const RankAnalysis& rank) {
  return steps_matter(rank) ? list_of_steps(r, rank) + list_of_kinds(rank) : "";
}

std::string layers_table(const RankAnalysis& rank) {
  if (rank.layers.empty()) return "";
  if (rank.layers.front().step >= 0) return layers_in_steps(rank);
  return rows_of_layers(rank.layers, rank.layers_by_repetition ? "rep." : "layer");
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
                        short_phase_name(t.times.phase), to_us(since_first(r, t.times.start)), to_us(t.times.barrier),
                        to_us(t.times.transfer), to_us(t.other), GBps > 0 ? fmt::format("{:.1f}", GBps) : "-");
  }
  if (rank.transfers.size() > kShown) text += fmt::format("... {} more\n", rank.transfers.size() - kShown);
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

double ms(Time time) { return to_us(time) / 1e3; }

std::string words_for(const std::string& what) {
  if (what == "host") return "its host";
  if (what == "gaps") return "pauses between kernels and what they waited for";
  return what;
}

// Time in which nothing computes, by what there is instead.
struct Lack {
  std::string name;
  Time time{};
};

// Where nothing is replayed.
std::string verdict_by_time(const RankAnalysis& rank) {
  constexpr double kMost = 0.9;
  const Breakdown& t = rank.times;
  if (ratio(t.compute, t.span) >= kMost) return "The run computes nearly all of the time";
  const std::vector<Lack> lacks = {
      {"exposed communication", t.exposed}, {"copies", t.non_compute() - t.exposed}, {"an idle GPU", t.idle}};
  const Lack& worst =
      *std::max_element(lacks.begin(), lacks.end(), [](const Lack& a, const Lack& b) { return a.time < b.time; });
  return fmt::format("The run computes, but for {} in {:.1f} % of the time", worst.name,
                     100 * ratio(worst.time, t.span));
}

// What a replay without it gains most by is what binds: no sum over kernels says so.
std::string verdict_of(const AnalysisReport& r, const RankAnalysis& rank) {
  if (!r.counterfactuals) return verdict_by_time(rank);
  const Without* binding = most_gained(*r.counterfactuals);
  if (binding == nullptr) return "The run is bound by no single thing";
  const Counterfactuals& c = *r.counterfactuals;
  const auto change = [&](const Without& without) { return 100 * (ratio(without.span, c.replay) - 1); };
  if (c.without_two) {
    return fmt::format("The run is bound by {} together: without both it takes {:+.1f} %, without {} alone {:+.1f} %",
                       c.without_two->what, change(*c.without_two), binding->what, change(*binding));
  }
  constexpr double kBinds = -10;  // percent
  if (change(*binding) > kBinds) {
    return fmt::format("The run is bound by no single thing: without {}, the most, it takes {:+.1f} %", binding->what,
                       change(*binding));
  }
  return fmt::format("The run is bound by {}: without, it takes {:+.1f} %", words_for(binding->what), change(*binding));
}

std::string busy_sentence(const AnalysisReport& r, const RankAnalysis& rank) {
  const Breakdown& t = rank.times;
  std::string text = fmt::format("{}. Kernels that compute run for {:.1f} % of the span of {:.3f} ms",
                                 verdict_of(r, rank), 100 * ratio(t.compute, t.span), ms(t.span));
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
  text += fmt::format(" without pauses before kernels {:+.1f} %; kernels keep the contention they were measured with.",
                      change(c.no_gaps));
  if (c.transfer_knee > 0) {
    text += fmt::format(" {}ransfers could take {:.2f} times as long before the span grows by 1 %.",
                        c.without_barriers ? "Without barriers, t" : "T", c.transfer_knee);
  }
  return text;
}

}  // namespace

std::string limits_of(const AnalysisReport& r, const RankAnalysis& rank) {
  std::vector<std::string> sentences = {busy_sentence(r, rank)};
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
  const GapSum host = sum_of(rank, GapCause::host_wait);
  sentences.push_back(
      fmt::format("Gaps between kernels take {:.0f} us, waits for launches {:.0f} us, for a host that had waited for "
                  "the GPU {:.0f} us.",
                  to_us(between.sum), to_us(launches.sum), to_us(host.sum)));
  const auto most = std::find_if(rank.classes.begin(), rank.classes.end(), [](const ClassUse& use) {
    return !is_communication(use.kernel_class) && use.kernel_class != KernelClass::copy;
  });
  if (most != rank.classes.end() && !is_of_phases(r, most->kernel_class)) {
    sentences.push_back(fmt::format("Most of the compute time, {:.1f} %, is {}.",
                                    100 * ratio(most->busy, rank.times.compute), name_of(most->kernel_class)));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::string to_table(const AnalysisReport& r) {
  std::size_t steps = 0;
  for (const RankAnalysis& rank : r.analysis.ranks) steps += steps_matter(rank) ? rank.steps.size() : 0;
  std::string text = fmt::format("{}: {} GPU events, {} of them in phases{}{}{}\n", r.file, r.analysis.gpu_events,
                                 r.analysis.attributed, steps > 0 ? fmt::format(", {} steps", steps) : "",
                                 r.measured->trace.device.empty() ? "" : ", ", one_line(r.measured->trace.device));
  text += machine_line(r);
  for (const RankAnalysis& rank : r.analysis.ranks) {
    text += fmt::format("\nrank {}\n", rank.rank) + wrapped(limits_of(r, rank)) + "\n" + breakdown_table(rank) +
            streams_table(rank) + classes_table(r, rank) + copies_table(r, rank) + gaps_table(r, rank) +
            steps_table(r, rank) + layers_table(rank) + transfers_table(r, rank);
  }
  text += unclassified_text(r);
  if (r.kernels) text += to_table(*r.kernels);
  for (const std::string& note : r.measured->trace.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace moeline
