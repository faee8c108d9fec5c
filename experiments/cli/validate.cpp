// moeline validate: every published or measured fact that we know of, against its prediction.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/file.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/validate_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"
#include "experiments/page/template.hpp"

namespace moeline {
namespace {

struct ValidateOptions {
  std::vector<std::string> files;
  std::string format = "table";
  std::string baseline, written;  // files of earlier errors: that is held against, and that gets these
  std::string html;
  bool force = false;
};

void check_outputs(const ValidateOptions& options) {
  const std::vector<std::string>& inputs = options.files;
  if (!options.html.empty() && options.baseline.empty()) {
    throw UsageError("--html: shows errors over the versions of a baseline, and there is none; give --baseline");
  }
  check_output({"--html", options.html, FileKind::page}, inputs, options.force);
  check_output({"--write-baseline", options.written, FileKind::baseline}, inputs, options.force);
  check_distinct({{"--html", options.html, FileKind::page}, {"--write-baseline", options.written, FileKind::baseline}});
}

// With the versions that the file has, if it is there.
Baseline earlier(const ValidateOptions& options) {
  const bool is_there = !options.written.empty() && is_own(options.written, FileKind::baseline);
  return is_there ? read_baseline(options.written) : Baseline{};
}

ExitCode print_validation(const ValidateOptions& options, const std::string& program, const Console& console) {
  check_outputs(options);
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) page_template = load_page_template();
  std::optional<Baseline> baseline;
  if (!options.baseline.empty()) baseline = read_baseline(options.baseline);
  Baseline written = earlier(options);
  const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  const Validation validation = with_progress(
      console, [&](const Progress& progress) { return validate(files.empty() ? all_fact_files() : files, progress); });
  std::optional<BaselineVerdict> verdict;
  if (baseline) {
    const BaselineVersion& newest = baseline->versions.back();
    verdict = {options.baseline, newest.program, difference(newest.errors, errors_of(validation))};
  }
  if (page_template) write_text(options.html, to_html(baseline_page(validation, *baseline), *page_template));
  if (!options.written.empty()) {
    add_version(written, program, errors_of(validation));
    write_text(options.written, to_json(written));
  }
  console.print(options.format == "json" ? to_json(validation, verdict ? &*verdict : nullptr)
                                         : to_table(validation) + (verdict ? baseline_table(*verdict) : ""));
  const bool is_worse = verdict && !verdict->changes.worse.empty();
  return is_worse || gates(validation.subjects, Verdict::failed) > 0 ? kInfeasible : kDone;
}

constexpr const char* kValidateDefinitions =
    R"(error = predicted / measured - 1, in the unit of the fact: of a rate, + is faster, of a time, + is slower.
n: fitted constants that entered.
status: what those who made them knew of the fact. fitted: a constant was fitted to it, and it is no part of any score;
not fitted: none was, but they knew it when they chose formulae and constants; blind: they did not.
A fact without a gate is shown with its error, and fails nothing. Data of others is looked for in $MOELINE_DATA, else in
../shared/data; facts that need what is absent are skipped. Any gate that fails makes the exit code 1. Of a whole table of
others, each row predicted by a fit without it, the error is the mean of the rows' |error|; worst and mean stand below.
Null models, what a prediction must beat:
  communication_free, everything_serial  transfers take no time, SMs or bandwidth; no overlap
  copied_mean                            the same quantity measured elsewhere, as the file states it
  undisturbed                            kernels side by side do not slow each other
  roofline, constant_efficiency          kernels run at the machine's peaks; at the mean share of them that the others
                                         of the table reach
  constant_rate                          all rows of a table take the same time per byte: the best such rate
  six_flops_per_parameter                of the active parameters
How a fact file is written: tests/published/README.md. A file with the key served is a study of served models' rows
(experiments/studies/served_b200): TPOT of each, at the batch that Little's law gives, by class of parallelism, beside the median of
the other rows of the same model, format, class and lengths; rows that are left out or refused are counted by why. One with
the key pairs (experiments/studies/decisions) has pairs of settings of which others measured both: is the faster one named, and
how far is the ratio off, by what the two differ in.
A baseline has the errors of earlier versions of this program (tests/published/accuracy.json): --baseline holds these against
its newest one, and where a fact's |error| is 2 points or more worse the exit code is 1. --write-baseline adds a version to
the file, or writes one anew; facts whose data is absent keep the error that they had.)";

}  // namespace

Command make_validate(Console& console, const std::string& program) {
  auto options = std::make_shared<ValidateOptions>();
  return {
      .name = "validate",
      .about = "hold predictions against published and measured facts",
      .options = {{"facts", &options->files,
                   "fact files, studies of served models or of pairs; default: all of tests/published"},
                  format_option(options->format, {"table", "json"}),
                  {"--baseline", &options->baseline, "errors of earlier versions, which may be no worse", NotEmpty{}},
                  {"--write-baseline", &options->written, "write these errors as a baseline's newest version",
                   NotEmpty{}},
                  {"--html", &options->html, "with --baseline: a page of the errors over its versions", NotEmpty{}},
                  force_option(options->force)},
      .footer = kValidateDefinitions,
      .run = [options, program, &console] { console.exit_code = print_validation(*options, program, console); }};
}

}  // namespace moeline
