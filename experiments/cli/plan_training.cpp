#include "experiments/cli/plan_training.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <optional>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/training_plan_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"

namespace moeline {

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

}  // namespace moeline
