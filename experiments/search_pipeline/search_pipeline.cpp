#include "experiments/search_pipeline/search_pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "base/parallel.hpp"
#include "experiments/memory/lasting_memory.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/search_pipeline/least_step.hpp"
#include "schedules/pipeline/stages.hpp"

namespace moeline {
namespace {

void add_partitions(int layers, int stages, Partition& first, std::vector<Partition>& all) {
  if (stages == 1) {
    all.push_back(first);
    all.back().push_back(layers);
    return;
  }
  for (int here = 1; here <= layers - stages + 1; ++here) {
    first.push_back(here);
    add_partitions(layers - here, stages - 1, first, all);
    first.pop_back();
  }
}

}  // namespace

double partition_count(int layers, int stages) {
  double count = layers < stages ? 0 : 1;
  for (int i = 1; i < stages; ++i) count = count * (layers - i) / i;
  return count;
}

std::vector<Partition> all_partitions(int layers, int stages) {
  std::vector<Partition> all;
  Partition first;
  if (layers >= stages) add_partitions(layers, stages, first, all);
  return all;
}

std::vector<Partition> neighbours_of(const Partition& partition) {
  std::vector<Partition> all;
  for (std::size_t from = 0; from < partition.size(); ++from) {
    for (std::size_t to = 0; to < partition.size(); ++to) {
      if (from == to || partition[from] == 1) continue;
      all.push_back(partition);
      --all.back()[from];
      ++all.back()[to];
    }
  }
  return all;
}

namespace {

using Changes = std::vector<std::string>;
using Instant = std::chrono::steady_clock::time_point;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kEqual = 1e-6;

Setup setup_of(const PipelineRequest& request, const Changes& changes, const Changes& how) {
  Changes assignments = request.assignments;
  assignments.insert(assignments.end(), changes.begin(), changes.end());
  assignments.insert(assignments.end(), how.begin(), how.end());
  return load_setup(request.scenario, assignments);
}

const std::string kBalanced = "stages=balanced";
// Which GPU is slow is chance: a partition is not to fit itself to that.
const Changes kBySlots = {"level=phase", "speed_spread=0"};

PipelineStep step_of(const PipelineRequest& request, const Changes& changes, const Changes& how) {
  const Run run = run_scenario(setup_of(request, changes, how));
  return {.schedule = run.setup.scenario.schedule,
          .changes = changes,
          .ms = to_us(run.metrics.span) / 1e3,
          .memory_gib = gib(memory_bytes(run)),
          .fits = fits_memory(run)};
}

// Decoder layers on each stage; those of MTP modules go with the heads.
Partition partition_of(const Setup& setup) {
  if (!setup.scenario.stage_layers.empty()) return setup.scenario.stage_layers;
  ProgramDraft draft(setup);
  TrainingPhases phases(draft);
  Partition partition;
  for (const StageBlocks& stage : stages_of(phases)) {
    partition.push_back(0);
    for (std::size_t i = 0; i < stage.size(); ++i) {
      const bool of_mtp = i > 0 && stage[i - 1].kind == BlockKind::mtp;
      if (is_layer(stage[i].kind) && !of_mtp) ++partition.back();
    }
  }
  return partition;
}

struct Leaf {
  Partition partition;
  double least_ms = 0;
  PipelineStep step{};
};

// One schedule's partitions.
class Partitions {
 public:
  Partitions(const PipelineRequest& request, Changes changes, Instant begin, const Progress& progress)
      : request_(&request),
        changes_(std::move(changes)),
        begin_(begin),
        progress_(&progress),
        setup_(setup_of(request, changes_, kBySlots)),
        least_(setup_),
        layers_(setup_.scenario.whole_model ? setup_.model.num_hidden_layers : setup_.scenario.layers),
        stages_(stage_count(setup_.scenario)) {
    answer_.schedule = setup_.scenario.schedule;
    answer_.floor_ms = least_.ms();
    answer_.plans = request.stages ? partition_count(layers_, stages_) + 1 : 1;
  }

  /// With the stages that it has without a list. Simulated once.
  const PipelineStep& as_it_is() {
    if (!as_it_is_) as_it_is_ = step_of(*request_, changes_, kBySlots);
    return *as_it_is_;
  }
  [[nodiscard]] const Changes& changes() const { return changes_; }
  [[nodiscard]] double floor_ms() const { return answer_.floor_ms; }
  /// Of those that may take less than `limit_ms`.
  ScheduleAnswer search(double limit_ms) && {
    note({{}, 0, as_it_is()});
    limit_ms_ = std::min(limit_ms, best_ms());
    if (answer_.floor_ms >= limit_ms_) {
      answer_.pruned = answer_.plans - 1;
    } else if (!request_->stages) {
      return std::move(answer_);
    } else if (answer_.plans <= kFew) {
      simulate(all_partitions(layers_, stages_));
    } else {
      descend();
    }
    answer_.exhaustive = static_cast<double>(answer_.evaluated) + answer_.pruned >= answer_.plans;
    return std::move(answer_);
  }

 private:
  static constexpr double kFew = 200'000;  // that are all bounded, in a second

  [[nodiscard]] bool may_go_on() const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    return answer_.evaluated < request_->most && (request_->seconds == 0 || seconds < request_->seconds);
  }
  [[nodiscard]] double best_ms() const { return answer_.best ? answer_.best->ms : kNever; }

  void note(const Leaf& leaf) {
    ++answer_.evaluated;
    if (!leaf.step.fits) return static_cast<void>(++answer_.too_large);
    if (leaf.step.ms >= best_ms() * (1 - kEqual)) return;
    answer_.best = leaf.step;
    best_ = leaf.partition;
    limit_ms_ = std::min(limit_ms_, leaf.step.ms);
  }

  // Those that may be faster and were not looked at before, the least work first.
  void simulate(const std::vector<Partition>& partitions) {
    constexpr std::size_t kRound = 16;
    std::vector<Leaf> leaves;
    for (const Partition& partition : partitions) {
      if (seen_.insert(partition).second) leaves.push_back({partition, least_.ms(partition)});
    }
    std::stable_sort(leaves.begin(), leaves.end(),
                     [](const Leaf& a, const Leaf& b) { return a.least_ms < b.least_ms; });
    for (std::size_t first = 0, end = 0; first < leaves.size() && may_go_on(); first = end) {
      end = std::min({first + kRound, first + request_->most - answer_.evaluated, leaves.size()});
      if (leaves[first].least_ms >= limit_ms_) {
        answer_.pruned += static_cast<double>(leaves.size() - first);
        return;
      }
      parallel_for(end - first, request_->workers, [&](std::size_t i) {
        Leaf& leaf = leaves[first + i];
        leaf.step = step_of(*request_, with_stages(leaf.partition), kBySlots);
      });
      for (std::size_t i = first; i < end; ++i) note(leaves[i]);
      (*progress_)(answer_.schedule.c_str(), answer_.evaluated, request_->most);
    }
  }

  void descend() {
    Partition even(static_cast<std::size_t>(stages_), layers_ / stages_);
    for (int i = 0; i < layers_ % stages_; ++i) ++even[static_cast<std::size_t>(i)];
    simulate({even});
    const Partition own = partition_of(setup_);
    const bool whole = *std::min_element(own.begin(), own.end()) > 0;  // a stage of heads alone no list can say
    Partition from = !best_.empty() ? best_ : whole ? own : even;
    while (may_go_on()) {
      simulate(neighbours_of(from));
      if (best_.empty() || best_ == from) return;
      from = best_;
    }
  }

  [[nodiscard]] Changes with_stages(const Partition& partition) const {
    Changes changes = changes_;
    std::erase(changes, kBalanced);
    changes.push_back(fmt::format("stages=[{}]", fmt::join(partition, ",")));
    return changes;
  }

  const PipelineRequest* request_;
  Changes changes_;
  Instant begin_;
  const Progress* progress_;
  Setup setup_;
  LeastStep least_;
  int layers_, stages_;
  std::optional<PipelineStep> as_it_is_;
  double limit_ms_ = kNever;
  std::set<Partition> seen_;
  Partition best_;  // empty: the stages as they are
  ScheduleAnswer answer_;
};

// The scenario's own first.
std::vector<Changes> schedules_of(const PipelineRequest& request, const Setup& own) {
  std::vector<Changes> all = {{}};
  if (!request.schedules) return all;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (!kind.pipeline || kind.name == own.scenario.schedule) continue;
    all.push_back({"schedule=" + kind.name});
    if (!own.scenario.stage_layers.empty()) all.back().push_back(kBalanced);
  }
  return all;
}

void check_memory(const Setup& setup) {
  const double least = gib(least_memory_bytes(setup)), there = setup.machine.facts.memory_gib;
  if (least > there) {
    throw SpecError(fmt::format("needs {:.0f} GiB of a GPU at least, of {:.0f}", least, there));
  }
}

}  // namespace

PipelineAnswer search_pipeline(const PipelineRequest& request, const Progress& progress) {
  const Instant begin = std::chrono::steady_clock::now();
  const Setup asked = setup_of(request, {}, {});
  if (asked.scenario.slot_costs) {
    throw SpecError(request.scenario.string(), 0, "slot_costs_ms: slots of given length do not depend on their layers");
  }
  const Setup own = setup_of(request, {}, kBySlots);
  PipelineAnswer answer;
  answer.floor_ms = kNever;
  std::vector<Partitions> schedules;
  const auto unless_refused = [&](const Changes& changes, const auto& work) {
    try {
      work();
    } catch (const SpecError& error) {
      if (changes.empty()) throw;
      answer.refused[changes.front()] = error.reason();
    }
  };
  for (const Changes& changes : schedules_of(request, own)) {
    unless_refused(changes, [&] {
      if (!changes.empty()) check_memory(setup_of(request, changes, kBySlots));
      schedules.emplace_back(request, changes, begin, progress);
    });
  }
  answer.best = answer.published = schedules.front().as_it_is();
  // Those that may be fast rule out others.
  std::stable_sort(schedules.begin(), schedules.end(),
                   [](const Partitions& a, const Partitions& b) { return a.floor_ms() < b.floor_ms(); });
  for (Partitions& schedule : schedules) {
    unless_refused(schedule.changes(), [&] {
      answer.schedules.push_back(std::move(schedule).search(answer.best.fits ? answer.best.ms : kNever));
      const ScheduleAnswer& found = answer.schedules.back();
      answer.floor_ms = std::min(answer.floor_ms, found.floor_ms);
      const bool faster = found.best && found.best->ms < answer.best.ms * (1 - kEqual);
      if (found.best && (faster || !answer.best.fits)) answer.best = *found.best;
    });
  }
  std::stable_sort(answer.schedules.begin(), answer.schedules.end(), [](const auto& a, const auto& b) {
    return (a.best ? a.best->ms : kNever) < (b.best ? b.best->ms : kNever);
  });
  answer.published_by_operators = step_of(request, {}, {});
  answer.best_by_operators =
      answer.best.changes.empty() ? answer.published_by_operators : step_of(request, answer.best.changes, {});
  return answer;
}

}  // namespace moeline
