#include "timeline/compared_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "timeline/step_phases.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

const StepKind* kind_named(const SteppedTrace& side, const std::string& name) {
  const auto found =
      std::find_if(side.kinds.begin(), side.kinds.end(), [&](const StepKind& kind) { return kind.kind == name; });
  return found == side.kinds.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(const SteppedTrace& side) {
  std::vector<std::string> names;
  for (const StepKind& kind : side.kinds) names.push_back(kind.kind);
  return names;
}

std::vector<std::string> lacking(const SteppedTrace& side, const SteppedTrace& other) {
  std::vector<std::string> names = names_of(side);
  std::erase_if(names, [&](const std::string& name) { return kind_named(other, name) != nullptr; });
  return names;
}

}  // namespace

std::optional<SteppedTrace> stepped(Trace& trace, Interpretation& meaning) {
  if (trace.steps.empty() || holds_most(meaning)) return std::nullopt;
  // Whoever names a few phases inside the profiler's steps wants these.
  if (trace.steps.front().kind == "ProfilerStep" && !meaning.phases.empty()) return std::nullopt;
  std::vector<StepWindow> steps = step_windows(trace, meaning);
  std::vector<StepKind> kinds = step_kinds(trace, steps);
  return SteppedTrace{std::move(trace), std::move(meaning), std::move(steps), std::move(kinds)};
}

StepPairs pair_steps(const SteppedTrace& a, const SteppedTrace& b) {
  StepPairs pairs{{}, lacking(a, b), lacking(b, a)};
  for (const StepKind& of_b : b.kinds) {
    const StepKind* of_a = kind_named(a, of_b.kind);
    if (of_a == nullptr) continue;
    const StepWindow& median_a = a.steps[of_a->median];
    const StepWindow& median_b = b.steps[of_b.median];
    pairs.common.push_back(
        {of_b.kind, of_a->steps.size(), of_b.steps.size(), std::chrono::nanoseconds(median_a.time.length_ns()),
         std::chrono::nanoseconds(median_b.time.length_ns()), median_a.layers.size() == median_b.layers.size()});
  }
  if (!pairs.common.empty()) return pairs;
  throw SpecError(fmt::format("the two sides have no kind of step in common: a has {}; b has {}", some_of(names_of(a)),
                              some_of(names_of(b))));
}

Interpretation step_phases(const SteppedTrace& side, const std::set<std::string>& divided) {
  return phases_of_steps(side.trace, side.meaning, side.steps, side.kinds, divided);
}

}  // namespace moeline
