#include "experiments/run/step_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/pipeline/split_blocks.hpp"
#include "timeline/intervals.hpp"

namespace moeline {
namespace {

std::vector<PhaseTimes> slot_rows(const TaskGraph& graph, const StepLayout& layout, const Timeline& timeline) {
  std::vector<PhaseTimes> rows;
  for (const ProgramSlot& slot : layout.slots) {
    const Pass& pass = main_pass(slot.slot);
    PhaseTimes row;
    row.phase = name_of(slot.slot.kind);
    row.rank = slot.rank;
    row.micro_batch = static_cast<std::uint32_t>(pass.micro_batch);
    row.layer = static_cast<std::uint32_t>(pass.chunk);
    row.start = Time::max();
    rows.push_back(std::move(row));
  }
  const std::vector<std::uint32_t> slot_of = slots_of_phases(layout, graph);
  std::vector<std::vector<Interval>> kernels(rows.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const std::uint32_t slot = slot_of[graph.label(task).phase];
    if (slot == kNoSlot || graph.task_class(task).role == Role::host) continue;
    const Span& span = timeline.spans[task];
    PhaseTimes& row = rows[slot];
    if (span.start < row.start) {
      row.start = span.start;
      row.stream = graph.streams()[graph.label(task).stream].id;
    }
    row.end = std::max(row.end, span.end);
    row.solo += graph.task(task).solo;
    kernels[slot].push_back({span.start, span.end});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].busy = covered_by(std::move(kernels[i]));
  return rows;
}

Time& part_of(StepParts& parts, SlotKind kind) {
  switch (kind) {
    case SlotKind::forward:
      return parts.forward;
    case SlotKind::weight:
      return parts.weight;
    case SlotKind::forward_backward:
      return parts.overlapped;
    default:
      return parts.backward;
  }
}

void add_parts(Time makespan, StepReport& report) {
  Time last_slot{};
  for (const PhaseTimes& row : report.slots) last_slot = std::max(last_slot, row.end);
  std::vector<Time> until(report.ranks.size());  // the end of the rank's slots so far
  for (std::size_t i = 0; i < report.slots.size(); ++i) {
    const PhaseTimes& row = report.slots[i];
    Time& end = until[row.rank];
    const Time own = std::max(Time::zero(), row.end - std::max(row.start, end));
    part_of(report.ranks[row.rank].parts, report.layout.slots[i].slot.kind) += own;
    end = std::max(end, row.end);
  }
  for (RankStep& rank : report.ranks) {
    StepParts& p = rank.parts;
    p.optimizer = makespan - last_slot;
    p.bubble = last_slot - p.forward - p.backward - p.weight - p.overlapped;
  }
}

std::vector<OffloadedStay> stays_of(const StepLayout& layout, const Timeline& timeline) {
  std::vector<OffloadedStay> stays;
  for (const StayOnGpu& stay : layout.stays) {
    stays.push_back({stay, stay.from == kNoTask ? Time::zero() : timeline.spans[stay.from].start,
                     stay.to == kNoTask ? timeline.makespan : timeline.spans[stay.to].end});
  }
  return stays;
}

StepParts mean_of(const std::vector<RankStep>& ranks) {
  StepParts mean;
  const auto count = static_cast<std::int64_t>(ranks.size());
  for (const NamedPart& part : kStepParts) {
    for (const RankStep& rank : ranks) mean.*part.time += rank.parts.*part.time;
    mean.*part.time /= count;
  }
  return mean;
}

}  // namespace

std::size_t StepReport::fullest_rank() const {
  const auto fuller = [](const RankStep& a, const RankStep& b) {
    return a.memory.peak.total() < b.memory.peak.total();
  };
  return static_cast<std::size_t>(std::max_element(ranks.begin(), ranks.end(), fuller) - ranks.begin());
}

const RankStep& StepReport::fullest() const { return ranks[fullest_rank()]; }

std::vector<std::uint32_t> slots_of_phases(const StepLayout& layout, const TaskGraph& graph) {
  static const std::vector<std::string> kBeside = {kGather, kReduction, kOffload, kReload};
  const std::span<const Phase> phases = graph.phases();
  std::vector<std::uint32_t> slots(phases.size(), kNoSlot);
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const ProgramSlot& slot = layout.slots[i];
    std::fill(slots.begin() + slot.first_phase, slots.begin() + slot.end_phase, static_cast<std::uint32_t>(i));
    for (std::uint32_t phase = slot.first_phase; phase < slot.end_phase; ++phase) {
      if (std::find(kBeside.begin(), kBeside.end(), phases[phase].name) != kBeside.end()) slots[phase] = kNoSlot;
    }
  }
  return slots;
}

void add_memory(const Setup& setup, StepReport& report) {
  std::vector<RankMemory> memories = step_memory(setup, report.layout, report.slots, report.stays);
  for (std::size_t rank = 0; rank < memories.size(); ++rank) report.ranks[rank].memory = std::move(memories[rank]);
}

StepReport report_step(const Setup& setup, const Program& program, const Timeline& timeline, StepLayout layout) {
  StepReport report;
  report.layout = std::move(layout);
  report.slots = slot_rows(program.graph, report.layout, timeline);
  report.stays = stays_of(report.layout, timeline);
  report.ranks.resize(static_cast<std::size_t>(setup.scenario.parallelism.pp));
  add_parts(timeline.makespan, report);
  report.mean = mean_of(report.ranks);
  add_memory(setup, report);
  return report;
}

}  // namespace moeline
