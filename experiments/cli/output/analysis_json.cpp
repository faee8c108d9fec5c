// `moeline analyze --format json`.
#include <algorithm>

#include "experiments/cli/output/analysis_output.hpp"
#include "experiments/cli/output/json.hpp"

namespace moeline {
namespace {

void add_times(const Breakdown& times, Json& json) {
  json.add("span_us", to_us(times.span)).add("idle_us", to_us(times.idle)).add("compute_us", to_us(times.compute));
  json.add("non_compute_us", to_us(times.non_compute()));
}

void add_communication(const Breakdown& times, Json& json) {
  json.add("comm_us", to_us(times.communication)).add("overlap_fraction", times.overlap_fraction(), 5);
}

void add_gaps(const AnalysisReport& r, const RankAnalysis& rank, Json& json) {
  constexpr std::size_t kListed = 20;
  json.open("gaps");
  for (int i = 0; i < kGapCauses; ++i) {
    const GapSum sum = sum_of(rank, static_cast<GapCause>(i));
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
  json.close_list();
  json.add("sum_us", to_us(rank.times.span - rank.compute_streams_busy));
  json.add("compute_streams_busy_us", to_us(rank.compute_streams_busy)).close();
}

void add_hta(const HtaBreakdown& hta, Json& json) {
  json.open("hta");
  add_times(hta.times, json);
  json.add("gpu_events", hta.events).add("left_out_gpu_events", hta.left_out());
  json.add("profiler_steps", hta.profiler_steps).close();
}

void add_classes(const AnalysisReport& r, const RankAnalysis& rank, Json& json) {
  json.open_list("classes");
  for (const ClassUse& use : rank.classes) {
    const Rates rates = rates_of(r, use);
    json.open().add("class", name_of(use.kernel_class)).add("count", use.count).add("sum_us", to_us(use.sum));
    json.add("busy_us", to_us(use.busy));
    if (rates.tflops > 0) json.add("tflops", rates.tflops);
    if (rates.share_of_peak > 0) json.add("share_of_peak", rates.share_of_peak, 4);
    if (rates.GBps > 0) json.add("GBps", rates.GBps);
    if (rates.share_of_memory > 0) json.add("share_of_memory", rates.share_of_memory, 4);
    json.close();
  }
  json.close_list();
}

void add_transfers(const AnalysisReport& r, const RankAnalysis& rank, Json& json) {
  json.open_list("transfers");
  for (const Transfer& t : rank.transfers) {
    json.open().add("layer", t.times.layer).add("micro_batch", t.times.micro_batch).add("phase", t.times.phase);
    json.add("barrier_us", to_us(t.times.barrier)).add("transfer_us", to_us(t.times.transfer));
    json.add("other_us", to_us(t.other));
    if (const double GBps = bandwidth_GBps(r, rank, t); GBps > 0) json.add("GBps", GBps);
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
    json.open().add("layer", w.layer);
    if (w.step >= 0) json.add("step", rank.steps[static_cast<std::size_t>(w.step)].step.number);
    json.add("start_us", to_us(w.start)).add("end_us", to_us(w.end));
    add_times(w.times, json);
    add_communication(w.times, json);
    json.add("exposed_comm_us", to_us(w.times.non_compute()));
    json.add("barrier_us", to_us(w.barrier)).add("transfer_us", to_us(w.transfer)).close();
  }
  json.close_list();
}

void add_steps(const RankAnalysis& rank, Json& json) {
  json.open_list("steps");
  for (const StepUse& s : rank.steps) {
    json.open().add("step", s.step.number).add("name", s.step.name).add("kind", s.step.kind);
    json.add("start_us", to_us(s.start)).add("end_us", to_us(s.end));
    add_times(s.times, json);
    json.add("exposed_comm_us", to_us(s.times.non_compute())).add("layers", s.layers).close();
  }
  json.close_list().open_list("step_kinds");
  for (const StepKind& kind : rank.step_kinds) {
    json.open().add("kind", kind.kind).add("count", kind.steps.size());
    json.add("median_us", to_us(rank.steps[kind.median].times.span));
    json.add("median_step", rank.steps[kind.median].step.number).close();
  }
  json.close_list();
}

void add_rank(const AnalysisReport& r, const RankAnalysis& rank, Json& json) {
  json.open().add("rank", rank.rank);
  add_times(rank.times, json);
  add_communication(rank.times, json);
  json.add("exposed_comm_us", to_us(rank.times.non_compute()));
  add_hta(rank.hta, json);
  json.add("kernels", rank.kernels).add("kernels_without_launch", rank.kernels_without_launch);
  json.open_list("streams");
  for (const StreamBreakdown& s : rank.streams) {
    json.open().add("stream", s.stream).add("events", s.events).add("compute_us", to_us(s.times.compute));
    add_communication(s.times, json);
    json.add("exposed_us", to_us(s.times.exposed)).add("idle_us", to_us(s.times.idle));
    json.flag("computes", computes(rank, s.stream)).close();
  }
  json.close_list();
  add_classes(r, rank, json);
  add_gaps(r, rank, json);
  add_steps(rank, json);
  add_layers(rank, json);
  add_transfers(r, rank, json);
  json.add("limits", limits_of(r, rank)).close();
}

}  // namespace

std::string to_json(const AnalysisReport& r) {
  Json json;
  json.open().add("schema_version", 1).add("trace", r.file);
  if (!r.measured->trace.device.empty()) json.add("device", r.measured->trace.device);
  if (r.machine) json.add("hardware", r.machine->name);
  json.add("first_gpu_event_us", static_cast<double>(r.measured->trace.gpu_events.front().start_ns) / 1e3);
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
    if (c.no_host) json.add("no_host_us", to_us(*c.no_host));
    if (c.transfer_knee > 0) json.add("transfer_knee", c.transfer_knee);
    json.close();
  }
  const LoneFlows& lone = r.measured->trace.lone_flows;
  json.open("flows").add("without_start", lone.ends).add("without_end", lone.starts).close();
  return json.add("notes", r.measured->trace.notes).close().text();
}

}  // namespace moeline
