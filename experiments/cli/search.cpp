// moeline search: the best order of a schedule's phases, and what none can beat.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/search_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"

namespace moeline {
namespace {

struct Options {
  SearchRequest request;
  std::vector<std::string> over = {"orders"};
  std::string output;
  std::string format = "table";
  bool force = false;
};

bool is_over(const Options& options, const char* what) {
  return std::find(options.over.begin(), options.over.end(), what) != options.over.end();
}

void check_values(const Options& options, const char* option, const std::vector<int>& values, const char* what) {
  if (values.empty() || is_over(options, what) || is_over(options, ("phase-" + std::string(what)).c_str())) return;
  throw CLI::ValidationError(fmt::format("{}: says which are searched, and needs --over {}", option, what));
}

SearchRequest request_of(const Options& options) {
  SearchRequest request = options.request;
  check_values(options, "--num-sms", request.num_sms, "sms");
  check_values(options, "--pieces", request.piece_counts, "pieces");
  if (request.workers == 0) request.workers = cores();
  request.orders = is_over(options, "orders");
  request.schedules = is_over(options, "schedules");
  request.sms = is_over(options, "sms");
  request.phase_sms = is_over(options, "phase-sms");
  request.pieces = is_over(options, "pieces");
  request.sides = is_over(options, "side");
  request.splits = is_over(options, "splits");
  request.attention = is_over(options, "attention");
  return request;
}

void search_command(const Options& options) {
  const SearchRequest request = request_of(options);
  check_output({"-o", options.output, FileKind::overlap_plan}, {request.scenario.string()}, options.force);
  SearchResult result;
  {
    ProgressBar bar(true);
    result = search(request, std::ref(bar));
  }
  if (!options.output.empty()) write_text(options.output, result.text);
  fmt::print("{}",
             options.format == "json" ? search_json(request, result, options.output) : search_table(request, result));
}

constexpr const char* kHelp =
    R"(SCENARIO: whose phases stand in an overlap plan, of dualpipe-chunk, prefill-two-batch, decode-two-batch, single-batch or
per-expert; with --over schedules any of prefill or decode.
orders: which phase runs beside which. schedules: all that have a plan. sms: of communication (--num-sms; else 8 to 24, and of
the low-latency mode 0 to 32, on which a combine starts while the GEMM before it runs). phase-sms: of dispatch and of combine apart, in the normal mode, where
phases beside them leave what runs beside them. pieces: of dispatch, experts and combine
(--pieces, else 1, 2, 4), by token and by expert, in a row or in turn. splits: the larger of two micro-batches has 50, 55, 60 or
70 % of the work. attention: of decode, cut before its core or behind it. side: which weight gradients use the side stream, of
training. Every plan is simulated as `moeline simulate` does it, on one rank that stands for all; the best one and the
scenario's also with all ranks, where the scenario has them.
Before it is simulated each order is bounded: by the cycle of its phases that takes longest, each phase as fast as alone. Orders
that cannot be faster than the best known by 0.01 % are ruled out, where many begin alike all at once; the others are simulated,
the most promising first, until none is left that could be faster: then the best is the best there is. --most and --seconds end
it before; what none of the rest can beat is printed.
-o writes the best plan, for `moeline simulate SCENARIO --set overlap=FILE` and what else is printed.)";

}  // namespace

void add_search(CLI::App& app, int& /*exit_code*/) {
  auto options = std::make_shared<Options>();
  options->request.workers = 0;
  CLI::App* command = app.add_subcommand("search", "the best plan of overlapped phases, and what none can beat");
  command->add_option("scenario", options->request.scenario, "scenario (.yaml)")->required();
  command->add_option("--set", options->request.assignments, "override, comm.num_sms=24")->allow_extra_args(false);
  command
      ->add_option("--over", options->over,
                   "orders, schedules, sms, phase-sms, pieces, splits, attention, side: what is searched (orders)")
      ->delimiter(',')
      ->transform(one_of({"orders", "schedules", "sms", "phase-sms", "pieces", "splits", "attention", "side"}));
  command->add_option("--num-sms", options->request.num_sms, "of --over sms: 16,20,24")
      ->delimiter(',')
      ->check(CLI::Range(0, 1024));
  command->add_option("--pieces", options->request.piece_counts, "of --over pieces: 1,2,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  command->add_option("--most", options->request.most, "plans that are simulated (4000)")
      ->check(CLI::Range(1, 10'000'000));
  command->add_option("--seconds", options->request.seconds, "after which nothing more is begun (no limit)")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--workers", options->request.workers, "threads (as many as there are cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("-o", options->output, "write the best plan")->check(not_empty());
  add_force(*command, options->force);
  command->add_option("--format", options->format)->transform(one_of({"table", "json"}));
  command->footer(kHelp);
  command->callback([options] { search_command(*options); });
}

}  // namespace moeline
