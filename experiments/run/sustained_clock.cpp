#include "experiments/run/sustained_clock.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/simulate.hpp"
#include "experiments/run/build_program.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "schedules/scenario/fold.hpp"
#include "timeline/intervals.hpp"

namespace moeline {
namespace {

constexpr double kWindowUs = 5000;  // after so long a B200 had lowered its clock (flashinfer issue 2899)

double seconds(Time time) { return to_us(time) / 1e6; }

int layer_of(const Program& program, TaskId task) {
  return static_cast<int>(program.graph.phases()[program.graph.label(task).phase].layer);
}

// Where the work of a folded program would be if all its layers were there: a layer that stands for others comes again
// and again, a period apart, and what follows it comes later.
class Unfolded {
 public:
  Unfolded(const Program& program, const Timeline& timeline)
      : program_(program), copies_(program.fold.left_out / program.fold.period) {
    if (copies_ == 0) return;
    const int first = program.fold.first;
    period_ = start_of(first + program.fold.period, timeline) - start_of(first, timeline);
  }

  [[nodiscard]] Time makespan(const Timeline& timeline) const { return timeline.makespan + copies_ * period_; }

  template <class Visit>
  void each(TaskId task, Visit visit) const {
    const int layer = layer_of(program_, task);
    const bool behind = layer >= program_.fold.first + program_.fold.period;
    const Time later = behind ? copies_ * period_ : Time::zero();
    for (int copy = 0; copy < program_.fold.repeats(layer); ++copy) visit(later + copy * period_);
  }

 private:
  // Of the layer's first kernel; the host is far ahead.
  [[nodiscard]] Time start_of(int layer, const Timeline& timeline) const {
    Time first = Time::max();
    for (TaskId task = 0; task < program_.graph.size(); ++task) {
      const bool kernel = program_.graph.task_class(task).role != Role::host;
      if (kernel && layer_of(program_, task) == layer) first = std::min(first, timeline.spans[task].start);
    }
    return first;
  }

  const Program& program_;
  int copies_;
  Time period_{};
};

// A kernel's work, spread evenly over the windows that its span touches.
void add_kernel(const KernelTraits& traits, Time solo, const Interval& span, Time width,
                std::vector<PowerLoad>& windows) {
  const Time length = span.end - span.start;
  if (length <= Time::zero()) return;
  const auto last = static_cast<std::size_t>((span.end - Time{1}) / width);
  for (auto i = static_cast<std::size_t>(span.start / width); i <= last && i < windows.size(); ++i) {
    const Time begin = width * static_cast<Time::rep>(i);
    const Time inside = std::min(span.end, begin + width) - std::max(span.start, begin);
    const double at_work = seconds(solo) * ratio(inside, length);
    windows[i].clocked_joules += traits.power.clocked_w * at_work;
    windows[i].other_joules += traits.power.other_w * at_work;
    windows[i].clocked_seconds += traits.clocked * at_work;
  }
}

// Of equal width, 5 ms or up to twice as much.
std::vector<PowerLoad> windows_of(const Program& program, const Timeline& timeline) {
  const Unfolded unfolded(program, timeline);
  const Time makespan = unfolded.makespan(timeline);
  const auto count = static_cast<Time::rep>(std::max(1.0, std::floor(to_us(makespan) / kWindowUs)));
  const Time width = makespan / count + Time{1};
  std::vector<PowerLoad> windows(static_cast<std::size_t>(count), PowerLoad{.seconds = seconds(width)});
  for (TaskId task = 0; task < program.traits.size(); ++task) {
    const Span& span = timeline.spans[task];
    unfolded.each(task, [&](Time later) {
      add_kernel(program.traits[task], program.graph.task(task).solo, {span.start + later, span.end + later}, width,
                 windows);
    });
  }
  for (PowerLoad& window : windows) window.clocked_seconds = std::min(window.clocked_seconds, window.seconds);
  return windows;
}

// Half of the passes or more run beside another.
bool mostly_overlaps(const Scenario& scenario) {
  if (!overlaps_passes(scenario)) return false;
  int forward = 0, pairs = 0;
  const std::vector<RankSlots> ranks = pipeline_slots(scenario);
  for (const Slot& slot : ranks.front()) {
    forward += has_forward(slot.kind) ? 1 : 0;
    pairs += slot.kind == SlotKind::forward_backward ? 1 : 0;
  }
  return 2 * pairs >= forward;
}

// One mean rank, that waits for nobody. Of a pipeline, layers as most of its slots have them.
Setup one_rank(const Setup& setup) {
  const std::optional<PipelineKind>& pipeline = setup.scenario.kind().pipeline;
  Setup one = pipeline ? layers_of_pipeline(setup, mostly_overlaps(setup.scenario) ? "dualpipe-chunk" : "sequential")
              : is_staged(setup.scenario) ? one_pass(setup)
                                          : setup;
  one.every_rank = false;
  one.variation = {};
  return folded(std::move(one));
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
bool may_be_slowed(const std::string& fitted, const Setup& setup) {
  const std::optional<Family> family = family_named(fitted);
  const Family never_run = setup.model.is_mla() ? Family::gqa_decode : Family::mla_decode;
  return family && !is_communication(*family) && *family != never_run && setup.kernels().is_burst(fitted);
}

}  // namespace

bool clock_matters(const Setup& setup) {
  const auto& fits = setup.kernels().fits;
  return knows_power(setup.machine.facts) &&
         std::any_of(fits.begin(), fits.end(), [&](const auto& fit) { return may_be_slowed(fit.first, setup); });
}

Setup at_sustained_clock(const Setup& setup) {
  constexpr int kMostTimes = 4;  // what runs slower spreads over more windows
  constexpr double kClose = 1e-3;
  constexpr double kLowest = 0.1;  // below which no GPU goes for its power
  Setup clocked = setup;
  clocked.clock = 1;
  if (setup.scenario.clock == ClockChoice::burst || !clock_matters(setup)) return clocked;
  Setup one = one_rank(clocked);
  for (int i = 0; i < kMostTimes; ++i) {
    const double change = change_of_clock(one);
    one.clock = std::max(kLowest, one.clock * change);
    if (std::abs(change - 1) < kClose) break;
  }
  clocked.clock = one.clock;
  return clocked;
}

double power_w(const Run& run) {
  const Program& program = run.program;
  double joules = 0;
  for (TaskId task = 0; task < program.traits.size(); ++task) {
    const KernelTraits& traits = program.traits[task];
    const double on_mean_gpu = seconds(program.graph.task(task).solo) / traits.lengthened(run.setup.slowness(0));
    const double at_work = on_mean_gpu * program.fold.repeats(layer_of(program, task));  // a slower one does as much
    joules += (traits.power.clocked_w + traits.power.other_w) * at_work;
  }
  return run.setup.machine.facts.idle_w + joules / seconds(run.metrics.span);
}

double clock_mhz(const Setup& setup) { return setup.clock * setup.machine.facts.boost_clock_mhz; }

}  // namespace moeline
