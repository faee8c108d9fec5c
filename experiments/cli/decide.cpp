// moeline decide: which of several settings, from where on, and how sure.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/file.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/decide_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"

namespace moeline {
namespace {

struct DecideOptions {
  std::vector<std::string> scenarios, options, assignments, along, limits;
  std::string by, html, svg;
  std::string format = "table";
  int samples = 1;
  bool force = false;
};

DecideQuestion question_of(const DecideOptions& options) {
  if (options.along.size() > 2) throw UsageError("--along: there are one or two axes");
  if (options.scenarios.size() > 1 && !options.options.empty()) {
    throw UsageError("--option: changes one scenario, and there are several");
  }
  if (options.scenarios.size() == 1 && options.options.empty()) {
    throw UsageError("--option: or a second scenario is needed: there is nothing to compare with");
  }
  DecideQuestion question{.settings = settings_of(options.scenarios, options.options, options.assignments),
                          .by = options.by,
                          .samples = options.samples};
  if (!options.along.empty()) question.along = read_axis(options.along.front());
  if (options.along.size() == 2) question.beside = read_axis(options.along.back());
  for (const std::string& limit : options.limits) question.limits.push_back(limit_of(limit));
  return question;
}

void check_outputs(const DecideOptions& options) {
  const std::vector<OutputFile> outputs = {{"--html", options.html, FileKind::page},
                                           {"--svg", options.svg, FileKind::svg}};
  for (const OutputFile& output : outputs) {
    if (!output.path.empty() && options.along.empty()) {
      throw UsageError(fmt::format("{}: draws curves, and there is no axis: give --along", output.option));
    }
    check_output(output, options.scenarios, options.force);
  }
  check_distinct(outputs);
}

void decide_command(const DecideOptions& options, const Console& console) {
  check_outputs(options);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_page_template();
  DecideQuestion question = question_of(options);
  const Decision decision =
      with_progress(console, [&](const Progress& progress) { return decide(std::move(question), progress); });
  if (page_template) write_text(options.html, to_html(decide_page(decision), *page_template));
  if (!options.svg.empty()) write_text(options.svg, decide_svg(decision));
  console.print(options.format == "json"  ? decide_json(decision)
                : options.format == "csv" ? decide_csv(decision)
                                          : decide_table(decision));
}

constexpr const char* kDecideDefinitions =
    R"(Settings are scenarios, or one scenario with several --option, each of which is changes as after --set, parted by blanks;
with one --option the scenario as it is stands beside it.
--along KEY=A..B: whole numbers that double from A to B (nine equally far apart where B is below 4 A), KEY=[a, b, c]: these.
All settings are simulated there; between neighbours with different winners bisection finds where that turns, among what all
can be simulated at: a batch that does not divide gives way to one near it that does. An axis that does not apply to a
setting (accepted drafts, of one without) leaves it as it is. What crosses twice between two
neighbours is not seen. Of two axes the second's values have a curve each.
workload.concurrency says how many requests there are on all GPUs, whatever a setting makes of them: settings that split a
machine differently are asked about the same load by it.
Who does not fit memory, or breaks a limit of --where, has a value and cannot win (!).
why: at both ends and at each turn what the winner saves and pays, by what the end of the step waited for (as in moeline
explain), of requests by where their time goes; the parts sum to the metric, of a rate to what a token takes. Of a metric that
does not follow from that time (memory, quantiles, parts of a step) they are those of the step or the request.
gpu_us_per_token is what a GPU takes for each token of its step: by it chunks of training and parts of models (layers: 4) are
compared unless --by says otherwise, as they have no throughput.
how sure: published pairs of which others measured both sides (experiments/studies/decisions): what is ahead by less than the
ratio was off there in the median is too close to call. --samples: with so many equal draws of both (slow GPUs, jitter,
loads; arrivals and lengths) how much the winner is ahead.)";

}  // namespace

Command make_decide(Console& console) {
  auto options = std::make_shared<DecideOptions>();
  return {.name = "decide",
          .about = "which of several settings is faster, from where on, why, and how sure that is",
          .options = {required({"scenarios", &options->scenarios, "scenario files (YAML); one with --option"}),
                      single_words({"--option", &options->options, "a setting: \"parallelism={tp: 8} schedule=auto\""}),
                      single_words({"--set", &options->assignments, "override in all of them: comm.num_sms=24"}),
                      single_words({"--along", &options->along, "axis: workload.batch_size=1..512; twice: two axes"}),
                      {"--by", &options->by, "metric; by default tokens_per_s_per_gpu, of requests those of answers",
                       NotEmpty{}},
                      single_words({"--where", &options->limits, "what a winner keeps: \"tpot_ms <= 50\""}),
                      {"--samples", &options->samples, "so many equal draws of both: how far ahead the winner is",
                       Between{1, 10000}},
                      {"--html", &options->html, "a page of the curves and of what is printed", NotEmpty{}},
                      {"--svg", &options->svg, "a picture of the curves", NotEmpty{}},
                      force_option(options->force),
                      format_option(options->format, {"table", "json", "csv"})},
          .footer = kDecideDefinitions,
          .run = [options, &console] { decide_command(*options, console); }};
}

}  // namespace moeline
