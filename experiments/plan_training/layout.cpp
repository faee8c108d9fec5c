#include "experiments/plan_training/layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/memory/lasting_memory.hpp"
#include "experiments/plan/plan_keys.hpp"
#include "experiments/run/run.hpp"
#include "experiments/run/run_metrics.hpp"
#include "hardware/profile.hpp"
#include "schedules/scenario/schedule_kinds.hpp"

namespace moeline {
namespace {

std::vector<int> listed_or(const std::vector<int>& listed, int most) {
  return listed.empty() ? powers_of_two(most) : listed;
}

bool allows(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

bool divides(int a, int b) { return a % b == 0 || b % a == 0; }

// Without and with combined passes, where these have tokens to send.
std::vector<std::string> overlaps_of(const Layout& layout, const TrainingJob& job) {
  const ScheduleKind& kind = schedule_named(layout.schedule);
  std::vector<std::string> overlaps;
  if (allows(job.space.overlap, "none")) overlaps.emplace_back(kind.plan.empty() ? "default" : "none");
  if (!kind.plan.empty() && allows(job.space.overlap, "combined")) overlaps = {"default"};
  const bool combines = kind.may_combine() && layout.split.ep > 1;
  if (combines && allows(job.space.overlap, "combined")) overlaps.emplace_back("combined");
  return overlaps;
}

void add_overlaps(Layout layout, const TrainingJob& job, std::vector<Layout>& orders) {
  for (const std::string& overlap : overlaps_of(layout, job)) {
    layout.overlap = overlap;
    orders.push_back(layout);
  }
}

// With that many chunks to a rank; 0: as many as it has by itself.
void add_order(const Layout& split, const std::string& schedule, int chunks, const TrainingJob& job,
               const Architecture& model, std::vector<Layout>& orders) {
  const PipelineKind& kind = *schedule_named(schedule).pipeline;
  if (!allows(job.space.schedule, schedule)) return;
  const int stages = split.split.pp * std::max({1, chunks, kind.stages_per_rank});
  if (stages > static_cast<int>(model.layers.size()) || (kind.two_directions && split.split.pp % 2 != 0)) return;
  Layout layout = split;
  layout.schedule = schedule;
  if (chunks > 0) layout.split.virtual_pp = chunks;
  add_overlaps(layout, job, orders);
}

bool has_chunks(const ScheduleKind& kind) { return kind.pipeline->stages_per_rank == 0; }

std::vector<int> chunks_of(const TrainingJob& job) {
  return job.space.virtual_pp.empty() ? std::vector<int>{2, 4, 8} : job.space.virtual_pp;
}

bool offloads(const MemorySaving& saving) { return saving.offload != "default" && saving.offload != "none"; }

// As a key of a scenario.
std::string training_of(const MemorySaving& saving) {
  std::vector<std::string> keys;
  if (saving.recompute != "default") keys.push_back("recompute: " + saving.recompute);
  if (offloads(saving)) keys.push_back("offload: " + saving.offload);
  if (saving.offload_optimizer) keys.emplace_back("offload_optimizer: true");
  return keys.empty() ? "" : fmt::format("training: {{{}}}\n", fmt::join(keys, ", "));
}

}  // namespace

std::string describe(const Layout& layout) {
  const Parallelism& p = layout.split;
  std::string text;
  const auto add = [&](const char* name, int ranks) {
    if (ranks > 1) text += fmt::format("{} {}, ", name, ranks);
  };
  add("tp", p.tp);
  add("cp", p.cp);
  text += p.virtual_pp > 1 ? fmt::format("pp {} x {}, ", p.pp, p.virtual_pp) : fmt::format("pp {}, ", p.pp);
  add("ep", p.ep);
  text += fmt::format("dp {}, micro-batch {}, {}", p.dp, layout.micro_batch_size, layout.schedule);
  if (layout.overlap != "default") text += " " + layout.overlap;
  const MemorySaving& saving = layout.saving;
  if (saving.recompute != "default") text += ", recompute " + saving.recompute;
  if (offloads(saving)) text += ", offload " + saving.offload;
  if (saving.offload_optimizer) text += ", offload the optimizer";
  return text;
}

std::string scenario_of(const Layout& layout, const TrainingJob& job, const char* level) {
  const Parallelism& p = layout.split;
  const PlanHardware& machine = job.hardware[layout.machine];
  const std::string chunks = p.virtual_pp > 1 ? fmt::format(", virtual_pp: {}", p.virtual_pp) : "";
  return fmt::format(
      "{}schedule: {}\noverlap: {}\nlevel: {}\n"
      "parallelism: {{tp: {}, cp: {}, pp: {}{}, ep: {}, dp: {}}}\n"
      "workload: {{phase: train, seq_len: {}, micro_batch_size: {}, global_batch_size: {}}}\n{}",
      scenario_head(job.model, machine), layout.schedule, layout.overlap, level, p.tp, p.cp, p.pp, chunks, p.ep, p.dp,
      job.seq_len, layout.micro_batch_size, job.global_batch_size, training_of(layout.saving));
}

std::vector<std::string> changes_of(const Layout& layout, const TrainingJob& job) {
  std::vector<std::string> set = job.set;
  add_facts(job.hardware[layout.machine], set);
  return set;
}

Setup setup_of(const Layout& layout, const TrainingJob& job) {
  return read_setup(Spec::parse(job.file.string(), scenario_of(layout, job, "phase")), changes_of(layout, job));
}

std::vector<Layout> splits_of(const TrainingJob& job, const Architecture& model, std::size_t machine) {
  constexpr int kLongSequence = 16 << 10, kMostCp = 8, kMostPp = 32, kMostEp = 64, kMostMicroBatch = 4;
  const PlanHardware& hardware = job.hardware[machine];
  const MachineFacts facts = known_profile(hardware.name, hardware.set, job.file.string())->facts;
  const LayoutSpace& s = job.space;
  const int experts = std::max(1, model.n_routed_experts);
  std::vector<Layout> splits;
  for (const int tp : listed_or(s.tp, static_cast<int>(facts.gpus_per_node))) {
    for (const int cp : listed_or(s.cp, job.seq_len > kLongSequence ? kMostCp : 1)) {
      for (const int pp : listed_or(s.pp, std::min<int>(kMostPp, static_cast<int>(model.layers.size())))) {
        const std::int64_t replica = std::int64_t{tp} * cp * pp;
        if (job.gpus % replica != 0) continue;
        const int dp = static_cast<int>(job.gpus / replica);
        for (const int ep : listed_or(s.ep, std::min(kMostEp, experts))) {
          if (experts % ep != 0 || (tp * cp * dp) % ep != 0 || (ep > 1 && !divides(ep, tp * cp))) continue;
          for (const int size : listed_or(s.micro_batch_size, kMostMicroBatch)) {
            if (job.global_batch_size % (static_cast<std::int64_t>(dp) * size) != 0) continue;
            splits.push_back({.machine = machine,
                              .split = {.tp = tp, .dp = dp, .cp = cp, .ep = ep, .pp = pp},
                              .micro_batch_size = size});
          }
        }
      }
    }
  }
  return splits;
}

namespace {

std::vector<std::string> recomputations_of(const TrainingJob& job, const Architecture& model, bool by_megatron) {
  if (!job.space.recompute.empty()) return job.space.recompute;
  if (!by_megatron) return {"selective", "full"};
  std::vector<std::string> modules;
  const bool routed = model.n_routed_experts > 0;
  if (routed || model.is_mla()) modules.emplace_back("layernorm");
  if (model.is_mla()) modules.emplace_back("mla_up_proj");
  if (model.dense_layers() > 0) modules.emplace_back("mlp");
  if (routed) modules.emplace_back("moe_act");
  return {"none", fmt::format("[{}]", fmt::join(modules, ", ")), "full"};
}

}  // namespace

std::vector<MemorySaving> savings_of(const TrainingJob& job, const Architecture& model, bool by_megatron) {
  const std::vector<std::string> nothing = {"default"};
  std::vector<MemorySaving> savings;
  for (const std::string& recompute : recomputations_of(job, model, by_megatron)) {
    for (const std::string& offload : job.space.offload.empty() ? nothing : job.space.offload) {
      for (const bool optimizer : job.space.offload_optimizer) {
        const MemorySaving saving{recompute, offload, optimizer};
        if (recompute == "full" && offloads(saving)) continue;  // which leaves nothing to offload
        savings.push_back(saving);
      }
    }
  }
  return savings;
}

std::vector<Layout> first_orders_of(const Layout& split, const TrainingJob& job, const Architecture& model) {
  std::vector<Layout> orders;
  add_order(split, "1f1b", 0, job, model, orders);
  if (split.split.pp > 1) {
    for (const int chunks : chunks_of(job)) add_order(split, "interleaved-1f1b", chunks, job, model, orders);
  }
  return orders.empty() ? orders_of(split, job, model) : orders;
}

std::vector<Layout> orders_of(const Layout& split, const TrainingJob& job, const Architecture& model) {
  std::vector<Layout> orders;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (!kind.pipeline || (split.split.pp == 1 && kind.name != "1f1b")) continue;
    if (!has_chunks(kind)) {
      add_order(split, kind.name, 0, job, model, orders);
      continue;
    }
    for (const int chunks : chunks_of(job)) add_order(split, kind.name, chunks, job, model, orders);
  }
  return orders;
}

std::string LayoutPoint::bound_by() const {
  return rest_ms() >= std::max(bubble_ms, exposed_ms) ? "computation" : largest_overhead();
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
      point.refused = error.reason();
    }
    return point;
  });
}

}  // namespace moeline
