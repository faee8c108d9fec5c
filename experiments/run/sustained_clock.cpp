#include "experiments/run/sustained_clock.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/simulate.hpp"
#include "experiments/run/build_program.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

constexpr double kWindowUs = 5000;  // after so long a B200 had lowered its clock (flashinfer issue 2899)

double seconds(Time time) { return to_us(time) / 1e6; }

// A kernel's work, spread evenly over the windows that its span touches.
void add_kernel(const KernelTraits& traits, const Task& task, const Span& span, Time width,
                std::vector<PowerLoad>& windows) {
  const Time length = span.end - span.start;
  if (length <= Time::zero()) return;
  const auto last = static_cast<std::size_t>(std::max<Time::rep>(0, (span.end - Time{1}) / width));
  for (auto i = static_cast<std::size_t>(span.start / width); i <= last && i < windows.size(); ++i) {
    const Time begin = width * static_cast<Time::rep>(i);
    const Time inside = std::min(span.end, begin + width) - std::max(span.start, begin);
    const double at_work = seconds(task.solo) * ratio(inside, length);
    windows[i].clocked_joules += traits.power.clocked_w * at_work;
    windows[i].other_joules += traits.power.other_w * at_work;
    windows[i].clocked_seconds += traits.clocked * at_work;
  }
}

// Of equal width, 5 ms or a little more.
std::vector<PowerLoad> windows_of(const Program& program, const Timeline& timeline) {
  const auto count = static_cast<Time::rep>(std::max(1.0, std::floor(to_us(timeline.makespan) / kWindowUs)));
  const Time width = timeline.makespan / count + Time{1};
  std::vector<PowerLoad> windows(static_cast<std::size_t>(count), PowerLoad{.seconds = seconds(width)});
  for (TaskId task = 0; task < program.traits.size(); ++task) {
    add_kernel(program.traits[task], program.graph.task(task), timeline.spans[task], width, windows);
  }
  for (PowerLoad& window : windows) window.clocked_seconds = std::min(window.clocked_seconds, window.seconds);
  return windows;
}

// One rank, that the others are like, and of equal layers a few: power is the same, and found at once.
Setup one_rank(Setup setup) {
  setup.every_rank = false;
  setup.variation = {};
  return folded(std::move(setup));
}

// How far the clock that all windows have must change so that their work takes as long as if each had the clock that
// the cap leaves it: the mean, by the time that goes by it.
double change_of_clock(const Setup& setup) {
  const Program program = build_program(setup);
  double seconds = 0, stretched = 0;
  for (const PowerLoad& window : windows_of(program, simulate(program.graph))) {
    seconds += window.clocked_seconds;
    stretched += window.clocked_seconds / capped_clock(window, 1 / setup.clock, setup.machine.facts);
  }
  return stretched > 0 ? seconds / stretched : 1;
}

// A set may have borrowed the decode of the other kind of attention.
bool may_compute(const std::string& fitted, const Architecture& model) {
  const std::optional<Family> family = family_named(fitted);
  const Family never_run = model.is_mla() ? Family::gqa_decode : Family::mla_decode;
  return family && !is_communication(*family) && *family != never_run;
}

}  // namespace

bool clock_matters(const Setup& setup) {
  const auto& fits = setup.kernels.fits;
  return knows_power(setup.machine.facts) && std::any_of(fits.begin(), fits.end(), [&](const auto& fit) {
           return fit.second.clock == Clock::burst && may_compute(fit.first, setup.model);
         });
}

Setup at_sustained_clock(const Setup& setup) {
  constexpr int kMostTimes = 4;  // what runs slower spreads over more windows
  constexpr double kClose = 1e-3;
  Setup clocked = setup;
  clocked.clock = 1;
  if (setup.scenario.clock == ClockChoice::burst || !clock_matters(setup)) return clocked;
  Setup one = one_rank(clocked);
  for (int i = 0; i < kMostTimes; ++i) {
    const double change = change_of_clock(one);
    one.clock *= change;
    if (std::abs(change - 1) < kClose) break;
  }
  clocked.clock = one.clock;
  return clocked;
}

double power_w(const Run& run) {
  const Program& program = run.program;
  double joules = 0;
  for (TaskId task = 0; task < program.traits.size(); ++task) {
    const KernelPower& power = program.traits[task].power;
    const auto layer = static_cast<int>(program.graph.phases()[program.graph.label(task).phase].layer);
    const double at_work = seconds(program.graph.task(task).solo) * program.fold.repeats(layer);
    joules += (power.clocked_w + power.other_w) * at_work;
  }
  return run.setup.machine.facts.idle_w + joules / seconds(run.metrics.span);
}

double clock_mhz(const Setup& setup) { return setup.clock * setup.machine.facts.boost_clock_mhz; }

}  // namespace moeline
