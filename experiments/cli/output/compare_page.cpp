#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/cli/output/timeline_pages.hpp"
#include "experiments/timeline_page/trace_view.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

using PairOfPhase = std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, const PhaseDifference*>;

std::string signed_us(Time time) { return fmt::format("{:+.1f}", to_us(time)); }

// Largest first, the small ones left out.
std::string causes_of(const Causes& causes) {
  std::vector<NamedCause> sorted(std::begin(kCauses), std::end(kCauses));
  std::stable_sort(sorted.begin(), sorted.end(), [&](const NamedCause& a, const NamedCause& b) {
    return std::abs((causes.*a.time).count()) > std::abs((causes.*b.time).count());
  });
  std::string text;
  for (const NamedCause& cause : sorted) {
    if (std::abs(to_us(causes.*cause.time)) < 0.05) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cause.name, signed_us(causes.*cause.time));
  }
  return text;
}

std::string note_of(const PhaseDifference& d) {
  const PhasePair& pair = *d.pair;
  const std::string causes = causes_of(d.causes);
  return fmt::format("{} of layer {}: a {:.1f} us, b {:.1f} us, a - b {} us{}{}", short_phase_name(pair.a.phase),
                     pair.a.layer, to_us(pair.a.span()), to_us(pair.b.span()), signed_us(d.causes.total()),
                     causes.empty() ? "" : ": ", causes);
}

// From the first phase that both sides have to the last.
Interval compared_part(const std::vector<PhaseTimes>& phases, const PairOfPhase& pairs) {
  Interval part{Time::max(), Time::zero()};
  for (const PhaseTimes& phase : phases) {
    if (!pairs.contains({short_phase_name(phase.phase), phase.layer, phase.micro_batch})) continue;
    part.start = std::min(part.start, phase.start);
    part.end = std::max(part.end, phase.end);
  }
  return part.start == Time::max() ? Interval{} : part;
}

TimelineView side_of(const std::string& name, const ComparedSide& side, const PairOfPhase& pairs) {
  ViewDraft draft(name);
  draft.view.measured = side.measured;
  add_spans(side.kernels, kMostBars / 2, side.stream_names, draft);
  for (BarPhase& phase : draft.view.phases) {
    const auto found = pairs.find({phase.name, phase.layer, phase.micro_batch});
    if (found != pairs.end()) phase.note = note_of(*found->second);
  }
  draft.view.window_name = "compared";
  draft.view.window = compared_part(side.phases, pairs);
  draft.view.start = draft.view.window.start;
  return std::move(draft.view);
}

std::vector<std::string> causes_row(const std::string& what, const Causes& causes) {
  std::vector<std::string> row = {what, signed_us(causes.total())};
  for (const NamedCause& cause : kCauses) row.push_back(signed_us(causes.*cause.time));
  return row;
}

PageTable causes_rows(const ComparisonReport& report) {
  constexpr std::size_t kMost = 20;
  PageTable table{"a - b by cause, us, the largest first", "lr", {"phase", "in all"}, {}};
  for (const NamedCause& cause : kCauses) table.header.emplace_back(cause.name);
  Causes all;
  for (const PhaseDifference& d : report.differences) {
    all.add(d.causes);
    if (table.rows.size() < kMost) {
      const std::string micro_batch = report.score.by_micro_batch ? fmt::format(" {}", d.pair->a.micro_batch) : "";
      table.rows.push_back(causes_row(
          fmt::format("{}{} of layer {}", short_phase_name(d.pair->a.phase), micro_batch, d.pair->a.layer), d.causes));
    }
  }
  table.rows.push_back(causes_row(fmt::format("all {} phases", report.differences.size()), all));
  return table;
}

PageTable families_rows(const ComparisonReport& report) {
  PageTable table{"Kernels of one family", "lr", {"family", "a kernels", "b kernels", "a us", "b us", "a - b us"}, {}};
  for (const FamilyDifference& f : by_family(report.differences)) {
    table.rows.push_back({name_of(f.family), fmt::format("{}", f.a_count), fmt::format("{}", f.b_count),
                          fmt::format("{:.1f}", to_us(f.a)), fmt::format("{:.1f}", to_us(f.b)), signed_us(f.a - f.b)});
  }
  return table;
}

}  // namespace

TimelinePage compare_page(const ComparisonReport& report, const ComparedSide& a, const ComparedSide& b) {
  PairOfPhase pairs;
  for (const PhaseDifference& d : report.differences) {
    pairs[{short_phase_name(d.pair->a.phase), d.pair->a.layer, d.pair->a.micro_batch}] = &d;
  }
  TimelinePage page;
  page.title = fmt::format("{} against {}", report.a, report.b);
  page.summary = {
      fmt::format("Phases compared take: a {:.3f} ms, b {:.3f} ms, a / b - 1 = {:+.1f} %.",
                  to_us(report.score.a_span) / 1e3, to_us(report.score.b_span) / 1e3, 100 * report.score.span_error),
      fmt::format("With the time between them in which no phase runs: a {:.3f} ms, b {:.3f} ms, {:+.1f} %.",
                  to_us(report.score.a_elapsed()) / 1e3, to_us(report.score.b_elapsed()) / 1e3,
                  100 * report.score.elapsed_error()),
      "Both timelines count from the start of the first phase that is compared."};
  page.views = {side_of("a: " + report.a, a, pairs), side_of("b: " + report.b, b, pairs)};
  page.tables = {causes_rows(report), families_rows(report)};
  page.sources.push_back({"What the command printed", to_table(report)});
  return page;
}

}  // namespace moeline
