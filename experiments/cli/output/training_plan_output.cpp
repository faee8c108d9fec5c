#include "experiments/cli/output/training_plan_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/run/slot_level.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {
namespace {

constexpr double kTrillion = 1e12;

bool compares_machines(const TrainingJob& job) { return job.hardware.size() > 1; }

std::string name_of(const TrainingJob& job, const Layout& layout) {
  const std::string text = describe(layout);
  return compares_machines(job) ? job.hardware[layout.machine].name + ": " + text : text;
}

std::string difference(double ms) { return fmt::format("{:+.0f}", ms); }

}  // namespace

double gpu_hours(const LayoutPoint& point, double tokens) { return tokens / point.tokens_per_s / 3600; }

double days(const LayoutPoint& point, const TrainingJob& job) { return gpu_hours(point, job.tokens) / job.gpus / 24; }

double usd_of(const TrainingJob& job, const LayoutPoint& point) {
  const double tokens = job.tokens > 0 ? job.tokens : kTrillion;
  return gpu_hours(point, tokens) * job.hardware[point.layout.machine].usd_per_gpu_hour;
}

std::vector<std::string> job_lines(const TrainingJob& job) {
  std::vector<std::string> machines;
  for (const PlanHardware& machine : job.hardware) machines.push_back(machine.name);
  const std::string tokens = job.tokens > 0 ? fmt::format(", {:.4g} tokens in all", job.tokens) : "";
  return {fmt::format("{} on {} {}: steps of {} sequences of {} tokens{}", job.model, job.gpus,
                      fmt::join(machines, " or "), job.global_batch_size, job.seq_len, tokens)};
}

std::string searched_line(const TrainingAnswer& answer) {
  int refused = 0;
  for (const auto& [reason, count] : answer.refused) refused += count;
  return fmt::format("{} layouts that fit, {} that do not, {} that cannot be", answer.searched.size(),
                     answer.too_large.size(), refused);
}

TextTable best_table(const TrainingJob& job, const TrainingAnswer& answer) {
  TextTable table("rrrrrrll");
  table.row({"", "step, ms", "tokens/s/GPU", "MFU, %", "GiB", "by slots, ms", "bound by", "layout"});
  for (std::size_t i = 0; i < answer.best.size(); ++i) {
    const LayoutPoint& point = answer.best[i];
    const auto by_slots = std::find_if(answer.searched.begin(), answer.searched.end(),
                                       [&](const LayoutPoint& other) { return other.layout == point.layout; });
    const std::string slots = by_slots == answer.searched.end() ? "" : fmt::format("{:.0f}", by_slots->step_ms);
    table.row({fmt::format("{}", i + 1), fmt::format("{:.0f}", point.step_ms),
               fmt::format("{:.0f}", point.tokens_per_s), fmt::format("{:.1f}", 100 * point.mfu),
               fmt::format("{:.1f}", point.memory_gib), slots, point.bound_by(), name_of(job, point.layout)});
  }
  return table;
}

TextTable reasons_table(const TrainingAnswer& answer) {
  const LayoutPoint& first = answer.best.front();
  TextTable table("rrrrr");
  table.row({"", "step", "bubble", "exposed communication", "computation and the rest"});
  table.row({"1", fmt::format("{:.0f}", first.step_ms), fmt::format("{:.0f}", first.bubble_ms),
             fmt::format("{:.0f}", first.exposed_ms), fmt::format("{:.0f}", first.rest_ms())});
  for (std::size_t i = 1; i < answer.best.size(); ++i) {
    const LayoutPoint& point = answer.best[i];
    table.row({fmt::format("{}", i + 1), difference(point.step_ms - first.step_ms),
               difference(point.bubble_ms - first.bubble_ms), difference(point.exposed_ms - first.exposed_ms),
               difference(point.rest_ms() - first.rest_ms())});
  }
  return table;
}

TextTable nearest_table(const TrainingJob& job, const TrainingAnswer& answer) {
  constexpr std::size_t kShown = 5;
  TextTable table("rl");
  table.row({"GiB, at least", "the leanest layouts"});
  for (std::size_t i = 0; i < std::min(kShown, answer.too_large.size()); ++i) {
    const LayoutPoint& point = answer.too_large[i];
    table.row({fmt::format("{:.1f}", point.memory_gib), name_of(job, point.layout)});
  }
  return table;
}

std::vector<std::string> answer_lines(const TrainingJob& job, const LayoutPoint& point) {
  const double tokens = job.tokens > 0 ? job.tokens : kTrillion;
  std::string whole = fmt::format("{:.4g} tokens take {:.0f} GPU-hours, {:.1f} days", tokens, gpu_hours(point, tokens),
                                  gpu_hours(point, tokens) / job.gpus / 24);
  if (usd_of(job, point) > 0) whole += fmt::format(", {:.0f} USD", usd_of(job, point));
  const auto share = [&](double ms) { return 100 * ms / point.step_ms; };
  return {
      whole,
      fmt::format("of a step {:.1f} % are computation, {:.1f} % bubble and {:.1f} % communication that nothing hides: "
                  "bound by {}; largest overhead: {}",
                  share(point.rest_ms()), share(point.bubble_ms), share(point.exposed_ms), point.bound_by(),
                  point.largest_overhead()),
      known_line("the kernels'", point.known)};
}

TextTable sensitivity_table(const TrainingPlanResult& result) {
  TextTable table("lrrl");
  table.row({"", "the answer, ms", "the best, ms", "which is"});
  for (const LayoutSensitivity& each : result.sensitivities) {
    const bool same = each.best.layout == each.answer.layout;
    const std::string best = same ? "the answer" : name_of(result.job, each.best.layout);
    table.row(
        {each.assumption, fmt::format("{:.0f}", each.answer.step_ms), fmt::format("{:.0f}", each.best.step_ms), best});
  }
  return table;
}

MegatronFlags flags_of(const TrainingJob& job, const Layout& layout) {
  const Setup setup = setup_of(layout, job);
  return megatron_flags(layout, setup.scenario, SlotKinds(setup).stages());
}

std::string flags_text(const TrainingJob& job, const Layout& layout) {
  const MegatronFlags flags = flags_of(job, layout);
  std::string text = "# Megatron-LM\n";
  for (const std::string& note : flags.notes) text += fmt::format("# {}\n", note);
  if (!flags.stages.empty()) text += fmt::format("# stages: {}\n", fmt::join(flags.stages, " | "));
  return text + fmt::format("{}\n", fmt::join(flags.flags, " \\\n"));
}

namespace {

struct LayoutOfJob {
  const TrainingJob& job;
  const LayoutPoint& point;
};

Fields<Layout> layout_choice_fields() {
  const auto split = Fields<Parallelism>()
                         .add("tp", "tensor parallel ranks", &Parallelism::tp)
                         .add("cp", "context parallel ranks", &Parallelism::cp)
                         .add("pp", "ranks of a pipeline", &Parallelism::pp)
                         .add("virtual_pp", "chunks on each rank", &Parallelism::virtual_pp)
                         .add("ep", "expert parallel ranks", &Parallelism::ep)
                         .add("dp", "data parallel ranks", &Parallelism::dp);
  return Fields<Layout>()
      .all(&Layout::split, split)
      .add("micro_batch_size", "sequences", &Layout::micro_batch_size)
      .add("schedule", "what runs when", &Layout::schedule, {.words = schedule_names()})
      .add("overlap", "none, combined, or the schedule's default", &Layout::overlap)
      .add("recompute", "what is computed again", [](auto& l) { return l.saving.recompute; })
      .add("offload", "what waits in the host's memory", [](auto& l) { return l.saving.offload; })
      .add("offload_optimizer", "the optimizer's states do", [](auto& l) { return l.saving.offload_optimizer; });
}

Fields<LayoutPoint> layout_point_fields() {
  const auto meaning = [](const char* metric) { return meaning_of(*metric_named(metric)); };
  return Fields<LayoutPoint>()
      .all(&LayoutPoint::layout, layout_choice_fields())
      .add("step_ms", "ms of a step", &LayoutPoint::step_ms)
      .add("tokens_per_s_per_gpu", "tokens", &LayoutPoint::tokens_per_s, {.decimals = 2})
      .add("mfu", meaning("mfu"), &LayoutPoint::mfu, {.decimals = 5})
      .add("bubble_ms", meaning("bubble_ms"), &LayoutPoint::bubble_ms)
      .add("exposed_comm_ms", "ms of exposed communication, mean of the ranks", &LayoutPoint::exposed_ms)
      .add("memory_gib", meaning("memory_gib"), &LayoutPoint::memory_gib)
      .add("fits_memory", "the GPU has that much", &LayoutPoint::fits)
      .all(&LayoutPoint::known, known_fields())
      .add("bound_by", "what most of the step goes by", &LayoutPoint::bound_by)
      .add("largest_overhead", "of bubble and communication that nothing hides, the larger",
           &LayoutPoint::largest_overhead)
      .add("by_operators", "simulated operator by operator, not slot by slot", &LayoutPoint::by_operators)
      .add("gpu_hours_per_trillion_tokens", meaning("gpu_hours_per_trillion_tokens"),
           [](auto& p) { return gpu_hours(p, kTrillion); }, {.decimals = 1});
}

Fields<LayoutOfJob> layout_of_job_fields() {
  return Fields<LayoutOfJob>()
      .add("hardware", "machine", [](auto& l) { return l.job.hardware[l.point.layout.machine].name; })
      .all(
          [](auto& l) -> auto& { return l.point; }, layout_point_fields())
      .add("days", "of the whole training", [](auto& l) { return only_if(l.job.tokens > 0, days(l.point, l.job)); })
      .add("cost_usd", "US dollars of the whole training, or of 10^12 tokens",
           [](auto& l) { return only_if(usd_of(l.job, l.point) > 0, usd_of(l.job, l.point)); }, {.decimals = 2});
}

std::vector<LayoutOfJob> best_layouts(const TrainingPlanResult& r) {
  std::vector<LayoutOfJob> best;
  for (const LayoutPoint& point : r.answer.best) best.push_back({r.job, point});
  return best;
}

Fields<LayoutSensitivity> layout_sensitivity_fields() {
  return Fields<LayoutSensitivity>()
      .add("assumption", "which one", &LayoutSensitivity::assumption)
      .add("best", "the best layout then", [](auto& s) { return describe(s.best.layout); })
      .add("best_step_ms", "ms of its step", [](auto& s) { return s.best.step_ms; })
      .add("answer_step_ms", "ms of the answer's step then", [](auto& s) { return s.answer.step_ms; });
}

std::optional<MegatronFlags> flags_of_best(const TrainingPlanResult& r) {
  if (r.answer.best.empty()) return std::nullopt;
  return flags_of(r.job, r.answer.best.front().layout);
}

Fields<TrainingPlanResult> training_plan_fields() {
  const auto flags = Fields<MegatronFlags>()
                         .add("megatron_flags", "Megatron-LM's flags of the best", &MegatronFlags::flags)
                         .add("megatron_notes", "what they do not say", &MegatronFlags::notes)
                         .add("stages",
                              "what each stage of the pipeline holds, in the order of the forward pass; "
                              "stage i is on rank i modulo the pipeline's ranks",
                              &MegatronFlags::stages);
  return output_fields<TrainingPlanResult>()
      .add("model", "model", [](auto& r) { return r.job.model; })
      .add("gpus", "GPUs", [](auto& r) { return r.job.gpus; })
      .list("layouts", "the best layouts, confirmed operator by operator", best_layouts, layout_of_job_fields())
      .add("fitting", "layouts that fit into memory", [](auto& r) { return r.answer.searched.size(); })
      .add("too_large", "layouts that do not", [](auto& r) { return r.answer.too_large.size(); })
      .values(
          "refused", "layouts that cannot be, by why", [](auto& r) { return r.answer.refused; }, As())
      .list(
          "sensitivities", "if an assumption is wrong", [](auto& r) -> auto& { return r.sensitivities; },
          layout_sensitivity_fields())
      .all(flags_of_best, flags);
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

std::string training_plan_json(const TrainingPlanResult& result) { return training_plan_fields().json(result); }

Describe training_plan_described() { return training_plan_fields().described(); }

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
