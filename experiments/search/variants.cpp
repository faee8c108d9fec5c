#include "experiments/search/variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "experiments/run/run.hpp"
#include "experiments/search/order_space.hpp"
#include "moe/rank_work.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

using Changes = std::vector<std::string>;

[[noreturn]] void refuse(const VariantRequest& request, const std::string& what) {
  throw SpecError(request.scenario.string(), 0, what);
}

// Of the scenario's phase.
std::vector<std::string> planned_schedules(WorkloadPhase phase) {
  std::vector<std::string> names = searched_schedules();
  std::erase_if(names, [&](const std::string& name) { return !schedule_named(name).is_for(phase); });
  return names;
}

// Those asked for, else the usual ones; and the scenario's own, whose plan is one of all.
std::vector<int> with_own(const std::vector<int>& asked, const std::vector<int>& usual, int own) {
  std::vector<int> values = asked.empty() ? usual : asked;
  values.push_back(own);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// Low-latency transfers are issued by all SMs (0), or on these beside the GEMM.
std::vector<int> searched_sms(const VariantRequest& request, const Comm& comm) {
  const bool low_latency = comm.mode == CommMode::low_latency;
  return with_own(request.num_sms, low_latency ? std::vector{0, 3, 4, 8, 16, 32} : std::vector{8, 12, 16, 20, 24},
                  comm.num_sms);
}

std::vector<Changes> changes_of(const VariantRequest& request) {
  std::vector<Changes> all = {{}};
  const auto vary = [&](const std::string& key, const auto& values) {
    std::vector<Changes> varied;
    for (const Changes& changes : all) {
      for (const auto& value : values) {
        varied.push_back(changes);
        varied.back().push_back(fmt::format("{}={}", key, value));
      }
    }
    all = std::move(varied);
  };
  if (request.schedules) vary("schedule", planned_schedules(quick_setup(request).scenario.phase()));
  if (request.sms && !request.phase_sms)
    vary("comm.num_sms", searched_sms(request, quick_setup(request).scenario.comm));
  return all;
}

bool receives(const PlanEntry& entry) { return entry.phase == "dispatch" && entry.part == PlanEntry::Part::receive; }
bool issues(const PlanEntry& entry) { return entry.phase == "combine" && entry.part == PlanEntry::Part::issue; }

// Each micro-batch's experts, in a bracket with those of its entries that are to take turns with them.
OverlapPlan in_turns(const OverlapPlan& plan, bool (*joins)(const PlanEntry&)) {
  OverlapPlan turns = plan;
  turns.compute.clear();
  for (const PlanEntry& entry : plan.compute) {
    if (!joins(entry) && entry.phase != "mlp") turns.compute.push_back(entry);
    if (entry.phase != "mlp") continue;
    for (PlanEntry each : plan.compute) {
      if (each.micro_batch != entry.micro_batch || (each.phase != "mlp" && !joins(each))) continue;
      each.layer_offset = entry.layer_offset;
      each.bracket = entry.micro_batch + 1;
      turns.compute.push_back(std::move(each));
    }
  }
  return turns;
}

// A combine that starts while the GEMM before it runs is on another stream: wherever it stands, it starts then.
OverlapPlan with_release(const OverlapPlan& plan, const Comm& comm) {
  const bool joined = std::any_of(plan.compute.begin(), plan.compute.end(),
                                  [](const PlanEntry& entry) { return issues(entry) && entry.bracket > 0; });
  return comm.releases() && !joined ? in_turns(plan, issues) : plan;
}

bool take_turns(const PlanEntry& entry) { return receives(entry) || issues(entry); }

std::vector<OverlapPlan> cut_plans(const VariantRequest& request, const OverlapPlan& plan,
                                   const PlanContents& contents) {
  if (!request.pieces || plan.pieces > 1) return {plan};
  std::vector<OverlapPlan> plans;
  for (const int pieces : with_own(request.piece_counts, {1, 2, 4}, plan.pieces)) {
    for (const PiecesBy by : {PiecesBy::token, PiecesBy::expert}) {
      if (by == PiecesBy::expert && (pieces == 1 || contents.halved.empty())) continue;
      OverlapPlan cut = plan;
      cut.pieces = pieces;
      cut.pieces_by = by;
      plans.push_back(cut);
      if (pieces > 1 && !contents.halved.empty()) plans.push_back(in_turns(cut, take_turns));
    }
  }
  return plans;
}

// Transfers that run beside a phase of the compute stream for more than a twentieth of its time, in the plan as it is.
std::set<std::string> transfers_beside(const std::string& phase, const std::vector<PhaseTimes>& phases) {
  constexpr double kLittle = 0.05;
  std::set<std::string> beside;
  for (const PhaseTimes& own : phases) {
    if (own.phase != phase) continue;
    for (const PhaseTimes& other : phases) {
      const Time together = std::min(own.end, other.end) - std::max(own.start, other.start);
      if (is_transfer(other.phase) && together > kLittle * (own.end - own.start)) beside.insert(other.phase);
    }
  }
  return beside;
}

// Transfers run on so many SMs each, and phases of the compute stream leave what runs beside them.
OverlapPlan with_sms(OverlapPlan plan, int dispatch, int combine, const std::vector<PhaseTimes>& phases, int all) {
  for (const PlanEntry& entry : plan.communication) {
    const bool dispatches = entry.phase.starts_with("dispatch") != entry.phase.ends_with("(B)");
    plan.sms[entry.phase] = dispatches ? dispatch : combine;
  }
  for (const PlanEntry& entry : plan.compute) {
    int left = all;
    for (const std::string& transfer : transfers_beside(entry.phase, phases)) {
      left = std::min(left, all - plan.sms.at(transfer));
    }
    plan.sms[entry.phase] = left;
  }
  return plan;
}

// `phases`: as the setup runs.
std::vector<OverlapPlan> sms_plans(const VariantRequest& request, const Setup& setup,
                                   const std::vector<PhaseTimes>& phases, const OverlapPlan& plan) {
  if (!request.phase_sms) return {plan};
  if (setup.scenario.comm.mode != CommMode::normal) {
    refuse(request, "--over phase-sms: SMs of phases are of the normal all-to-all");
  }
  const std::vector<int> sms = searched_sms(request, setup.scenario.comm);
  const int all = static_cast<int>(setup.machine.facts.sms);
  for (const int count : sms) {
    if (count >= 1 && count < all) continue;
    refuse(request, fmt::format("--over phase-sms: {} SMs; a transfer has from 1 to {}", count, all - 1));
  }
  std::vector<OverlapPlan> plans = {plan};
  for (const int dispatch : sms) {
    for (const int combine : sms) {
      plans.push_back(with_sms(plan, dispatch, combine, phases, all));
    }
  }
  return plans;
}

// The same in other parts: micro-batches of unequal size, and attention cut elsewhere.
std::vector<OverlapPlan> split_plans(const VariantRequest& request, const OverlapPlan& plan,
                                     const PlanContents& contents) {
  std::vector<double> splits = {plan.split};
  if (request.splits && contents.micro_batches == 2) splits = {0.5, 0.55, 0.6, 0.7};
  std::vector<AttentionCut> cuts = {plan.attention_cut};
  const auto& phases = contents.phases;
  const bool halves = std::find(phases.begin(), phases.end(), "attn-0") != phases.end();
  if (request.attention && halves) cuts = {AttentionCut::before_core, AttentionCut::behind_core};
  std::vector<OverlapPlan> plans;
  for (const double split : splits) {
    for (const AttentionCut cut : cuts) {
      plans.push_back(plan);
      plans.back().split = split;
      plans.back().attention_cut = cut;
    }
  }
  return plans;
}

std::vector<std::vector<std::string>> side_sets(const VariantRequest& request, const OverlapPlan& plan) {
  if (!request.sides) return {plan.side};
  std::vector<std::string> weights;
  for (const PlanEntry& entry : plan.compute) {
    if (entry.phase.ends_with("(W)")) weights.push_back(entry.phase);
  }
  if (weights.empty()) refuse(request, "--over side: there are no weight gradients that a side stream could take");
  std::vector<std::vector<std::string>> sets;
  for (std::size_t bits = 0; bits < (std::size_t{1} << weights.size()); ++bits) {
    sets.emplace_back();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if ((bits >> i & 1U) != 0) sets.back().push_back(weights[i]);
    }
  }
  return sets;
}

}  // namespace

void add_refused(const SpecError& error, std::vector<RefusedVariants>& refused) {
  const auto known = std::find_if(refused.begin(), refused.end(),
                                  [&](const RefusedVariants& each) { return each.why == error.reason(); });
  ++(known != refused.end() ? *known : refused.emplace_back(RefusedVariants{error.reason()})).count;
}

Setup quick_setup(const VariantRequest& request, const Changes& changes) {
  Changes assignments = request.assignments;
  assignments.insert(assignments.end(), changes.begin(), changes.end());
  (void)load_setup(request.scenario, assignments);  // what is wrong with it is told before what a search adds
  assignments.insert(assignments.end(), {"ranks=folded", "samples=1"});
  try {
    Setup setup = load_setup(request.scenario, assignments);
    return setup.scenario.phase() == WorkloadPhase::train ? setup : folded(std::move(setup));
  } catch (const SpecError& error) {
    refuse(request, "a search simulates one rank that stands for all: " + error.reason());
  }
}

Setup with_plan(const Setup& setup, OverlapPlan plan) {
  Setup with = setup;
  with.scenario.plan = std::make_shared<const OverlapPlan>(std::move(plan));
  return with;
}

Variants variants_of(const VariantRequest& request) {
  Variants found;
  std::optional<SpecError> first;
  for (const Changes& changes : changes_of(request)) {
    std::optional<Setup> setup;
    try {
      setup = quick_setup(request, changes);
    } catch (const SpecError& error) {
      if (!first) first = error;
      add_refused(error, found.refused);
      continue;
    }
    const PlanContents contents = searched_contents(*setup);
    const std::vector<PhaseTimes> phases = request.phase_sms ? run_scenario(*setup).phases : std::vector<PhaseTimes>{};
    for (const OverlapPlan& cut : cut_plans(request, searched_plan(*setup), contents)) {
      for (const OverlapPlan& split : split_plans(request, cut, contents)) {
        for (OverlapPlan& plan : sms_plans(request, *setup, phases, split)) {
          for (const std::vector<std::string>& side : side_sets(request, plan)) {
            plan.side = side;
            found.variants.push_back({with_plan(*setup, with_release(plan, setup->scenario.comm)), changes});
          }
        }
      }
    }
  }
  if (found.variants.empty()) throw *first;
  return found;
}

}  // namespace moeline
