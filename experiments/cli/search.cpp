// moeline search: the best order of a schedule's phases, and what none can beat.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/search_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"

namespace moeline {
namespace {

struct SearchOptions {
  SearchRequest request;
  std::vector<std::string> over;
  std::string output;
  std::string format = "table";
  std::optional<std::size_t> most;
  bool force = false;
};

bool is_over(const SearchOptions& options, const char* what) {
  return std::find(options.over.begin(), options.over.end(), what) != options.over.end();
}

void check_values(const SearchOptions& options, const char* option, const std::vector<int>& values, const char* what) {
  if (values.empty() || is_over(options, what) || is_over(options, ("phase-" + std::string(what)).c_str())) return;
  throw UsageError(fmt::format("{}: says which are searched, and needs --over {}", option, what));
}

SearchRequest request_of(const SearchOptions& options) {
  SearchRequest request = options.request;
  check_values(options, "--num-sms", request.num_sms, "sms");
  check_values(options, "--pieces", request.piece_counts, "pieces");
  if (request.workers == 0) request.workers = cores();
  request.orders = options.over.empty() || is_over(options, "orders");
  request.most = options.most.value_or(request.most);
  request.schedules = is_over(options, "schedules");
  request.sms = is_over(options, "sms");
  request.phase_sms = is_over(options, "phase-sms");
  request.pieces = is_over(options, "pieces");
  request.sides = is_over(options, "side");
  request.splits = is_over(options, "splits");
  request.attention = is_over(options, "attention");
  return request;
}

const std::vector<std::string> kOfPlans = {"orders", "schedules", "sms",       "phase-sms",
                                           "pieces", "splits",    "attention", "side"};
const std::vector<std::string> kOfPipelines = {"schedules", "stages"};

std::vector<std::string> all_words() {
  std::vector<std::string> words = kOfPlans;
  words.push_back("stages");
  return words;
}

// What is searched goes by what the scenario is.
void check_words(const SearchOptions& options, const std::vector<std::string>& known, const char* what) {
  for (const std::string& word : options.over) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    throw UsageError(fmt::format("--over {}: of {} are searched: {}", word, what, fmt::join(known, ", ")));
  }
}

void search_pipelines(const SearchOptions& options, const Console& console) {
  check_words(options, kOfPipelines, "a whole pipeline");
  check_values(options, "--num-sms", options.request.num_sms, "sms");
  check_values(options, "--pieces", options.request.piece_counts, "pieces");
  if (!options.output.empty()) {
    throw UsageError("-o: writes a plan of overlapped phases; of a pipeline the answer is --set");
  }
  constexpr std::size_t kMost = 400;
  PipelineRequest request{.scenario = options.request.scenario,
                          .assignments = options.request.assignments,
                          .schedules = is_over(options, "schedules"),
                          .stages = options.over.empty() || is_over(options, "stages"),
                          .most = options.most.value_or(kMost),
                          .seconds = options.request.seconds,
                          .workers = options.request.workers == 0 ? cores() : options.request.workers};
  const PipelineAnswer answer =
      with_progress(console, [&](const Progress& progress) { return search_pipeline(request, progress); });
  console.print(options.format == "json" ? pipeline_search_json(request, answer)
                                         : pipeline_search_table(request, answer));
}

void search_plans(const SearchOptions& options, const Console& console) {
  check_words(options, kOfPlans, "a plan of overlapped phases");
  const SearchRequest request = request_of(options);
  check_output({"-o", options.output, FileKind::overlap_plan}, {request.scenario.string()}, options.force);
  const SearchResult result =
      with_progress(console, [&](const Progress& progress) { return search(request, progress); });
  if (!options.output.empty()) write_text(options.output, result.text);
  console.print(options.format == "json" ? search_json(request, result, options.output)
                                         : search_table(request, result));
}

void search_command(const SearchOptions& options, const Console& console) {
  const Setup setup = load_setup(options.request.scenario, options.request.assignments);
  setup.scenario.kind().pipeline ? search_pipelines(options, console) : search_plans(options, console);
}

constexpr const char* kHelp =
    R"(SCENARIO has the phases that stand in an overlap plan: its schedule is dualpipe-chunk, prefill-two-batch, decode-two-batch,
single-batch or per-expert; with --over schedules any of prefill or decode.
What --over may vary:
orders: which phase runs beside which.
schedules: all that have a plan.
sms: how many SMs communication holds (--num-sms; else 8 to 24, and in the low-latency mode 0 to 32, on which a combine starts
while the GEMM before it runs).
phase-sms (normal mode): tries separate SM counts for dispatch and combine; the compute phase beside a transfer gets the SMs
that it leaves.
pieces: dispatch, experts and combine are cut into so many (--pieces, else 1, 2, 4), by token and by expert, in a row or in turn.
splits: the larger of two micro-batches has 50, 55, 60 or 70 % of the work.
attention: decode's is cut before its core or behind it.
side: which weight gradients of training use the side stream.
Every plan is simulated as `moeline simulate` does it, on one rank that stands for all; the best one and the
scenario's also with all ranks, where the scenario has them.
Before it is simulated each order is bounded: by the cycle of its phases that takes longest, each phase as fast as alone. Orders
that cannot be faster than the best known by 0.01 % are ruled out, where many begin alike all at once; the others are simulated,
the most promising first, until none is left that could be faster: then the best is the best there is. --most and --seconds end
it before, but not before the plan that each variant begins with; what none of the rest can beat is printed.
-o writes the best plan, for `moeline simulate SCENARIO --set overlap=FILE` and what else is printed.
Of a whole pipeline of training: stages: how many decoder layers each has; schedules: every pipeline's. Steps are simulated
slot by slot, with GPUs alike; only what fits memory counts. Few ways to share the layers out are all looked at; of many, one
layer moves at a time until no move helps. The best is simulated operator by operator, and told as --set.)";

}  // namespace

Command make_search(Console& console) {
  auto options = std::make_shared<SearchOptions>();
  SearchRequest& request = options->request;
  request.workers = 0;
  return {
      .name = "search",
      .about = "the best plan of overlapped phases, and what none can beat",
      .options = {required({"scenario", &request.scenario, "scenario (.yaml)"}),
                  single_words({"--set", &request.assignments, "override, comm.num_sms=24"}),
                  comma_separated({"--over", &options->over,
                                   "what is searched, by default orders; of a whole pipeline stages", all_words()}),
                  comma_separated({"--num-sms", &request.num_sms, "of --over sms: 16,20,24", Between{0, 1024}}),
                  comma_separated({"--pieces", &request.piece_counts, "of --over pieces: 1,2,4", Between{1, 64}}),
                  {"--most", &options->most, "that are simulated: plans (4000), or steps of each pipeline (400)",
                   Between{1, 10'000'000}},
                  {"--seconds", &request.seconds, "after which no other order is begun (no limit)", Between{0.0, 1e6}},
                  workers_option(request.workers),
                  {"-o", &options->output, "write the best plan", NotEmpty{}},
                  force_option(options->force),
                  format_option(options->format, {"table", "json"})},
      .footer = kHelp,
      .run = [options, &console] { search_command(*options, console); }};
}

}  // namespace moeline
