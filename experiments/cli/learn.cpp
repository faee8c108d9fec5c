// moeline learn: from traces of a run to its scenario, and to a machine whose kernels take what they took there.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/file.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/measured_input.hpp"
#include "experiments/cli/output/learn_output.hpp"
#include "experiments/cli/output_file.hpp"

namespace moeline {
namespace {

struct LearnOptions {
  std::vector<std::string> traces;
  MeasuredInput input;
  std::string model, hardware, scenario;
  std::vector<std::string> assignments;
  std::string output;
  bool force = false;
  std::string format = "table";
};

// A path on the command line is meant from here; in the folder's files it must stand by itself.
std::string by_itself(const std::string& reference) {
  std::error_code failed;
  const bool is_path = reference.find('/') != std::string::npos || std::filesystem::is_regular_file(reference, failed);
  return is_path ? std::filesystem::absolute(reference).lexically_normal().string() : reference;
}

GivenSettings given_settings(const LearnOptions& options) {
  GivenSettings given;
  given.model = options.model.empty() ? "" : by_itself(options.model);
  given.hardware = options.hardware.empty() ? "" : by_itself(options.hardware);
  given.assignments = options.assignments;
  given.scenario_file = options.scenario;
  if (!options.scenario.empty()) given.scenario = read_text(options.scenario);
  return given;
}

std::string this_month() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  ::gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}", date.tm_year + 1900, date.tm_mon + 1);
}

// What a folder of ours holds; all else is somebody's.
const std::vector<std::string> kFiles = {"machine.yaml", "scenario.yaml", "report.html"};

void check_folder(const LearnOptions& options) {
  const std::filesystem::path folder(options.output);
  std::error_code failed;
  if (!std::filesystem::exists(folder, failed)) return;
  if (!std::filesystem::is_directory(folder, failed)) {
    throw UsageError(fmt::format("-o {}: is no folder", options.output));
  }
  for (const std::string& file : kFiles) {
    if (std::filesystem::is_directory(folder / file, failed)) {
      throw UsageError(fmt::format("-o {}: its {} is a folder", options.output, file));
    }
  }
  if (options.force) return;
  for (const std::string& file : kFiles) {
    if (!std::filesystem::exists(folder / file, failed)) continue;
    throw UsageError(fmt::format("-o {}: has a {} already, which may have been edited; --force writes over it",
                                 options.output, file));
  }
}

// Nothing where what draws pages is not installed: the files that matter are there without.
std::optional<PageTemplate> page_template_if_any(const Console& console) {
  try {
    return load_page_template();
  } catch (const SpecError& error) {
    console.warn(fmt::format("report.html is not written: {}", error.what()));
    return std::nullopt;
  }
}

void write_folder(const LearnOptions& options, const LearnReport& report,
                  const std::optional<PageTemplate>& page_template) {
  const std::filesystem::path folder(options.output);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw SpecError(options.output, 0, "cannot be made: " + failed.message());
  write_text(folder / "machine.yaml", report.learning.machine_yaml);
  write_text(folder / "scenario.yaml", report.learning.scenario_yaml);
  if (page_template) write_text(folder / "report.html", to_html(learn_page(report), *page_template));
}

std::vector<Measured> load_traces(const LearnOptions& options, const Console& console) {
  std::vector<Measured> traces;
  for (const std::string& file : options.traces) {
    MeasuredInput input = options.input;
    input.path = file;
    traces.push_back(load_measured(input, console));
  }
  return traces;
}

// Why the trace is perhaps of another model; empty: nothing says so.
std::string doubt_of(const LearntTrace& trace) {
  constexpr double kLeast = 0.9;
  if (trace.aligned.assigned < kLeast) {
    return fmt::format("{:.1f} % of the kernels' time has an operator, less than {:.0f} %",
                       100 * trace.aligned.assigned, 100 * kLeast);
  }
  if (trace.aligned.missing > 1 - kLeast) {
    return fmt::format("{:.1f} % of the predicted kernels' time has no kernel in the trace, more than {:.0f} %",
                       100 * trace.aligned.missing, 100 * (1 - kLeast));
  }
  return "";
}

int learn_command(const LearnOptions& options, const Console& console) {
  check_folder(options);
  const std::optional<PageTemplate> page_template = page_template_if_any(console);
  const std::vector<Measured> traces = load_traces(options, console);
  LearnRequest request{.traces = {}, .given = given_settings(options), .month = this_month()};
  for (std::size_t i = 0; i < traces.size(); ++i) request.traces.push_back({options.traces[i], &traces[i]});
  const Learning learning = learn(request);
  const LearntTrace& first = learning.traces.front();
  const LearnReport report{learning, options.output, to_svg(layer_pictures(first))};
  write_folder(options, report, page_template);
  console.print(options.format == "json"  ? to_json(report)
                : options.format == "csv" ? to_csv(report)
                                          : to_table(report));
  for (const LearntTrace& trace : learning.traces) {
    for (const std::string& warning : trace.warnings) console.warn(warning);
  }
  const auto doubtful = std::find_if(learning.traces.begin(), learning.traces.end(),
                                     [](const LearntTrace& trace) { return !doubt_of(trace).empty(); });
  if (doubtful == learning.traces.end()) return kDone;
  console.fail(fmt::format("{}: {}: is it this model?", doubtful->file, doubt_of(*doubtful)));
  return kInfeasible;
}

constexpr const char* kLearnDefinitions =
    R"(A step of the trace, the median of the kind that takes most of it, is simulated by the settings that the trace tells,
and its kernels are aligned with the operators of that simulation. Of a step that runs in CUDA graphs the kernels of these
graphs count, from the first to the last.
settings: how each is known. annotation: what the server wrote around the step; metadata: of the trace or its operators;
name: of a kernel; period: how often layers repeat, or the time of one; given: --model, --hardware, --scenario, --set;
guessed: nothing says it; the last column says what another value would change, and --set puts a better one in its place.
measured us: what the kernels of an operator add to the step: one that starts before the one in front of it ends adds what
is behind that end. The gap in front of a kernel is part of it, but where its launch
came late, or where the gap is more than three times the median one (and 2 us): then it waited for something.
factor: measured over predicted, of each class and of each operator, the latter shrunk towards its class the less often it
was seen and the more it scatters. 0: other kernels do its work along with their own. Collectives count by their shortest
execution, since longer ones wait for other ranks.
experts reached: at the HBM's peak no more experts can have been read than the time of their products allows. That is a
setting and no factor: routing.experts_hit has it layer by layer, routing.alpha makes as many in the mean, and more of them
with more tokens.
-o DIR: scenario.yaml; machine.yaml, the machine with a kernel set learnt-YYYY-MM over the stack's own; report.html. Prices
by it say "learnt", and "extrapolated" beyond twice or half the tokens and keys of the trace; in another phase the set below counts.
Several traces make one kernel set; scenario.yaml is the first one's.
Exit code 1: less than 90 % of a step's kernel time has an operator, or more than 10 % of the predicted time, of products,
attention, experts and collectives, has no kernel: the model is probably another one.)";

}  // namespace

Command make_learn(Console& console) {
  auto options = std::make_shared<LearnOptions>();
  Option folder{"-o,--output", &options->output, "folder for scenario.yaml, machine.yaml and report.html", NotEmpty{}};
  folder.is_required = true;
  return {.name = "learn",
          .about = "from your trace to its scenario, and a machine whose kernels take what they took in it",
          .options = joined(
              {{required({"trace", &options->traces, "profiler traces (.json, .json.gz, .sqlite) of one rank's steps"}),
                {"--model", &options->model, "a name of list models, or the path of a config.json", NotEmpty{}},
                {"--hardware", &options->hardware, "a name of list hardware, or a path; default: the trace's device",
                 NotEmpty{}},
                {"--scenario", &options->scenario, "scenario of the step, in the place of all that would be recovered",
                 NotEmpty{}},
                single_words(
                    {"--set", &options->assignments, "a setting that the trace does not tell: workload.kv_len=4096"}),
                folder,
                force_option(options->force)},
               kernel_map_options(options->input),
               window_options(options->input.window),
               {format_option(options->format, {"table", "json", "csv"})}}),
          .footer = fmt::format("{}\n{}", kLearnDefinitions, kWindowHelp),
          .run = [options, &console] { console.exit_code = learn_command(*options, console); }};
}

}  // namespace moeline
