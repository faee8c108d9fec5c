#include "experiments/plan_training/layout_points.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/run/step_memory.hpp"
#include "experiments/run/run.hpp"
#include "experiments/run/run_metrics.hpp"

namespace moeline {
namespace {

// Names that the plan made up stand in no file of the user's.
std::string without_place(const SpecError& error) {
  const std::string text = error.what();
  const std::size_t place = text.find(": ");
  return place == std::string::npos ? text : text.substr(place + 2);
}

}  // namespace

std::string LayoutPoint::bound_by() const {
  constexpr double kLittle = 0.1;
  if (bubble_ms + exposed_ms <= kLittle * step_ms) return "computation";
  return bubble_ms > exposed_ms ? "bubble" : "communication";
}

double price_of(const LayoutPoint& point, const TrainingJob& job) {
  const double usd = job.hardware[point.layout.machine].usd_per_gpu_hour;
  return usd > 0 ? point.step_ms * usd : point.step_ms;
}

LayoutPoint LayoutPoints::quick(const Layout& layout, const std::vector<std::string>& changes) {
  std::vector<std::string> all = changes;
  all.emplace_back("speed_spread=0");
  return simulated(layout, "phase", all);
}

LayoutPoint LayoutPoints::confirmed(const Layout& layout) {
  LayoutPoint point = simulated(layout, "operator", {});
  if (!point.ran()) return simulated(layout, "phase", {});
  point.by_operators = true;
  return point;
}

LayoutPoint LayoutPoints::simulated(const Layout& layout, const char* level, const std::vector<std::string>& changes) {
  const std::string text = scenario_of(layout, job_, level);
  std::vector<std::string> set = changes_of(layout, job_);
  set.insert(set.end(), changes.begin(), changes.end());
  return *known_.get(text + fmt::format("{}", fmt::join(set, "\n")), [&] {
    LayoutPoint point{.layout = layout};
    try {
      const Setup setup = read_setup(Spec::parse(job_.file.string(), text), set);
      const double usable_gib = setup.machine.facts.memory_gib * (1 - job_.memory_reserve);
      point.memory_gib = gib(least_memory_bytes(setup));
      if (point.memory_gib > usable_gib) return point;
      const Run run = run_scenario(setup);
      point.step_ms = to_us(run.metrics.span) / 1e3;
      point.bubble_ms = bubble_ms(run);
      point.exposed_ms = to_us(run.metrics.exposed_comm) / 1e3;
      point.known = known_time(run);
      point.memory_gib = gib(memory_bytes(run));
      point.fits = point.memory_gib <= usable_gib;
      point.tokens_per_s = tokens_per_s(run);
      point.mfu = mfu(run);
    } catch (const SpecError& error) {
      point.refused = without_place(error);
    }
    return point;
  });
}

}  // namespace moeline
