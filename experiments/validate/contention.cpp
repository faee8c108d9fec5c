#include "experiments/validate/contention.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "calib/fit/bench_observations.hpp"
#include "engine/simulate.hpp"

namespace moeline {
namespace {

constexpr double kLong = 1000;  // times the kernel's time alone: a neighbour that stays

class Pair {
 public:
  explicit Pair(const MachineFacts& machine)
      : machine_(machine),
        pool_(draft_.add_pool("SMs", static_cast<int>(machine.sms))),
        hbm_(draft_.add_link("HBM", machine.hbm_GBps)) {}

  TaskId add(Hold hold, double sms, double us, double hbm_GBps) {
    Task task;
    task.solo = from_us(us);
    task.pool = pool_;
    task.sms = static_cast<std::uint16_t>(sms);
    task.hold = hold;
    const Usage usage{hbm_, std::min(hbm_GBps, machine_.hbm_GBps)};
    return draft_.add(task, "task", std::span(&usage, hbm_GBps > 0 ? 1 : 0));
  }

  /// When this task ends, kUnknown if the neighbour ends first. The neighbour comes first where both want the same.
  [[nodiscard]] double end_us(TaskId task, TaskId neighbour) {
    const Timeline timeline = simulate(TaskGraph(std::move(draft_)));
    if (timeline.spans[task].start >= timeline.spans[neighbour].end) return kUnknown;
    return to_us(timeline.spans[task].end);
  }

  [[nodiscard]] double makespan_us() { return to_us(simulate(TaskGraph(std::move(draft_))).makespan); }

 private:
  const MachineFacts& machine_;
  TaskGraphDraft draft_;
  ResourceId pool_, hbm_;
};

using Medians = std::map<std::string, double>;  // by metric, of one neighbourhood

double predict(const Measurement& m, const Medians& medians, const MachineFacts& machine) {
  const Operator op = bench_operator(m);
  const double alone = medians.at("time_alone");
  const Hold hold = row_of(op.family).is_resident ? Hold::resident : Hold::elastic;
  const double sms = bench_sms(m, machine);
  const double hbm_GBps = op.bytes / alone / 1e3;
  Pair pair(machine);
  if (m.words.at("beside") == "kernel") {
    pair.add(hold, sms, alone, hbm_GBps);
    pair.add(hold, sms, alone, hbm_GBps);
    return pair.makespan_us();
  }
  const auto copy = medians.find("copy_time_alone");  // of 10^6 bytes
  const double taken_GBps = copy == medians.end() ? 0 : 1e3 / copy->second;
  const TaskId neighbour = pair.add(Hold::resident, m.at("sms"), kLong * alone, taken_GBps);
  return pair.end_us(pair.add(hold, sms, alone, hbm_GBps), neighbour);
}

}  // namespace

std::vector<ContentionScore> score_contention(const BenchTable& table, const MachineFacts& machine) {
  std::map<std::string, Medians> medians;  // by parameters
  for (const Measurement& m : table.measurements) {
    if (m.key == "contention") medians[m.parameters][m.metric] = m.median();
  }
  std::vector<ContentionScore> scores;
  for (const Measurement& m : table.measurements) {
    if (m.key != "contention" || m.metric != "time") continue;
    const Medians& of = medians.at(m.parameters);
    scores.push_back({m.words.at("kernel"), m.words.at("beside"), m.parameters, of.at("time_alone"), m.median(),
                      predict(m, of, machine)});
  }
  return scores;
}

}  // namespace moeline
