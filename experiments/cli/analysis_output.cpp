#include "experiments/cli/analysis_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/cli/json.hpp"

namespace moeline {
namespace {

double ms(Time time) { return to_us(time) / 1e3; }

double share(Time part, Time whole) {
  return whole > Time::zero() ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

double per_second(double amount, Time time) { return time > Time::zero() ? amount / (to_us(time) / 1e6) : 0; }

// What is known of the work of a class, and the time it took.
struct Rates {
  double tflops = 0;       // achieved
  double flops_share = 0;  // of the time that the peaks would take
  double GBps = 0;
  double bytes_share = 0;  // of the memory's bandwidth
};

Rates rates_of(const AnalysisReport& r, const ClassUse& use) {
  constexpr double kTera = 1e12;
  constexpr double kGiga = 1e9;
  Rates rates;
  const ClassShapes* shapes = r.shapes.empty() ? nullptr : &r.shapes[static_cast<std::size_t>(use.kernel_class)];
  const double flops = shapes != nullptr ? shapes->fp8_flops + shapes->bf16_flops : use.flops;
  const double bytes = shapes != nullptr ? shapes->bytes : use.bytes;
  const Time flops_time = shapes != nullptr ? use.busy : use.flops_time;
  const Time bytes_time = shapes != nullptr ? use.busy : use.bytes_time;
  rates.tflops = per_second(flops, flops_time) / kTera;
  rates.GBps = per_second(bytes, bytes_time) / kGiga;
  if (!r.machine) return rates;
  const MachineFacts& facts = r.machine->facts;
  if (shapes != nullptr && flops > 0) {
    const double at_peak_s =
        shapes->fp8_flops / (facts.fp8_tflops * kTera) + shapes->bf16_flops / (facts.bf16_tflops * kTera);
    rates.flops_share = at_peak_s / (to_us(flops_time) / 1e6);
  }
  rates.bytes_share = rates.GBps / facts.hbm_GBps;
  return rates;
}

std::string kernel_name(const Measured& m, std::int64_t event) {
  return std::string(subject_of(m.trace.name(m.trace.gpu_events[static_cast<std::size_t>(event)])).substr(0, 60));
}

std::string place_name(const Measured& m, std::int64_t event) {
  const std::int32_t phase = m.meaning.places[static_cast<std::size_t>(event)].phase;
  if (phase == kNoPhase) return kernel_name(m, event);
  const TracePhase& p = m.meaning.phases[static_cast<std::size_t>(phase)];
  return fmt::format("{} of layer {}", p.name, p.place.layer);
}

struct CauseSum {
  std::size_t count = 0;
  Time sum{};
};

CauseSum sum_of(const RankAnalysis& rank, GapCause cause) {
  CauseSum sum;
  for (const Gap& gap : rank.gaps) {
    if (gap.cause != cause) continue;
    ++sum.count;
    sum.sum += gap.length;
  }
  return sum;
}

std::string describe(GapCause cause) {
  switch (cause) {
    case GapCause::launch:
      return "launch-bound";
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

void add_times(const Breakdown& times, Json& json) {
  json.add("span_us", to_us(times.span)).add("idle_us", to_us(times.idle)).add("compute_us", to_us(times.compute));
  json.add("non_compute_us", to_us(times.non_compute()));
}

void add_communication(const Breakdown& times, Time exposed, Json& json) {
  json.add("comm_us", to_us(times.communication)).add("overlap_fraction", times.overlap_fraction(), 5);
  json.add("exposed_comm_us", to_us(exposed));
}

void add_gaps(const AnalysisReport& r, const RankAnalysis& rank, Json& json) {
  constexpr std::size_t kListed = 20;
  json.open("gaps");
  for (int i = 0; i < kGapCauses; ++i) {
    const CauseSum sum = sum_of(rank, static_cast<GapCause>(i));
    json.open(name_of(static_cast<GapCause>(i))).add("count", sum.count).add("us", to_us(sum.sum)).close();
  }
  json.open_list("longest");
  for (std::size_t i = 0; i < std::min(kListed, rank.gaps.size()); ++i) {
    const Gap& gap = rank.gaps[i];
    json.open().add("cause", name_of(gap.cause)).add("us", to_us(gap.length));
    json.add("before", place_name(*r.measured, gap.event)).add("kernel", kernel_name(*r.measured, gap.event));
    if (gap.waited_for >= 0) json.add("waited_for", place_name(*r.measured, gap.waited_for));
    json.close();
  }
  json.close_list().close();
}

void add_classes(const AnalysisReport& r, const RankAnalysis& rank, Json& json) {
  json.open_list("classes");
  for (const ClassUse& use : rank.classes) {
    const Rates rates = rates_of(r, use);
    json.open().add("class", name_of(use.kernel_class)).add("count", use.count).add("sum_us", to_us(use.sum));
    json.add("busy_us", to_us(use.busy));
    if (rates.tflops > 0) json.add("tflops", rates.tflops);
    if (rates.flops_share > 0) json.add("share_of_peak", rates.flops_share, 4);
    if (rates.GBps > 0) json.add("GBps", rates.GBps);
    if (rates.bytes_share > 0) json.add("share_of_memory", rates.bytes_share, 4);
    json.close();
  }
  json.close_list();
}

void add_phase(const PhaseTimes& phase, Json& json) {
  json.open().add("rank", phase.rank).add("micro_batch", phase.micro_batch).add("layer", phase.layer);
  json.add("phase", phase.phase).add("stream", phase.stream);
  json.add("start_us", to_us(phase.start)).add("end_us", to_us(phase.end)).add("busy_us", to_us(phase.busy));
  if (phase.is_communication()) {
    json.add("barrier_us", to_us(phase.barrier)).add("transfer_us", to_us(phase.transfer));
  }
  json.close();
}

void add_layers(const RankAnalysis& rank, Json& json) {
  json.flag("layers_by_repetition", rank.layers_by_repetition).open_list("layers");
  for (const LayerWindow& w : rank.layers) {
    json.open().add("layer", w.layer).add("start_us", to_us(w.start)).add("end_us", to_us(w.end));
    add_times(w.times, json);
    add_communication(w.times, w.times.non_compute(), json);
    json.add("barrier_us", to_us(w.barrier)).add("transfer_us", to_us(w.transfer)).close();
  }
  json.close_list();
}

void add_rank(const AnalysisReport& r, const RankAnalysis& rank, Json& json) {
  json.open().add("rank", rank.rank);
  add_times(rank.times, json);
  add_communication(rank.times, rank.times.non_compute(), json);
  json.open("hta");
  add_times(rank.hta, json);
  json.close().open_list("streams");
  for (const StreamBreakdown& s : rank.streams) {
    json.open().add("stream", s.stream).add("events", s.events).add("compute_us", to_us(s.times.compute));
    add_communication(s.times, s.times.exposed, json);
    json.add("idle_us", to_us(s.times.idle)).close();
  }
  json.close_list();
  add_classes(r, rank, json);
  add_gaps(r, rank, json);
  add_layers(rank, json);
  json.add("limits", limits_of(r, rank)).close();
}

std::string streams_table(const RankAnalysis& rank) {
  std::string text = fmt::format("{:>8} {:>8} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "stream", "events", "compute",
                                 "comm", "overlapped", "exposed", "idle us");
  for (const StreamBreakdown& s : rank.streams) {
    text += fmt::format("{:>8} {:>8} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f}\n", s.stream, s.events,
                        to_us(s.times.compute), to_us(s.times.communication),
                        to_us(s.times.communication - s.times.exposed), to_us(s.times.exposed), to_us(s.times.idle));
  }
  return text + "\n";
}

std::string breakdown_table(const RankAnalysis& rank) {
  std::string text = fmt::format("{:<26} {:>12} {:>9} {:>14}\n", "us", "", "of span", "as HTA counts");
  const auto row = [&](const char* name, Time time, Time hta) {
    text += fmt::format("{:<26} {:>12.0f} {:>7.2f} % {:>14.0f}\n", name, to_us(time),
                        100 * share(time, rank.times.span), to_us(hta));
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
                    to_us(use.sum), to_us(use.busy), cell(rates.tflops, 1, ""), cell(rates.flops_share, 100, " %"),
                    cell(rates.GBps, 1, ""), cell(rates.bytes_share, 100, " %"));
  }
  if (r.shapes.empty()) {
    text += "Shapes: of copies, NCCL and operators with \"Input Dims\" only; --scenario SCENARIO supplies the rest.\n";
  }
  return text + "\n";
}

std::string gaps_table(const AnalysisReport& r, const RankAnalysis& rank) {
  constexpr std::size_t kShown = 8;
  std::string text =
      fmt::format("{:<34} {:>8} {:>12} {:>10}\n", "no kernel on the compute streams", "gaps", "sum us", "mean us");
  for (int i = 0; i < kGapCauses; ++i) {
    const CauseSum sum = sum_of(rank, static_cast<GapCause>(i));
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
    const double bytes = t.bytes;
    text += fmt::format("{:>5} {:<14} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>9}\n", t.times.layer, t.times.phase,
                        to_us(t.times.start), to_us(t.times.barrier), to_us(t.times.transfer), to_us(t.other),
                        bytes > 0 ? fmt::format("{:.1f}", per_second(bytes, t.times.transfer) / 1e9) : "-");
  }
  if (rank.transfers.size() > kShown) text += fmt::format("... {} more\n", rank.transfers.size() - kShown);
  for (const KernelClass c : {KernelClass::dispatch, KernelClass::combine}) {
    const double wire = r.shapes.empty() ? 0 : r.shapes[static_cast<std::size_t>(c)].wire_bytes;
    const auto use = std::find_if(rank.classes.begin(), rank.classes.end(),
                                  [&](const ClassUse& each) { return each.kernel_class == c; });
    if (wire <= 0 || use == rank.classes.end()) continue;
    text += fmt::format("{}: {:.1f} GB/s to other nodes, each way, by the scenario's expected traffic\n", name_of(c),
                        per_second(wire, use->sum) / 1e9);
  }
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
    text += fmt::format("  {:>9.0f} us in {} x {}\n", to_us(kernel.sum), kernel.count,
                        std::string(subject_of(kernel.name).substr(0, 80)));
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

}  // namespace

std::string limits_of(const AnalysisReport& r, const RankAnalysis& rank) {
  const Breakdown& t = rank.times;
  std::vector<std::string> sentences;
  const double compute = share(t.compute, t.span);
  const CauseSum waiting = sum_of(rank, GapCause::communication);
  const CauseSum launches = sum_of(rank, GapCause::launch);
  const CauseSum between = sum_of(rank, GapCause::between);
  constexpr double kMost = 0.9;
  const Time exposed_or_idle = t.exposed + t.idle;
  std::string verdict = "Nothing alone limits the run";
  if (compute >= kMost) {
    verdict = "The run is compute-bound";
  } else if (2 * t.exposed > exposed_or_idle && share(t.exposed, t.span) > 1 - kMost) {
    verdict = "The run is bound by communication";
  } else if (2 * launches.sum > exposed_or_idle) {
    verdict = "The run is launch-bound";
  } else if (share(t.idle, t.span) > 1 - kMost) {
    verdict = "The GPU idles";
  }
  sentences.push_back(
      fmt::format("{}: kernels that compute run for {:.1f} % of the span of {:.3f} ms, and {:.1f} % of "
                  "the {:.3f} ms of communication run beside them.",
                  verdict, 100 * compute, ms(t.span), 100 * t.overlap_fraction(), ms(t.communication)));
  if (r.counterfactuals) {
    const Counterfactuals& c = *r.counterfactuals;
    const auto change = [&](Time span) { return 100 * (share(span, c.replay) - 1); };
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
    sentences.push_back(fmt::format("Most of the compute time, {:.1f} %, is {}.", 100 * share(most->busy, t.compute),
                                    name_of(most->kernel_class)));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::string to_json(const AnalysisReport& r) {
  Json json;
  json.open().add("schema_version", 1).add("trace", r.file);
  if (!r.measured->trace.device.empty()) json.add("device", r.measured->trace.device);
  json.open_list("ranks");
  for (const RankAnalysis& rank : r.analysis.ranks) add_rank(r, rank, json);
  json.close_list();
  json.add("gpu_events", r.analysis.gpu_events).add("attributed_gpu_events", r.analysis.attributed);
  json.open_list("phases");
  for (const RankAnalysis& rank : r.analysis.ranks) {
    for (const PhaseTimes& phase : rank.phases) add_phase(phase, json);
  }
  json.close_list().open_list("unclassified");
  for (const UnclassifiedKernel& kernel : r.analysis.unclassified) {
    json.open().add("kernel", kernel.name).add("count", kernel.count).add("us", to_us(kernel.sum)).close();
  }
  json.close_list();
  if (r.counterfactuals) {
    const Counterfactuals& c = *r.counterfactuals;
    json.open("counterfactuals").add("replay_us", to_us(c.replay));
    json.add("no_communication_us", to_us(c.no_communication)).add("no_gaps_us", to_us(c.no_gaps));
    if (c.transfer_knee > 0) json.add("transfer_knee", c.transfer_knee);
    json.close();
  }
  return json.add("notes", r.measured->trace.notes).close().text();
}

std::string to_table(const AnalysisReport& r) {
  std::string text =
      fmt::format("{}: {} GPU events, {} of them in phases{}{}\n", r.file, r.analysis.gpu_events, r.analysis.attributed,
                  r.measured->trace.device.empty() ? "" : ", ", r.measured->trace.device);
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
