#include "schedules/lowering/prepared_phases.hpp"

#include <fmt/format.h>

#include "moe/rank_work.hpp"
#include "schedules/lowering/inference_step.hpp"
#include "schedules/lowering/training_passes.hpp"

namespace moeline {
namespace {

void check_there_are(const OverlapPlan& plan, int all) {
  for (const auto& [phase, sms] : plan.sms) {
    const int most = is_transfer(phase) ? all - 1 : all;  // something else goes on beside a transfer
    if (sms <= most) continue;
    throw SpecError(plan.file, 0, fmt::format("sms: {} of {} are more than the {} there are", sms, phase, most));
  }
}

}  // namespace

int phase_sms(const OverlapPlan& plan, const std::string& phase, const Setup& setup) {
  if (plan.sms.empty()) return 0;
  const int all = static_cast<int>(setup.machine.facts.sms), usual = setup.scenario.comm.num_sms;
  check_there_are(plan, all);
  if (is_transfer(phase)) return plan.transfer_sms(phase, usual);
  const auto given = plan.sms.find(phase);
  return given != plan.sms.end() ? given->second : all - plan.most_transfer_sms(usual);
}

int transfer_sms(const Setup& setup) {
  const Scenario& s = setup.scenario;
  if (s.kind().plan.empty()) return s.comm.num_sms;
  const OverlapPlan plan = s.phase() == WorkloadPhase::train ? training_plan(s) : inference_plan(setup);
  return plan.most_transfer_sms(s.comm.num_sms);
}

}  // namespace moeline
