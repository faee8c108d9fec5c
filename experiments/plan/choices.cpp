#include "experiments/plan/choices.hpp"

#include <algorithm>
#include <set>

namespace moeline {
namespace {

std::vector<int> units_of_nodes(const HardwareProfile& machine, const std::vector<int>& nodes) {
  constexpr int kLargeNode = 16;
  const auto gpus = static_cast<int>(machine.facts.gpus_per_node);
  std::set<int> units;
  for (int part = 8; gpus > kLargeNode && part < gpus; part *= 2) units.insert(part);
  for (const int count : nodes) units.insert(count * gpus);
  units.erase(1);
  return {units.begin(), units.end()};
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

// Every schedule of the table that is for the phase, with and without a second micro-batch as the plan has it.
std::vector<std::string> schedules_of(WorkloadPhase phase, const std::vector<bool>& two_batch) {
  std::vector<std::string> names;
  for (const bool two : two_batch) {
    for (const ScheduleKind& kind : schedule_kinds()) {
      if (kind.is_for(phase) && is_two_batch(kind.name) == two) names.push_back(kind.name);
    }
  }
  return names;
}

}  // namespace

std::vector<PrefillChoice> prefill_choices(const Plan& plan, const Architecture& model,
                                           const HardwareProfile& machine) {
  const PrefillSpace& space = plan.prefill;
  const std::vector<int> units = space.ep.empty() ? units_of_nodes(machine, {1, 2, 4, 8}) : space.ep;
  const std::vector<int> tokens =
      space.tokens.empty() ? std::vector<int>{2048, 4096, 8192, 16384, 32768} : space.tokens;
  std::vector<PrefillChoice> choices;
  for (const int ep : units) {
    for (const int copies : copies_of(space.redundant_experts, model.n_routed_experts, ep)) {
      for (const std::string& schedule : schedules_of(WorkloadPhase::prefill, space.two_batch)) {
        for (const int sms : sms_of(space.comm_sms, machine)) {
          for (const int each : tokens) choices.push_back({machine.name, ep, copies, each, sms, schedule});
        }
      }
    }
  }
  return choices;
}

std::vector<DecodeChoice> decode_choices(const Plan& plan, const Architecture& model, const HardwareProfile& machine) {
  const DecodeSpace& space = plan.decode;
  const std::vector<int> units = space.ep.empty() ? units_of_nodes(machine, {1, 2, 4, 8, 16, 18, 32, 40}) : space.ep;
  std::vector<DecodeChoice> choices;
  for (const int ep : units) {
    for (const int copies : copies_of(space.redundant_experts, model.n_routed_experts, ep)) {
      for (const std::string& schedule : schedules_of(WorkloadPhase::decode, space.two_batch)) {
        for (const int mtp : space.mtp) choices.push_back({machine.name, ep, copies, 0, schedule, mtp});
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
