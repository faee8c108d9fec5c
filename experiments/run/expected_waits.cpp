#include "experiments/run/expected_waits.hpp"

#include <boost/math/tools/toms748_solve.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/random.hpp"
#include "engine/simulate.hpp"
#include "experiments/run/build_program.hpp"
#include "experiments/run/stragglers.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

constexpr int kDraws = 16;
constexpr int kFewestDraws = 2;
constexpr int kEnoughDraws = 4096;  // ranks x layers x draws of inference, whose mean is over all of them
constexpr int kMostRanks = 256;
constexpr double kRowsStep = 0.1;  // by which rows are raised to see what they cost

// The same program with more rows on each rank; nothing where rows do not vary.
Timeline with_more_rows(const Setup& setup) {
  const Routing& routing = setup.scenario.routing;
  if (routing.rows_spread == 0 && routing.forward_rows.empty()) return {};
  Setup more = setup;
  more.rows_factor = 1 + kRowsStep;
  return simulate(build_program(more).graph);
}

using Transfer = std::tuple<std::string, std::uint32_t, std::uint32_t>;  // its name, micro-batch and piece
using Waits = std::map<Transfer, double>;                                // us

Transfer transfer_of(const Phase& phase) { return {phase.name, phase.micro_batch, phase.piece}; }

// By transfer, over the layers of inference: they are alike, and meet so often that nothing adds up from one to the
// next, so that what differs is chance. Only before the first have ranks come a longer way since they met.
Waits average_over_layers(const Setup& setup, const Program& alone, const std::vector<double>& waits) {
  const int first = setup.first_main_layer();
  const int simulated = setup.simulated_layers();
  const auto weight_of = [&](int layer) {
    const bool others = layer > first && layer < first + simulated;
    return others ? (setup.scenario.layers - 1.0) / (simulated - 1) : 1.0;
  };
  struct Sum {
    double waits = 0, weights = 0;
  };
  std::map<Transfer, Sum> sums;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const Phase& phase = alone.graph.phases()[alone.meetings[i].phase];
    const double weight = weight_of(static_cast<int>(phase.layer));
    Sum& sum = sums[transfer_of(phase)];
    sum.waits += weight * waits[i];
    sum.weights += weight;
  }
  Waits means;
  for (const auto& [transfer, sum] : sums) means[transfer] = sum.waits / sum.weights;
  return means;
}

struct DrawnWaits {
  std::vector<double> us;  // by meeting of the program without waits
  double alone_us = 0;     // the end of this program
  double later_us = 0;     // how much later the last rank ends
};

DrawnWaits drawn_waits(const Setup& setup, const Program& alone, int draws) {
  const int all = setup.scenario.parallelism.group();
  const int ranks = std::min(all, kMostRanks);
  const double scale = (all == ranks ? 1 : expected_maximum(all) / expected_maximum(ranks)) / draws;
  const Timeline timeline = simulate(alone.graph);
  const TimedChains chains = timed_chains(setup, alone, timeline, with_more_rows(setup), kRowsStep);
  const std::vector<double> slowness = expected_slowness(ranks, setup.scenario.speed_spread, setup.slowness(0));
  DrawnWaits waits{std::vector<double>(alone.meetings.size(), 0), to_us(timeline.makespan)};
  StragglerDraws ranks_drawn(setup, alone, chains, slowness);
  for (int draw = 0; draw < draws; ++draw) {
    ranks_drawn.run(static_cast<std::uint64_t>(draw));
    waits.later_us += scale * (ranks_drawn.end_us() - waits.alone_us);
    for (std::size_t i = 0; i < waits.us.size(); ++i) {
      const Meeting& meeting = alone.meetings[i];
      const bool few = meeting.ranks > 0 && meeting.ranks <= ranks;
      waits.us[i] += (few ? 1.0 / draws : scale) * ranks_drawn.wait_us(meeting);
    }
  }
  return waits;
}

// In the MoE layers of a pass, whose ranks have drifted apart as far as they do: those of the second half of eight.
std::map<std::string, double> waits_by_phase(const Setup& setup, const char* schedule) {
  constexpr int kPipelineDraws = 4;  // of four layers each
  const Setup layers = layers_of_pipeline(setup, schedule);
  const int count = layers.scenario.layers;
  const Program alone = build_program(layers);
  const std::vector<double> waits = drawn_waits(layers, alone, kPipelineDraws).us;
  std::map<std::string, double> means;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const Phase& phase = alone.graph.phases()[alone.meetings[i].phase];
    if (static_cast<int>(phase.layer) >= count / 2) means[phase.name] += waits[i] / (count - count / 2) / phase.pieces;
  }
  return means;
}

double wait_us(const Meeting& meeting, const Program& program, const Waits& waits) {
  return waits.at(transfer_of(program.graph.phases()[meeting.phase]));
}

// Where something runs beside a wait, it hides some of it, and of a long one less than of a short one: mean waits make
// another step than waits do on average. So all are made as many times longer or shorter as lets the step end when the
// ranks do on average. The end moves with them, not at all first and ever faster.
double times_that_show(const Program& alone, const Waits& waits, const DrawnWaits& drawn) {
  constexpr double kEqual = 1e-5, kMost = 16;
  constexpr std::uintmax_t kMostSteps = 12;
  constexpr int kBits = 16;
  TaskGraph graph = alone.graph;
  const auto too_late_us = [&](double times) {
    for (const Meeting& meeting : alone.meetings) {
      if (meeting.wait == kNoTask) continue;
      const Time without = alone.graph.task(meeting.wait).solo;
      graph.set_solo(meeting.wait, without + from_us(times * wait_us(meeting, alone, waits)));
    }
    return to_us(simulate(graph).makespan) - drawn.alone_us - drawn.later_us;
  };
  double least = 0, most = 1, at_least = -drawn.later_us, at_most = too_late_us(most);
  while (at_most < -kEqual * drawn.alone_us && most < kMost) {
    least = std::exchange(most, 2 * most);
    at_least = std::exchange(at_most, too_late_us(most));
  }
  const auto is_equal = [&](double us) { return std::abs(us) <= kEqual * drawn.alone_us; };
  if (is_equal(at_most) || at_most < 0) return most;
  if (is_equal(at_least) || at_least > 0) return least;
  const auto until_equal = [&](double times) {
    const double us = too_late_us(times);
    return is_equal(us) ? 0 : us;
  };
  std::uintmax_t steps = kMostSteps;
  const boost::math::tools::eps_tolerance<double> close(kBits);
  const auto found = boost::math::tools::toms748_solve(until_equal, least, most, at_least, at_most, close, steps);
  return (found.first + found.second) / 2;
}

// Of many, ranks differ by little, and what the mean wait makes is within a hundredth of what waits make.
bool few_rows(const Setup& setup) {
  constexpr double kFewRows = 1024;
  return setup.model.n_routed_experts > 0 && setup.inference_work(MicroBatch{}).load.valid < kFewRows;
}

// `alone` is the program of the setup.
Waits waits_of_inference(const Setup& setup, const Program& alone) {
  const int ranks = std::min(setup.scenario.parallelism.group(), kMostRanks);
  const int draws = std::max(kFewestDraws, kEnoughDraws / (ranks * setup.simulated_layers()));
  const DrawnWaits drawn = drawn_waits(setup, alone, draws);
  Waits waits = average_over_layers(setup, alone, drawn.us);
  if (setup.scenario.kind().plan.empty() || !few_rows(setup)) return waits;
  const double times = times_that_show(alone, waits, drawn);
  for (auto& [transfer, us] : waits) us *= times;
  return waits;
}

// Layers that are alike are drawn folded, whether or not `program`, that of the setup, is.
Waits waits_of_folded(const Setup& setup, const Program& program) {
  if (setup.fold.left_out > 0) return waits_of_inference(setup, program);
  const Setup fewer = folded(setup);
  if (fewer.fold.left_out == 0) return waits_of_inference(setup, program);
  return waits_of_inference(fewer, build_program(fewer));
}

Program inference_with_waits(const Setup& setup) {
  Program program = build_program(setup);
  const Waits waits = waits_of_folded(setup, program);
  for (const Meeting& meeting : program.meetings) add_wait(program, meeting, wait_us(meeting, program, waits));
  return program;
}

Program chunk_with_waits(const Setup& setup) {
  Program program = build_program(setup);
  const std::vector<double> waits = drawn_waits(setup, program, kDraws).us;
  for (std::size_t i = 0; i < waits.size(); ++i) add_wait(program, program.meetings[i], waits[i]);
  return program;
}

}  // namespace

void wait_as_alone(const Setup& alone, Program& program) {
  if (!alone.expects_waits()) return;
  const Waits waits = waits_of_folded(alone, build_program(alone));
  for (const Meeting& meeting : program.meetings) {
    const auto found = waits.find({program.graph.phases()[meeting.phase].name, 0, 0});
    if (found != waits.end()) add_wait(program, meeting, found->second);
  }
}

Setup with_expected_waits(const Setup& setup) {
  Setup waiting = setup;
  if (!setup.expects_waits() || setup.scenario.parallelism.group() == 1) return waiting;
  waiting.waits.alone_us = waits_by_phase(setup, "sequential");
  if (overlaps_passes(setup.scenario)) {
    waiting.waits.overlapped_us = waits_by_phase(setup, "dualpipe-chunk");
  }
  return waiting;
}

Program program_with_waits(const Setup& setup) {
  if (!setup.expects_waits()) return build_program(setup);
  return setup.scenario.phase() == WorkloadPhase::train ? chunk_with_waits(setup) : inference_with_waits(setup);
}

}  // namespace moeline
