#include "measured/names.hpp"

#include <fmt/format.h>

namespace moeline {

std::string kernel_name(const Measured& m, std::int64_t event) {
  return short_kernel_name(m.trace.name(m.trace.gpu_events[static_cast<std::size_t>(event)]));
}

std::string phase_name(const Measured& m, std::int64_t event) {
  const std::int32_t phase = m.meaning.places[static_cast<std::size_t>(event)].phase;
  if (phase == kNoPhase) return "";
  const TracePhase& p = m.meaning.phases[static_cast<std::size_t>(phase)];
  return fmt::format("{} of layer {}", short_phase_name(p.name), p.place.layer);
}

std::string place_name(const Measured& m, std::int64_t event) {
  std::string phase = phase_name(m, event);
  if (!phase.empty()) return phase;
  const std::int32_t step = m.trace.gpu_events[static_cast<std::size_t>(event)].step;
  if (step < 0) return kernel_name(m, event);
  return fmt::format("{} of step {}", kernel_name(m, event), m.trace.steps[static_cast<std::size_t>(step)].number);
}

}  // namespace moeline
