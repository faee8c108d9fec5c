#include "experiments/plan/course.hpp"

#include <algorithm>
#include <map>

namespace moeline {
namespace {

// The same units are all that is searched.
Plan of_these_units(Plan plan, const Deployment& d) {
  std::erase_if(plan.hardware, [&](const PlanHardware& each) { return each.name != d.decode_choice.hardware; });
  plan.disaggregated = !d.colocated;
  plan.colocated = d.colocated;
  plan.prefill.ep = {d.prefill_choice.gpus()};
  plan.prefill.tp = {d.prefill_choice.unit.tp};
  plan.prefill.redundant_experts = {d.prefill_choice.redundant_experts};
  plan.prefill.tokens = {d.prefill_choice.tokens};
  if (d.prefill_choice.comm_sms > 0) plan.prefill.comm_sms = {d.prefill_choice.comm_sms};
  plan.prefill.two_batch = {is_two_batch(d.prefill_choice.schedule)};
  plan.decode.ep = {d.decode_choice.gpus()};
  plan.decode.tp = {d.decode_choice.unit.tp};
  plan.decode.redundant_experts = {d.decode_choice.redundant_experts};
  plan.decode.batch_size = {d.decode_choice.batch_size};
  plan.decode.two_batch = {is_two_batch(d.decode_choice.schedule)};
  plan.decode.mtp = {d.decode_choice.mtp};
  return plan;
}

}  // namespace

Course along_the_day(const Plan& plan, const Deployment& deployment, KnownSteps& known, std::size_t workers,
                     const Progress& progress) {
  const Plan units = of_these_units(plan, deployment);
  std::map<double, CoursePart> by_load;
  Course course;
  ProgressCount one_more(progress, "hours", plan.traffic.course.size());
  for (const double load : plan.traffic.course) {
    const auto [part, is_new] = by_load.try_emplace(load);
    if (is_new) {
      Plan now = units;
      now.traffic.requests_per_s *= load;
      const Answer answer = solve(now, known, workers);
      part->second.load = load;
      if (!answer.deployments.empty()) {
        const Deployment& best = answer.deployments.front();
        part->second = {load, best.prefill.all_units(), best.decode.all_units(), best.gpus};
      }
    }
    course.parts.push_back(part->second);
    course.mean_gpus += part->second.gpus / static_cast<double>(plan.traffic.course.size());
    course.most_gpus = std::max(course.most_gpus, part->second.gpus);
    one_more();
  }
  return course;
}

}  // namespace moeline
