#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/console.hpp"
#include "experiments/cli/output/plan_output.hpp"
#include "experiments/cli/output/training_plan_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"
#include "experiments/plan/promises.hpp"
#include "experiments/plan_training/training_job.hpp"

namespace moeline {

// moeline plan of a training job.

namespace {

struct PlanOptions {
  std::string plan;
  std::string format = "table";
  std::string html;
  std::size_t workers = 0;  ///< 0: as many as there are cores
  bool no_sensitivity = false;
  bool confirm = false;
  bool force = false;
};

/// The exit code.
int plan_training(const PlanOptions& options, const Console& console) {
  check_output({"--html", options.html, FileKind::page}, {options.plan}, options.force);
  const TrainingJob job = load_training_job(options.plan);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_page_template();
  const std::size_t workers = options.workers > 0 ? options.workers : cores();
  LayoutPoints points(job);
  const TrainingAnswer answer =
      with_progress(console, [&](const Progress& progress) { return search_layouts(job, points, workers, progress); });
  std::vector<LayoutSensitivity> sensitive;
  if (!options.no_sensitivity) {
    sensitive = with_progress(console, [&](const Progress& progress) {
      return layout_sensitivities(job, answer, points, workers, progress);
    });
  }
  const TrainingPlanResult result{job, answer, sensitive};
  const std::string text = options.format == "json"  ? training_plan_json(result)
                           : options.format == "csv" ? training_plan_csv(result)
                                                     : training_plan_table(result);
  if (page_template) write_text(options.html, to_html(training_plan_page(result), *page_template));
  console.print(text);
  console.note(fmt::format("{} steps simulated", points.size()));
  return answer.best.empty() ? kInfeasible : kDone;
}

}  // namespace

// moeline plan: how many GPUs, in what deployment, serve a load within its limits; or which layout trains a model
// fastest.

namespace {

constexpr const char* kPlanDefinitions =
    R"(PLAN: a YAML file; experiments/plan/README.md has its keys, and how a plan follows from simulated steps.
GPUs: whole units of prefill and decode, on nodes that are rented whole. Decode: at TPOT each request is in flight output
tokens x TPOT long; so many slots that hardly any request finds all taken. Prefill: so many units that TTFT is within its
limit at the percentile, by a simulation of arrivals. TTFT: arrival to end of the step with the prompt's last token, and
until its cache is where it decodes; TPOT: a step of full batches over the tokens a request gets from it. With --confirm
both are those of requests served one by one. Left out: tokenizers, schedulers on the CPU, failures.
tokens_per_s_per_gpu: tokens produced, over all GPUs. cost_per_million_tokens: USD, of tokens produced, prompts included.
bound by: what a side would gain most from. memory: no more requests fit; tpot, ttft: with a wider limit fewer GPUs would
do; else what most of a full step goes by, with its share: compute, or network, communication that nothing hides. TBO: two
batches overlap. "on 64, not 48": GPUs. Exit code 1: nothing is within the limits; then the nearest limits that can be met
are printed.

With the key training (experiments/plan_training/README.md): the fastest layouts of a training job that fit into memory. Splits of the GPUs are
compared by slots with GPUs alike, the best with every pipeline and recomputation, the best of all operator by operator.
bubble: a rank has no slot to run; exposed communication: communication runs and no computation, both as means of the
ranks. Exit code 1: no layout fits.)";

int plan_command(const PlanOptions& options, const Console& console) {
  if (is_training_job(options.plan)) return plan_training(options, console);
  check_output({"--html", options.html, FileKind::page}, {options.plan}, options.force);
  const Plan plan = load_plan(options.plan);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_page_template();
  const std::size_t workers = options.workers > 0 ? options.workers : cores();
  KnownSteps known;
  Answer answer =
      with_progress(console, [&](const Progress& progress) { return solve(plan, known, workers, progress); });
  std::optional<Promises> promises;
  if (options.confirm && !answer.deployments.empty()) {
    promises = with_progress(
        console, [&](const Progress& progress) { return keep_promises(plan, answer.deployments, progress); });
    put_first(*promises, answer.deployments);
  }
  std::vector<Sensitivity> sensitive;
  if (!options.no_sensitivity) {
    sensitive = with_progress(
        console, [&](const Progress& progress) { return sensitivities(plan, answer, known, workers, progress); });
  }
  std::optional<Course> course;
  if (!plan.traffic.course.empty() && !answer.deployments.empty()) {
    course = with_progress(console, [&](const Progress& progress) {
      return along_the_day(plan, answer.deployments.front(), known, workers, progress);
    });
  }
  const PlanResult result{plan, answer, sensitive, promises, course};
  const std::string text = options.format == "json"  ? plan_json(result)
                           : options.format == "csv" ? plan_csv(result)
                                                     : plan_table(result);
  if (page_template) write_text(options.html, to_html(plan_page(result), *page_template));
  console.print(text);
  console.note(fmt::format("{} steps simulated", known.size()));
  const bool broken = promises && !promises->kept;
  return answer.deployments.empty() || broken ? kInfeasible : kDone;
}

}  // namespace

Command make_plan(Console& console) {
  auto options = std::make_shared<PlanOptions>();
  return {
      .name = "plan",
      .about = "how many GPUs serve a load, or which layout trains a model fastest, at what cost",
      .options =
          {required({"plan", &options->plan, "plan file (YAML)"}),
           format_option(options->format, {"table", "json", "csv"}),
           {"--html", &options->html,
            "write the answer as a page that needs no network, with a plot of what was searched", NotEmpty{}},
           force_option(options->force),
           workers_option(options->workers),
           {"--no-sensitivity", &options->no_sensitivity, "leave out what the answer depends on"},
           {"--confirm", &options->confirm,
            "serve the answer request by request, and where it breaks a limit the next one, until one keeps both; exit "
            "code 1: none does"}},
      .footer = kPlanDefinitions,
      .run = [options, &console] { console.exit_code = plan_command(*options, console); }};
}

}  // namespace moeline
