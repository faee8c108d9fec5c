#include "experiments/cli/output/training_plan_output.hpp"

#include <fmt/format.h>

#include "experiments/cli/output/known_time.hpp"
#include "experiments/cli/output/training_plan_parts.hpp"
#include "experiments/report/json.hpp"

namespace moeline {
namespace {

void add_layout(Json& json, const TrainingJob& job, const LayoutPoint& point) {
  const Layout& layout = point.layout;
  const Parallelism& p = layout.split;
  json.add("hardware", job.hardware[layout.machine].name).add("tp", p.tp).add("cp", p.cp).add("pp", p.pp);
  json.add("virtual_pp", p.virtual_pp).add("ep", p.ep).add("dp", p.dp);
  json.add("micro_batch_size", layout.micro_batch_size).add("schedule", layout.schedule);
  json.add("overlap", layout.overlap).add("recompute", layout.saving.recompute);
  json.add("offload", layout.saving.offload).flag("offload_optimizer", layout.saving.offload_optimizer);
  json.add("step_ms", point.step_ms, 3).add("tokens_per_s_per_gpu", point.tokens_per_s, 2).add("mfu", point.mfu, 5);
  json.add("bubble_ms", point.bubble_ms, 3).add("exposed_comm_ms", point.exposed_ms, 3);
  json.add("memory_gib", point.memory_gib, 3).flag("fits_memory", point.fits);
  add_known_shares(json, point.known);
  json.add("bound_by", point.bound_by()).flag("by_operators", point.by_operators);
  json.add("gpu_hours_per_trillion_tokens", gpu_hours(point, 1e12), 1);
  if (job.tokens > 0) json.add("days", days(point, job), 3);
  if (usd_of(job, point) > 0) json.add("cost_usd", usd_of(job, point), 2);
}

std::string csv_row(const TrainingJob& job, const LayoutPoint& point) {
  const Layout& layout = point.layout;
  const Parallelism& p = layout.split;
  const MemorySaving& saving = layout.saving;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},\"{}\",\"{}\",{},{:.3f},{:.2f},{:.5f},{:.3f},{:.3f},{:.3f},{},{}\n",
                     job.hardware[layout.machine].name, p.tp, p.cp, p.pp, p.virtual_pp, p.ep, p.dp,
                     layout.micro_batch_size, layout.schedule, layout.overlap, saving.recompute, saving.offload,
                     saving.offload_optimizer, point.step_ms, point.tokens_per_s, point.mfu, point.bubble_ms,
                     point.exposed_ms, point.memory_gib, point.bound_by(), point.by_operators ? "operators" : "slots");
}

}  // namespace

std::string training_plan_json(const TrainingPlanResult& result) {
  const TrainingJob& job = result.job;
  Json json;
  json.open().add("schema_version", 1).add("model", job.model).add("gpus", job.gpus);
  json.open_list("layouts");
  for (const LayoutPoint& point : result.answer.best) {
    json.open();
    add_layout(json, job, point);
    json.close();
  }
  json.close_list();
  json.add("fitting", result.answer.searched.size()).add("too_large", result.answer.too_large.size());
  json.open("refused");
  for (const auto& [reason, count] : result.answer.refused) json.add(reason, count);
  json.close();
  json.open_list("sensitivities");
  for (const LayoutSensitivity& each : result.sensitivities) {
    json.open().add("assumption", each.assumption).add("best", describe(each.best.layout));
    json.add("best_step_ms", each.best.step_ms, 3).add("answer_step_ms", each.answer.step_ms, 3).close();
  }
  json.close_list();
  if (!result.answer.best.empty()) {
    const MegatronFlags flags = flags_of(job, result.answer.best.front().layout);
    json.add("megatron_flags", flags.flags).add("megatron_notes", flags.notes);
  }
  json.close();
  return json.text();
}

std::string training_plan_csv(const TrainingPlanResult& result) {
  std::string text =
      "hardware,tp,cp,pp,virtual_pp,ep,dp,micro_batch_size,schedule,overlap,recompute,offload,offload_optimizer,"
      "step_ms,tokens_per_s_per_gpu,mfu,bubble_ms,exposed_comm_ms,memory_gib,bound_by,simulated_by\n";
  for (const LayoutPoint& point : result.answer.best) text += csv_row(result.job, point);
  for (const LayoutPoint& point : result.answer.searched) text += csv_row(result.job, point);
  return text;
}

std::string training_plan_table(const TrainingPlanResult& result) {
  const TrainingAnswer& answer = result.answer;
  std::string text;
  for (const std::string& line : job_lines(result.job)) text += line + "\n";
  text += fmt::format("{}\n", searched_line(answer));
  if (answer.best.empty()) {
    return text + "\nno layout fits into memory\n" + nearest_table(result.job, answer).text("  ");
  }
  text += "\nthe best, operator by operator, each rank at the pace of its slowest GPU\n";
  text += best_table(result.job, answer).text("  ");
  text += "\nwhy the others are behind, ms of a step\n" + reasons_table(answer).text("  ");
  for (const std::string& line : answer_lines(result.job, answer.best.front())) text += "\n" + line;
  text += "\n";
  if (!result.sensitivities.empty()) {
    text += "\nif an assumption is wrong (by slots, GPUs alike)\n" + sensitivity_table(result).text("  ");
  }
  return text + "\n" + flags_text(result.job, answer.best.front().layout);
}

}  // namespace moeline
