#include "timeline/phases.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "timeline/intervals.hpp"

namespace moeline {
namespace {

enum class Kind { other, barrier, transfer };

// Collects the kernels of one phase.
struct Collected {
  static constexpr std::size_t kTypical = 8;  // kernels
  PhaseTimes times;
  std::vector<Interval> kernels;

  void add(Time start, Time end, Time solo, std::uint32_t stream, Kind kind) {
    if (kernels.empty() || start < times.start) {
      times.start = start;
      times.stream = stream;
    }
    times.end = std::max(times.end, end);
    times.solo += solo;
    if (kind == Kind::barrier) times.barrier += end - start;
    if (kind == Kind::transfer) times.transfer += end - start;
    if (kernels.empty()) kernels.reserve(kTypical);
    kernels.push_back({start, end});
  }
};

std::vector<PhaseTimes> finish(std::vector<Collected>& collected) {
  std::vector<PhaseTimes> table;
  for (Collected& phase : collected) {
    if (phase.kernels.empty()) continue;
    phase.times.busy = covered_by(std::move(phase.kernels));
    table.push_back(phase.times);
  }
  std::stable_sort(table.begin(), table.end(), [](const PhaseTimes& a, const PhaseTimes& b) {
    return a.start != b.start ? a.start < b.start : a.stream < b.stream;
  });
  return table;
}

Kind kind_of(KernelClass c) {
  if (c == KernelClass::barrier) return Kind::barrier;
  return is_communication(c) ? Kind::transfer : Kind::other;
}

Kind kind_of(const TaskClass& task_class) {
  if (task_class.role != Role::communication) return Kind::other;
  return task_class.name == "barrier" ? Kind::barrier : Kind::transfer;
}

// Pieces of a phase are one row: that of the piece that was written first.
std::vector<std::size_t> rows_of(std::span<const Phase> phases) {
  std::vector<std::size_t> rows(phases.size());
  std::map<std::tuple<std::uint32_t, PhaseKey>, std::size_t> of_pieces;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& p = phases[i];
    rows[i] = p.pieces == 1 ? i : of_pieces.try_emplace({p.rank, {p.layer, p.name, p.micro_batch}}, i).first->second;
  }
  return rows;
}

}  // namespace

std::vector<PhaseTimes> phase_times(const TaskGraph& graph, const Timeline& timeline,
                                    std::optional<std::uint32_t> rank) {
  std::vector<Collected> collected(graph.phases().size());
  for (std::size_t i = 0; i < collected.size(); ++i) {
    const Phase& phase = graph.phases()[i];
    if (rank && phase.rank != *rank) continue;
    collected[i].times.phase = phase.name;
    collected[i].times.rank = phase.rank;
    collected[i].times.micro_batch = phase.micro_batch;
    collected[i].times.layer = phase.layer;
  }
  const std::vector<std::size_t> rows = rows_of(graph.phases());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Label& label = graph.label(task);
    if (rank && graph.streams()[label.stream].rank != *rank) continue;
    const TaskClass& task_class = graph.task_class(task);
    if (task_class.role == Role::host) continue;
    const Span& span = timeline.spans[task];
    collected[rows[label.phase]].add(span.start, span.end, graph.task(task).solo, graph.streams()[label.stream].id,
                                     kind_of(task_class));
  }
  return finish(collected);
}

std::vector<PhaseTimes> phase_times(const Trace& trace, const Interpretation& meaning) {
  std::vector<Collected> collected(meaning.phases.size());
  for (std::size_t i = 0; i < collected.size(); ++i) {
    const TracePhase& phase = meaning.phases[i];
    collected[i].times.phase = phase.name;
    collected[i].times.rank = trace.gpus[phase.gpu].rank;
    collected[i].times.micro_batch = phase.place.micro_batch;
    collected[i].times.layer = phase.place.layer;
  }
  for (std::size_t i = 0; i < trace.gpu_events.size(); ++i) {
    if (meaning.places[i].phase == kNoPhase) continue;
    const GpuEvent& event = trace.gpu_events[i];
    collected[static_cast<std::size_t>(meaning.places[i].phase)].add(
        std::chrono::nanoseconds(event.start_ns), std::chrono::nanoseconds(event.end_ns), Time::zero(), event.stream,
        kind_of(meaning.classes[i]));
  }
  return finish(collected);
}

std::vector<PhaseTimes> phase_times(const Trace& trace) {
  const Interpretation meaning = interpret(trace);
  if (meaning.phases.empty()) {
    throw SpecError("the trace has no kernel inside an annotation: its phases are unknown; name them with --map");
  }
  return phase_times(trace, meaning);
}

}  // namespace moeline
