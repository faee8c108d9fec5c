#include "experiments/cli/output/analysis_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "experiments/cli/output/named_kernels_output.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
namespace {

double per_second(double amount, Time time) { return time > Time::zero() ? amount / (to_us(time) / 1e6) : 0; }

// The stream is one of those whose gaps are listed.
bool computes(const RankAnalysis& rank, std::uint32_t stream) {
  return std::find(rank.compute_streams.begin(), rank.compute_streams.end(), stream) != rank.compute_streams.end();
}

}  // namespace

Rates rates_of(const AnalysisReport& r, const ClassUse& use) {
  constexpr double kTera = 1e12;
  constexpr double kGiga = 1e9;
  Rates rates;
  const ClassShapes* shapes = r.shapes ? &r.shapes->classes[static_cast<std::size_t>(use.kernel_class)] : nullptr;
  const double flops = shapes != nullptr ? std::accumulate(shapes->flops.begin(), shapes->flops.end(), 0.0) : use.flops;
  const double bytes = shapes != nullptr ? shapes->bytes : use.bytes;
  const Time shapes_time = shapes != nullptr && shapes->time > Time::zero() ? shapes->time : use.busy;
  const Time flops_time = shapes != nullptr ? shapes_time : use.flops_time;
  const Time bytes_time = shapes != nullptr ? shapes_time : use.bytes_time;
  rates.tflops = per_second(flops, flops_time) / kTera;
  rates.GBps = per_second(bytes, bytes_time) / kGiga;
  // The scenario's shapes are of all kernels, over the time of all, or of those that it has operators for.
  const bool of_all = shapes != nullptr && shapes->time == Time::zero();
  if (rates.tflops > 0) rates.tflops_of_time = of_all ? 1 : ratio(flops_time, use.sum);
  if (rates.GBps > 0) rates.GBps_of_time = of_all ? 1 : ratio(bytes_time, use.sum);
  if (!r.machine) return rates;
  const MachineFacts& facts = r.machine->facts;
  if (shapes != nullptr && flops > 0) {
    double at_peak_s = 0;
    for (int p = 0; p < kPrecisions; ++p) {
      const double own = shapes->flops[static_cast<std::size_t>(p)];
      if (own > 0) at_peak_s += own / (facts.tflops(static_cast<Precision>(p)) * kTera);
    }
    rates.share_of_peak = at_peak_s / (to_us(flops_time) / 1e6);
  }
  if (!is_communication(use.kernel_class)) rates.share_of_memory = rates.GBps / facts.hbm_GBps;
  return rates;
}

CopyRate rate_of(const AnalysisReport& r, const CopyUse& use) {
  CopyRate rate{per_second(use.bytes, use.bytes_time) / 1e9, 0};
  if (!r.machine) return rate;
  const MachineFacts& facts = r.machine->facts;
  const auto peak_GBps = [&] {
    switch (use.path) {
      case CopyPath::in_memory:
      case CopyPath::set:
        return facts.hbm_GBps;
      case CopyPath::host_to_device:
      case CopyPath::device_to_host:
        return facts.host_GBps;
      case CopyPath::peer:
        return facts.nvlink_GBps;
      case CopyPath::unknown:
        break;
    }
    return 0.0;
  }();
  if (peak_GBps > 0) rate.share_of_peak = rate.GBps / peak_GBps;
  return rate;
}

Time since_first(const AnalysisReport& r, Time time) { return time - time_of(r.measured->trace.first_ns); }

double bandwidth_GBps(const AnalysisReport& r, const RankAnalysis& rank, const Transfer& transfer) {
  double bytes = transfer.bytes;
  if (bytes == 0 && r.shapes && &rank == &r.analysis.ranks.front()) {
    const auto found = r.shapes->wire_bytes.find(key_of(transfer.times));
    if (found != r.shapes->wire_bytes.end()) bytes = found->second;
  }
  return per_second(bytes, transfer.times.transfer) / 1e9;
}

namespace {

// A part of what was found of a rank.
template <class Row>
struct InRank {
  const AnalysisReport& report;
  const RankAnalysis& rank;
  const Row& row;
};
using WholeRank = InRank<RankAnalysis>;

std::vector<WholeRank> ranks_of(const AnalysisReport& r) {
  std::vector<WholeRank> ranks;
  for (const RankAnalysis& rank : r.analysis.ranks) ranks.push_back({r, rank, rank});
  return ranks;
}

template <class Row>
auto rows_of(std::vector<Row> RankAnalysis::*rows) {
  return [=](const WholeRank& r) {
    std::vector<InRank<Row>> parts;
    for (const Row& row : r.rank.*rows) parts.push_back({r.report, r.rank, row});
    return parts;
  };
}

As share_of_all() { return {.decimals = 5, .most = 1}; }
As any_time() { return {.least = kAny}; }

std::optional<double> if_positive(double value) { return only_if(value > 0, value); }

Fields<Breakdown> time_fields() {
  return Fields<Breakdown>()
      .add("span_us", "us from first start to last end", &Breakdown::span)
      .add("idle_us", "us in which nothing runs", &Breakdown::idle)
      .add("compute_us", "us, union of kernels that compute", &Breakdown::compute)
      .add("non_compute_us", "us of the rest of the span: communication and copies beside which no kernel computes",
           &Breakdown::non_compute);
}

Fields<Breakdown> communication_fields() {
  return Fields<Breakdown>()
      .add("comm_us", "us, union of kernels that communicate", &Breakdown::communication)
      .add("overlap_fraction", "of it that compute hides", &Breakdown::overlap_fraction, share_of_all());
}

Fields<Breakdown> exposed_fields() {
  return Fields<Breakdown>().add("exposed_comm_us", "us in which communication runs and no kernel computes",
                                 &Breakdown::exposed);
}

Fields<HtaBreakdown> hta_fields() {
  return Fields<HtaBreakdown>()
      .all(&HtaBreakdown::times, time_fields())
      .add("gpu_events", "events that it counts", &HtaBreakdown::events)
      .add("left_out_gpu_events", "events that it leaves out", &HtaBreakdown::left_out)
      .add("profiler_steps", "steps of the profiler", &HtaBreakdown::profiler_steps);
}

Fields<InRank<StreamBreakdown>> stream_fields() {
  const auto times = [](auto& s) -> auto& { return s.row.times; };
  return Fields<InRank<StreamBreakdown>>()
      .add(
          "stream", "its number", [](auto& s) { return s.row.stream; }, any_time())
      .add("events", "GPU events", [](auto& s) { return s.row.events; })
      .add("compute_us", "us, union of kernels that compute", [](auto& s) { return s.row.times.compute; })
      .all(times, communication_fields())
      .add("exposed_us", "us of its communication that no compute hides", [](auto& s) { return s.row.times.exposed; })
      .add("idle_us", "us in which nothing runs", [](auto& s) { return s.row.times.idle; })
      .add("computes", "it has 5 % of the compute or more", [](auto& s) { return computes(s.rank, s.row.stream); });
}

Fields<InRank<ClassUse>> class_fields() {
  const auto rates = [](auto& c) { return rates_of(c.report, c.row); };
  const As share{.decimals = 4};
  const auto rate_fields =
      Fields<Rates>()
          .add("tflops", "TFLOP/s", [](auto& r) { return if_positive(r.tflops); })
          .add(
              "share_of_peak", "of the machine's FP8 and BF16 peaks",
              [](auto& r) { return if_positive(r.share_of_peak); }, share)
          .add(
              "tflops_of_time", "share of sum_us of the kernels that TFLOP/s are of",
              [](auto& r) { return if_positive(r.tflops_of_time); }, share_of_all())
          .add("GBps", "GB/s: of messages, and of copies and sets what they read and write in the GPU's memory",
               [](auto& r) { return if_positive(r.GBps); })
          .add(
              "share_of_memory", "of the memory's peak", [](auto& r) { return if_positive(r.share_of_memory); }, share)
          .add(
              "GBps_of_time", "share of sum_us of the kernels that GB/s are of",
              [](auto& r) { return if_positive(r.GBps_of_time); }, share_of_all());
  return Fields<InRank<ClassUse>>()
      .add("class", "class", [](auto& c) { return name_of(c.row.kernel_class); },
           {.words = words_to(KernelClass::unclassified)})
      .add("count", "kernels", [](auto& c) { return c.row.count; })
      .add("sum_us", "us, sum", [](auto& c) { return c.row.sum; })
      .add("busy_us", "us, union", [](auto& c) { return c.row.busy; })
      .all(rates, rate_fields);
}

Fields<InRank<CopyUse>> copy_fields() {
  return Fields<InRank<CopyUse>>()
      .add("path", "what they pass through", [](auto& c) { return name_of(c.row.path); },
           {.words = words_to(CopyPath::unknown)})
      .add("count", "copies or sets", [](auto& c) { return c.row.count; })
      .add("sum_us", "us, sum", [](auto& c) { return c.row.sum; })
      .add("busy_us", "us, union", [](auto& c) { return c.row.busy; })
      .add("GBps", "GB/s of those whose size the trace states; a copy inside the GPU's memory reads and writes it",
           [](auto& c) { return if_positive(rate_of(c.report, c.row).GBps); })
      .add("share_of_peak", "of the peak of the GPU's memory, the link to the host, or NVLink",
           [](auto& c) { return if_positive(rate_of(c.report, c.row).share_of_peak); }, {.decimals = 4});
}

// As GapCause has them.
constexpr std::array<const char*, kGapCauses> kGapMeanings = {"launched late",
                                                              "the host waited before it launched",
                                                              "waited for communication",
                                                              "waited for another stream",
                                                              "nothing but the kernel before it",
                                                              "no reason known",
                                                              "only other streams run"};

std::vector<InRank<Gap>> longest_gaps(const WholeRank& r) {
  constexpr std::size_t kListed = 20;
  std::vector<InRank<Gap>> gaps;
  for (std::size_t i = 0; i < std::min(kListed, r.rank.gaps.size()); ++i) {
    gaps.push_back({r.report, r.rank, r.rank.gaps[i]});
  }
  return gaps;
}

Fields<InRank<Gap>> gap_fields() {
  return Fields<InRank<Gap>>()
      .add("cause", "cause", [](auto& g) { return name_of(g.row.cause); }, {.words = words_to(GapCause::after_last)})
      .add("us", "us", [](auto& g) { return g.row.length; })
      .add("before", "where the kernel stands that ended it",
           [](auto& g) { return place_name(*g.report.measured, g.row.event); })
      .add("kernel", "that kernel", [](auto& g) { return kernel_name(*g.report.measured, g.row.event); })
      .add("waited_for", "what it waited for", [](auto& g) {
        return g.row.waited_for >= 0 ? std::optional(place_name(*g.report.measured, g.row.waited_for)) : std::nullopt;
      });
}

Fields<WholeRank> gaps_fields() {
  const auto sum = Fields<GapSum>().add("count", "how many", &GapSum::count).add("us", "us", &GapSum::sum);
  Fields<WholeRank> fields;
  for (std::size_t i = 0; i < kGapMeanings.size(); ++i) {
    const auto cause = static_cast<GapCause>(i);
    fields.object(
        name_of(cause), kGapMeanings[i], [=](auto& r) { return sum_of(r.rank, cause); }, sum);
  }
  return fields.list("longest", "the longest ones", longest_gaps, gap_fields())
      .add("sum_us", "us of all of them", [](auto& r) { return r.rank.times.span - r.rank.compute_streams_busy; })
      .add("compute_streams_busy_us", "us in which these streams are busy; with the gaps the span",
           [](auto& r) { return r.rank.compute_streams_busy; });
}

constexpr const char* kSinceFirstEvent = "us from the file's first GPU event, as --from and --to count";

Fields<InRank<StepUse>> step_use_fields() {
  const auto times = [](auto& s) -> auto& { return s.row.times; };
  return Fields<InRank<StepUse>>()
      .add(
          "step", "its number", [](auto& s) { return s.row.step.number; }, any_time())
      .add("name", "annotation", [](auto& s) { return s.row.step.name; })
      .add("kind", "steps of one kind have the same batch and tokens", [](auto& s) { return s.row.step.kind; })
      .add(
          "start_us", kSinceFirstEvent, [](auto& s) { return since_first(s.report, s.row.start); }, any_time())
      .add(
          "end_us", "us to its end", [](auto& s) { return since_first(s.report, s.row.end); }, any_time())
      .all(times, time_fields())
      .all(times, exposed_fields())
      .add("layers", "repetitions in it", [](auto& s) { return s.row.layers; });
}

Fields<InRank<StepKind>> step_kind_fields() {
  return Fields<InRank<StepKind>>()
      .add("kind", "kind", [](auto& k) { return k.row.kind; })
      .add("count", "steps of it", [](auto& k) { return k.row.steps.size(); })
      .add("median_us", "median length", [](auto& k) { return k.rank.steps[k.row.median].times.span; })
      .add(
          "median_step", "step of that length", [](auto& k) { return k.rank.steps[k.row.median].step.number; },
          any_time());
}

std::optional<std::int64_t> step_of(const InRank<LayerWindow>& layer) {
  if (layer.row.step < 0) return std::nullopt;
  return layer.rank.steps[static_cast<std::size_t>(layer.row.step)].step.number;
}

Fields<InRank<LayerWindow>> layer_window_fields() {
  const auto times = [](auto& l) -> auto& { return l.row.times; };
  return Fields<InRank<LayerWindow>>()
      .add("layer", "its number", [](auto& l) { return l.row.layer; })
      .add("step", "step that it is in", step_of, any_time())
      .add(
          "start_us", kSinceFirstEvent, [](auto& l) { return since_first(l.report, l.row.start); }, any_time())
      .add(
          "end_us", "us to its end", [](auto& l) { return since_first(l.report, l.row.end); }, any_time())
      .all(times, time_fields())
      .all(times, communication_fields())
      .all(times, exposed_fields())
      .add("barrier_us", "us of barriers", [](auto& l) { return l.row.barrier; })
      .add("transfer_us", "us of transfers", [](auto& l) { return l.row.transfer; });
}

Fields<InRank<Transfer>> transfer_fields() {
  return Fields<InRank<Transfer>>()
      .add("layer", "layer", [](auto& t) { return t.row.times.layer; })
      .add("micro_batch", "micro-batch", [](auto& t) { return t.row.times.micro_batch; })
      .add("phase", "phase", [](auto& t) { return t.row.times.phase; })
      .add("barrier_us", "us of the barrier", [](auto& t) { return t.row.times.barrier; })
      .add("transfer_us", "us of the transfer", [](auto& t) { return t.row.times.transfer; })
      .add("other_us", "us of other kernels", [](auto& t) { return t.row.other; })
      .add("GBps", "message bytes over the time of the transfer",
           [](auto& t) { return if_positive(bandwidth_GBps(t.report, t.rank, t.row)); });
}

Fields<WholeRank> rank_fields() {
  const auto times = [](auto& r) -> auto& { return r.rank.times; };
  return Fields<WholeRank>()
      .add("rank", "rank", [](auto& r) { return r.rank.rank; }, {.least = -1})
      .all(times, time_fields())
      .all(times, communication_fields())
      .all(times, exposed_fields())
      .object(
          "hta", "as HolisticTraceAnalysis counts by default", [](auto& r) { return r.rank.hta; }, hta_fields())
      .add("kernels", "kernels", [](auto& r) { return r.rank.kernels; })
      .add("kernels_without_launch", "whose launch is not in the trace",
           [](auto& r) { return r.rank.kernels_without_launch; })
      .list("streams", "by stream", rows_of(&RankAnalysis::streams), stream_fields())
      .list("classes", "by class of kernels", rows_of(&RankAnalysis::classes), class_fields())
      .list("copies", "of class copy, by what they pass through", rows_of(&RankAnalysis::copies), copy_fields())
      .object("gaps", "times without a kernel on the streams that compute, by cause", std::identity(), gaps_fields())
      .list("steps", "of a server or a training loop", rows_of(&RankAnalysis::steps), step_use_fields())
      .list("step_kinds", "kinds of steps", rows_of(&RankAnalysis::step_kinds), step_kind_fields())
      .add("layers_by_repetition", "layers are repetitions of a sequence of kernels, not phases",
           [](auto& r) { return r.rank.layers_by_repetition; })
      .list("layers", "layers", rows_of(&RankAnalysis::layers), layer_window_fields())
      .list("transfers", "phases of communication", rows_of(&RankAnalysis::transfers), transfer_fields())
      .add("limits", "what limits it, in sentences", [](auto& r) { return limits_of(r.report, r.rank); });
}

std::vector<PhaseTimes> phases_of_all(const AnalysisReport& r) {
  std::vector<PhaseTimes> phases;
  for (const RankAnalysis& rank : r.analysis.ranks) phases.insert(phases.end(), rank.phases.begin(), rank.phases.end());
  for (PhaseTimes& phase : phases) {
    phase.start = since_first(r, phase.start);
    phase.end = since_first(r, phase.end);
  }
  return phases;
}

Fields<PhaseTimes> phase_time_fields() {
  return Fields<PhaseTimes>()
      .add("rank", "rank", &PhaseTimes::rank, {.least = -1})
      .add("micro_batch", "micro-batch", &PhaseTimes::micro_batch)
      .add("layer", "layer", &PhaseTimes::layer)
      .add("phase", "its name", &PhaseTimes::phase)
      .add("stream", "stream", &PhaseTimes::stream, any_time())
      .add("start_us", kSinceFirstEvent, &PhaseTimes::start, any_time())
      .add("end_us", "us to its end", &PhaseTimes::end, any_time())
      .add("busy_us", "us, union of its kernels", &PhaseTimes::busy)
      .add("barrier_us", "us of its barriers, of communication",
           [](auto& p) { return only_if(p.is_communication(), p.barrier); })
      .add("transfer_us", "us of its transfers, of communication",
           [](auto& p) { return only_if(p.is_communication(), p.transfer); });
}

Fields<AnalysisReport> analysis_fields() {
  const auto unclassified = Fields<UnclassifiedKernel>()
                                .add("kernel", "name", &UnclassifiedKernel::name)
                                .add("count", "how many", &UnclassifiedKernel::count)
                                .add("us", "us, sum", &UnclassifiedKernel::sum);
  const auto without = Fields<Without>()
                           .add("what", "compute, communication, copies, host or gaps", &Without::what)
                           .add("span_us", "of the replay in which it takes no time", &Without::span);
  const auto counterfactuals =
      Fields<Counterfactuals>()
          .add("replay_us", "as it was", &Counterfactuals::replay)
          .list("without", "one sort of things takes no time; what shortens the replay most first",
                &Counterfactuals::without, without)
          .object("without_two", "where no single one shortens it by a tenth, the two that do most together",
                  &Counterfactuals::without_two, without)
          .add("no_communication_us", "with communication free", &Counterfactuals::no_communication)
          .add("no_gaps_us", "without gaps between kernels", &Counterfactuals::no_gaps)
          .add("no_host_us", "with a host that takes no time; absent where the trace has none of its calls",
               &Counterfactuals::no_host)
          .add("transfer_knee", "factor of transfers up to which it grows by less than 1 %",
               [](auto& c) { return if_positive(c.transfer_knee); });
  const auto flows = Fields<LoneFlows>()
                         .add("without_start", "ends alone", &LoneFlows::ends)
                         .add("without_end", "starts alone", &LoneFlows::starts);
  return output_fields<AnalysisReport>()
      .add("trace", "file", &AnalysisReport::file)
      .add("device", "what the GPU calls itself", [](auto& r) { return if_any(r.measured->trace.device); })
      .add("hardware", "profile of the machine",
           [](auto& r) { return r.machine ? std::optional(r.machine->name) : std::nullopt; })
      .add(
          "first_gpu_event_us", "of the file, from the file's first record: the zero of start_us and end_us",
          [](auto& r) { return time_of(r.measured->trace.first_ns); }, any_time())
      .list("ranks", "by rank", ranks_of, rank_fields())
      .add("gpu_events", "GPU events", [](auto& r) { return r.analysis.gpu_events; })
      .add("attributed_gpu_events", "of phases", [](auto& r) { return r.analysis.attributed; })
      .list("phases", "phases", phases_of_all, phase_time_fields())
      .list(
          "unclassified", "kernels of no known class", [](auto& r) { return r.analysis.unclassified; }, unclassified)
      .list("kernels", "with --kernels: by name; what nothing is known of first, then the rest, each by time",
            &AnalysisReport::kernels, named_kernel_fields())
      .object("counterfactuals", "replays, of a trace of one GPU", &AnalysisReport::counterfactuals, counterfactuals)
      .object(
          "flows", "arrows of the trace that lead nowhere", [](auto& r) { return r.measured->trace.lone_flows; }, flows)
      .add("notes", "what of the trace was not read", [](auto& r) { return r.measured->trace.notes; });
}

}  // namespace

std::string to_json(const AnalysisReport& r) { return analysis_fields().json(r); }

std::string analyze_schema() {
  return output_schema("analyze",
                       "`moeline analyze TRACE... --format json`: of one trace overlap, gaps, classes, what limits it; "
                       "of several ranks' traces who waits for whom",
                       {{"", analysis_fields().described()}, {"", several_ranks_fields().described()}});
}

}  // namespace moeline
