#include "schedules/scenario/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedules/scenario/choices.hpp"

namespace moeline {

std::string short_name(const Comm& comm) {
  std::vector<std::string> parts;
  if (dispatcher_of(comm.mode).has_layouts) {
    parts.push_back(fmt::format("{} ({}, {} rows)", word_of(comm.mode), word_of(comm.topology), word_of(comm.layout)));
  }
  if (comm.num_sms > 0) parts.push_back(fmt::format("{} communication SMs", comm.num_sms));
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool is_training_step(const Scenario& scenario) { return scenario.kind().pipeline.has_value() && !scenario.slot_costs; }

bool overlaps_passes(const Scenario& scenario) {
  const ScheduleKind& kind = scenario.kind();
  if (scenario.phase() != WorkloadPhase::train || scenario.overlap == "none") return false;
  return kind.may_combine() ? scenario.overlap != "default" : !kind.plan.empty();
}

StageSplit stage_split(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  return {p.ep, p.tp, p.moe_tp, scenario.training.operators};
}

bool is_staged(const Scenario& scenario) {
  return scenario.parallelism.pp > 1 && scenario.phase() != WorkloadPhase::train;
}

int passes(const Scenario& scenario) {
  if (!is_staged(scenario)) return 1;
  const DecodeWorkload* decode = decode_of(scenario.workload);
  return decode != nullptr ? std::min(scenario.parallelism.pp, decode->batch_size)
                           : steps_per_prompt(*prefill_of(scenario.workload));
}

int micro_batches(const Scenario& scenario) {
  const TrainWorkload& w = as_train(scenario.workload);
  return static_cast<int>(w.global_batch_size / (std::int64_t{scenario.parallelism.dp} * w.micro_batch_size));
}

double mean_seq_len(const Scenario& scenario) {
  const TrainWorkload& w = as_train(scenario.workload);
  if (w.seq_lens.empty()) return w.seq_len;
  double tokens = 0;
  const int count = micro_batches(scenario);
  for (int i = 0; i < count; ++i) tokens += seq_len_of(w, i);
  return tokens / count;
}

}  // namespace moeline
