#include "measured/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "measured/breakdown.hpp"

namespace moeline {
namespace {

constexpr const char* kKernelPrefix = "kernel:";

std::string phase_of(const Measured& m, Node node) {
  const std::int32_t phase = node.is_call ? kNoPhase : m.meaning.places[node.index].phase;
  return phase == kNoPhase ? "" : m.meaning.phases[static_cast<std::size_t>(phase)].name;
}

std::vector<std::string> phase_names(const Measured& m) {
  std::set<std::string> names;
  for (const TracePhase& phase : m.meaning.phases) names.insert(phase.name);
  return {names.begin(), names.end()};
}

bool crosses_streams(Reason reason) {
  return reason == Reason::event_wait || reason == Reason::flow || reason == Reason::start_time;
}

bool is_removed(const Measured& m, const Dependency& edge, const WhatIf::Removed& removed) {
  if (removed.after.empty()) return name_of(edge.reason) == removed.before;
  return crosses_streams(edge.reason) && phase_of(m, edge.before) == removed.before &&
         phase_of(m, edge.after) == removed.after;
}

}  // namespace

ScaleFactors::ScaleFactors(const Measured& m, const std::vector<WhatIf::Scale>& scales)
    : m_(m), events_(m.trace.gpu_events.size(), 1) {
  for (const WhatIf::Scale& scale : scales) apply(scale);
}

void ScaleFactors::apply(const WhatIf::Scale& scale) {
  if (scale.what == "gaps") {
    gaps *= scale.factor;
  } else if (scale.what == "host") {
    host *= scale.factor;
  } else if (!apply_to_events(scale)) {
    refuse(scale.what);
  }
}

bool ScaleFactors::apply_to_events(const WhatIf::Scale& scale) {
  bool any = false;
  for (std::uint32_t i = 0; i < events_.size(); ++i) {
    if (!means(scale.what, i)) continue;
    events_[i] *= scale.factor;
    any = true;
  }
  return any;
}

bool ScaleFactors::means(const std::string& what, std::uint32_t event) const {
  const KernelClass c = m_.meaning.classes[event];
  if (what == "compute") return work_of(c) == Work::compute;
  if (what == "transfer") return is_communication(c) && c != KernelClass::barrier;
  if (what == "barrier" || what == "dispatch" || what == "combine") return name_of(c) == what;
  if (what.starts_with(kKernelPrefix)) return name_of(c) == what.substr(std::string_view(kKernelPrefix).size());
  return phase_of(m_, {event, false}) == what;
}

void ScaleFactors::refuse(const std::string& what) const {
  std::vector<std::string> names = {"compute", "transfer", "barrier", "dispatch", "combine", "gaps", "host"};
  for (const KernelClass c : m_.meaning.classes) {
    std::string name = kKernelPrefix + name_of(c);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  for (const std::string& phase : phase_names(m_)) names.push_back(phase);
  const bool known = std::find(names.begin(), names.end(), what) != names.end();
  throw SpecError("--scale: " + (known ? "the trace has no " + what : unknown_name("name", what, names)));
}

std::vector<bool> kept_dependencies(const Measured& m, const std::vector<WhatIf::Removed>& removed) {
  std::vector<bool> keep(m.dependencies.size(), true);
  for (const WhatIf::Removed& each : removed) {
    bool any = false;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (!is_removed(m, m.dependencies[i], each)) continue;
      keep[i] = false;
      any = true;
    }
    if (any) continue;
    std::set<std::string> known;
    for (const Dependency& edge : m.dependencies) {
      known.insert(crosses_streams(edge.reason) ? phase_of(m, edge.before) + "->" + phase_of(m, edge.after)
                                                : name_of(edge.reason));
    }
    throw SpecError("--remove: " + unknown_name("dependency",
                                                each.after.empty() ? each.before : each.before + "->" + each.after,
                                                std::vector<std::string>(known.begin(), known.end())));
  }
  return keep;
}

Time scaled(Time time, double factor) { return factor == 1 ? time : from_us(to_us(time) * factor); }

WhatIf::Scale parse_scale(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  double factor = -1;
  if (equals != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, end, factor);
    if (error != std::errc() || rest != end) factor = -1;
  }
  constexpr double kMost = 1e6;
  if (equals == 0 || !(factor >= 0) || factor > kMost) {
    throw SpecError(fmt::format("--scale '{}': write NAME=FACTOR, with a factor from 0 to {}", text, kMost));
  }
  return {text.substr(0, equals), factor};
}

WhatIf::Removed parse_removed(const std::string& text) {
  const auto trimmed = [](std::string part) {
    part.erase(0, std::min(part.size(), part.find_first_not_of(' ')));
    part.erase(part.find_last_not_of(' ') + 1);
    return part;
  };
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) return {trimmed(text), ""};
  WhatIf::Removed removed{trimmed(text.substr(0, arrow)), trimmed(text.substr(arrow + 2))};
  if (removed.before.empty() || removed.after.empty()) {
    throw SpecError(fmt::format("--remove '{}': write PHASE->PHASE, or the name of a reason", text));
  }
  return removed;
}

}  // namespace moeline
