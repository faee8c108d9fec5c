#include "experiments/plan/choices.hpp"

#include <algorithm>
#include <set>

#include "experiments/plan/plan_keys.hpp"

namespace moeline {
namespace {

// GPUs of a unit: parts of a node, and whole ones.
std::vector<int> usual_units(const HardwareProfile& machine, const std::vector<int>& nodes) {
  const auto gpus = static_cast<int>(machine.facts.gpus_per_node);
  std::set<int> units;
  for (int part = 1; part < gpus; part *= 2) units.insert(part);
  for (const int count : nodes) units.insert(count * gpus);
  return {units.begin(), units.end()};
}

// Every way in which so many GPUs share a layer, by the ranks of an attention group.
std::vector<Parallelism> splits_of(int gpus, const std::vector<int>& groups, bool dense) {
  std::vector<Parallelism> splits;
  for (const int tp : groups) {
    if (gpus % tp != 0 || (dense && tp != gpus)) continue;
    const int dp = gpus / tp;
    splits.push_back({.tp = tp, .dp = dp, .ep = dense ? 1 : gpus});
    if (!dense && tp == gpus && tp > 1) splits.push_back({.tp = tp, .dp = dp, .moe_tp = tp});
  }
  return splits;
}

// `units`, `groups`: as the plan lists them.
std::vector<Parallelism> units_of(const std::vector<int>& units, const std::vector<int>& groups,
                                  const Architecture& model, const HardwareProfile& machine,
                                  const std::vector<int>& nodes) {
  const bool dense = model.n_routed_experts == 0;
  const auto node = static_cast<int>(machine.facts.gpus_per_node);
  std::vector<Parallelism> list;
  for (const int gpus : units.empty() ? usual_units(machine, nodes) : units) {
    const bool alone = !units.empty() && !dense;  // as listed, every GPU with requests of its own
    const std::vector<int> usual = alone || gpus > node ? std::vector<int>{1} : powers_of_two(gpus);
    for (const Parallelism& split : splits_of(gpus, groups.empty() ? usual : groups, dense)) list.push_back(split);
  }
  return list;
}

// The fewest copies with which every GPU of a unit has as many experts; none where these are too many.
std::vector<int> fewest_copies(int experts, int ep) {
  constexpr int kMostShare = 4;
  const int copies = (ep - experts % ep) % ep;
  return copies * kMostShare <= experts ? std::vector<int>{copies} : std::vector<int>{};
}

std::vector<int> copies_of(const std::vector<int>& listed, int experts, int ep) {
  if (listed.empty()) return fewest_copies(experts, ep);
  std::vector<int> fitting;
  for (const int copies : listed) {
    if ((experts + copies) % ep == 0) fitting.push_back(copies);
  }
  return fitting;
}

std::vector<int> sms_of(const std::vector<int>& listed, const HardwareProfile& machine) {
  if (!listed.empty()) return listed;
  std::vector<int> sms;
  for (const int share : {12, 8, 6, 5}) sms.push_back(std::max(2, static_cast<int>(machine.facts.sms) / share / 2 * 2));
  return sms;
}

// Every schedule of the table that is for the phase, with and without a second micro-batch as the plan has it, and one
// batch with and without overlap. One attention group sends nothing that could be hidden.
std::vector<std::string> schedules_of(WorkloadPhase phase, const std::vector<bool>& two_batch,
                                      const std::vector<bool>& single_batch, const Parallelism& unit) {
  std::vector<std::string> names;
  const auto add = [&](bool two, bool overlaps) {
    if (overlaps && unit.attention_groups() == 1) return;
    for (const ScheduleKind& kind : schedule_kinds()) {
      const bool is_it = is_two_batch(kind.name) == two && kind.plan.empty() != overlaps;
      if (kind.is_for(phase) && is_it) names.push_back(kind.name);
    }
  };
  for (const bool two : two_batch) {
    for (const bool overlaps : two ? std::vector<bool>{true} : single_batch) add(two, overlaps);
  }
  return names;
}

}  // namespace

std::vector<PrefillChoice> prefill_choices(const Plan& plan, const Architecture& model,
                                           const HardwareProfile& machine) {
  const PrefillSpace& space = plan.prefill;
  const std::vector<int> tokens =
      space.tokens.empty() ? std::vector<int>{2048, 4096, 8192, 16384, 32768} : space.tokens;
  std::vector<PrefillChoice> choices;
  for (const Parallelism& unit : units_of(space.ep, space.tp, model, machine, {1, 2, 4, 8})) {
    for (const int copies : copies_of(space.redundant_experts, model.n_routed_experts, unit.ep)) {
      for (const std::string& schedule : schedules_of(WorkloadPhase::prefill, space.two_batch, {false}, unit)) {
        for (const int sms : sms_of(space.comm_sms, machine)) {
          for (const int each : tokens) choices.push_back({machine.name, unit, copies, each, sms, schedule});
        }
      }
    }
  }
  return choices;
}

std::vector<DecodeChoice> decode_choices(const Plan& plan, const Architecture& model, const HardwareProfile& machine) {
  const DecodeSpace& space = plan.decode;
  std::vector<DecodeChoice> choices;
  for (const Parallelism& unit : units_of(space.ep, space.tp, model, machine, {1, 2, 4, 8, 16, 18, 32, 40})) {
    for (const int copies : copies_of(space.redundant_experts, model.n_routed_experts, unit.ep)) {
      for (const std::string& schedule :
           schedules_of(WorkloadPhase::decode, space.two_batch, space.single_batch, unit)) {
        for (const int mtp : space.mtp) choices.push_back({machine.name, unit, copies, 0, schedule, mtp});
      }
    }
  }
  return choices;
}

std::vector<int> batch_sizes(const Plan& plan, int most) {
  std::vector<int> sizes;
  if (!plan.decode.batch_size.empty()) {
    for (const int size : plan.decode.batch_size) {
      if (size <= most) sizes.push_back(size);
    }
    return sizes;
  }
  for (int size = 2; size < most; size += std::max(2, size / 6 * 2)) sizes.push_back(size);
  if (most > 0) sizes.push_back(most);
  return sizes;
}

}  // namespace moeline
