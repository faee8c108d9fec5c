// moeline validate: every published or measured fact that we know of, against its prediction.
#include <fmt/format.h>

#include <memory>

#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/validate_output.hpp"
#include "experiments/cli/progress_bar.hpp"

namespace moeline {
namespace {

struct ValidateOptions {
  std::vector<std::string> files;
  std::string format = "table";
};

ExitCode print_validation(const ValidateOptions& options, const Console& console) {
  const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  const Validation validation = with_progress(
      console, [&](const Progress& progress) { return validate(files.empty() ? all_fact_files() : files, progress); });
  console.print(options.format == "json" ? to_json(validation) : to_table(validation));
  return gates(validation.subjects, Verdict::failed) > 0 ? kInfeasible : kDone;
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
(experiments/served_b200): TPOT of each, at the batch that Little's law gives, by class of parallelism, beside the median of
the other rows of the same model, format, class and lengths; rows that are left out or refused are counted by why.)";

}  // namespace

void add_validate(CLI::App& app, Console& console) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand("validate", "hold predictions against published and measured facts");
  command->add_option("facts", options->files,
                      "fact files, or studies of served models; default: all of tests/published");
  command->add_option("--format", options->format)->transform(one_of({"table", "json"}));
  command->footer(kValidateDefinitions);
  command->callback([options, &console] { console.exit_code = print_validation(*options, console); });
}

}  // namespace moeline
