#include "experiments/cli/output/timeline_pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "base/text.hpp"
#include "experiments/run/stack_choices.hpp"
#include "experiments/timeline_page/page.hpp"
#include "experiments/timeline_page/run_view.hpp"
#include "experiments/timeline_page/trace_view.hpp"

namespace moeline {
namespace {

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// Bars count from the first of them.
void start_at_first_bar(TimelineView& view) {
  if (!view.bars.empty()) view.start = view.bars.front().start;
}

std::string span_of(Time span) { return fmt::format("{:.3f} ms", to_us(span) / 1e3); }

// "experiments/decode/scenario.yaml" is one of many scenario.yaml.
std::string title_of(const Run& run) {
  const std::filesystem::path file = run.setup.scenario.file;
  const std::string folder = file.parent_path().filename().string();
  return fmt::format("{}{}: {}", folder.empty() ? "" : folder + "/", file.filename().string(),
                     run.setup.scenario.schedule);
}

// Colours say what a slot does, its label which micro-batches: of an overlapped one the forward's above the backward's.
PictureBar picture_bar(const Run& run, std::size_t i) {
  const PhaseTimes& row = run.phases[i];
  std::string label = fmt::format("{}", row.micro_batch);
  std::string title = fmt::format("{} {}", row.phase, row.micro_batch);
  if (run.step() != nullptr) {
    const Slot& slot = run.step()->layout.slots[i].slot;
    title = title_of(slot);
    if (slot.kind == SlotKind::forward_backward) label += fmt::format("\n{}", slot.backward.micro_batch);
  }
  title += fmt::format(", rank {}: {:.1f} us", row.rank, to_us(row.span()));
  return {label, title, tint_of(row.phase, row.micro_batch), false, row.start, row.end};
}

std::vector<PictureLane> lanes_of_slots(const Run& run) {
  std::map<std::uint32_t, PictureLane> ranks;
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    PictureLane& lane = ranks[run.phases[i].rank];
    lane.name = fmt::format("rank {}", run.phases[i].rank);
    lane.bars.push_back(picture_bar(run, i));
  }
  std::vector<PictureLane> lanes;
  for (auto& [rank, lane] : ranks) lanes.push_back(std::move(lane));
  return lanes;
}

}  // namespace

TimelinePage run_page(const Run& run, const Explanation& explanation, const std::set<std::uint32_t>& ranks,
                      const std::vector<std::string>& assignments, const std::string& result) {
  const Scenario& s = run.setup.scenario;
  TimelinePage page;
  page.title = title_of(run);
  page.summary = {fmt::format("{} on {} {} ({}): {} from the first kernel's start to the last one's end, predicted.",
                              s.model, s.parallelism.world(), s.hardware, s.kernels, span_of(explanation.span))};
  if (!assignments.empty()) page.summary.push_back(fmt::format("Changed: {}.", fmt::join(assignments, ", ")));
  for (const StackChoice& choice : stack_choices(run.setup)) page.summary.push_back(line_of(choice));
  for (const std::string& warning : run.warnings) page.summary.push_back("Warning: " + warning);
  page.views.push_back(view_of(run, explanation, ranks));
  start_at_first_bar(page.views.front());
  page.tables = tables_of(explanation);
  if (!result.empty()) page.sources.push_back({"What the command printed", result});
  if (!is_special(s.file)) page.sources.push_back({"The scenario: " + s.file, read_text(s.file)});
  return page;
}

TimelinePage trace_page(const std::string& file, const Measured& measured, const ReplayGraph& replay,
                        const Explanation& explanation, const std::string& result) {
  TimelinePage page;
  page.title = file_name(file);
  page.summary = {fmt::format("A measured trace: {} from the first GPU event's start to the last one's end.",
                              span_of(measured_span(measured.trace))),
                  fmt::format("What its end waited for is taken from a replay of its order, which takes {}.",
                              span_of(explanation.span))};
  page.views.push_back(view_of(measured, replay, explanation));
  start_at_first_bar(page.views.front());
  page.tables = tables_of(explanation);
  if (!result.empty()) page.sources.push_back({"What the command printed", result});
  return page;
}

std::map<std::uint32_t, std::string> stream_names(const TaskGraph& graph) {
  std::map<std::uint32_t, std::string> names;
  for (const Stream& stream : graph.streams()) names[stream.id] = stream.name;
  return names;
}

Picture picture_of(const Run& run) {
  const TaskGraph& graph = run.program.graph;
  return {run.setup.scenario.schedule, run.is_pipeline()
                                           ? lanes_of_slots(run)
                                           : lanes_of_phases(kernel_spans(graph, run.timeline), stream_names(graph))};
}

}  // namespace moeline
