// A whole pipeline as a person reads it.
#include <fmt/format.h>

#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/simulate_output.hpp"

namespace moeline {
namespace {

struct RankTotals {
  int slots = 0;
  Time busy{};
};

std::vector<RankTotals> totals_by_rank(const Run& run) {
  std::vector<RankTotals> ranks(static_cast<std::size_t>(run.setup.scenario.parallelism.pp));
  for (const PhaseTimes& slot : run.phases) {
    ++ranks[slot.rank].slots;
    ranks[slot.rank].busy += slot.busy;
  }
  return ranks;
}

std::string pipeline_head(const Scenario& s) {
  const SlotCosts& costs = *s.slot_costs;
  const std::string chunks = s.parallelism.virtual_pp > 1 ? fmt::format(" x {} chunks", s.parallelism.virtual_pp) : "";
  std::string text = fmt::format("{}: {} ranks{}, {} micro-batches; F {:g}, B {:g}", s.schedule, s.parallelism.pp,
                                 chunks, micro_batches(s), costs.f, costs.b);
  if (costs.w > 0) text += fmt::format(", W {:g}", costs.w);
  if (costs.f_and_b > 0) text += fmt::format(", F&B {:g}", costs.f_and_b);
  return text + " ms\n\n";
}

double to_ms(Time time) { return to_us(time) / 1e3; }

}  // namespace

std::string pipeline_table(const Run& run) {
  const Time step = run.metrics.span;
  std::string text = pipeline_head(run.setup.scenario);
  text += metric_table(run) + "\n";
  text += fmt::format("{:>6} {:>8} {:>17} {:>17}\n", "rank", "slots", "busy, ms", "bubble, ms");
  int rank = 0;
  for (const RankTotals& totals : totals_by_rank(run)) {
    text += fmt::format("{:>6} {:>8} {:>17.3f} {:>17.3f}\n", rank++, totals.slots, to_ms(totals.busy),
                        to_ms(step - totals.busy));
  }
  return text + fmt::format("\n{} tasks\n", run.program.graph.size());
}

}  // namespace moeline
