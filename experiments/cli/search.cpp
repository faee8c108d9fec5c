// moeline search: the best order of a schedule's phases, and what none can beat.
#include <fmt/format.h>

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
  std::vector<int> num_sms;
  std::string output;
  std::string format = "table";
  bool force = false;
};

bool is_over(const Options& options, const char* what) {
  return std::find(options.over.begin(), options.over.end(), what) != options.over.end();
}

SearchRequest request_of(const Options& options) {
  SearchRequest request = options.request;
  if (request.workers == 0) request.workers = cores();
  request.orders = is_over(options, "orders");
  request.sides = is_over(options, "side");
  if (!is_over(options, "sms") && !options.num_sms.empty()) {
    throw CLI::ValidationError("--num-sms: says which are searched, and needs --over sms");
  }
  if (is_over(options, "sms")) {
    request.num_sms = options.num_sms.empty() ? std::vector{8, 12, 16, 20, 24} : options.num_sms;
  }
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
    R"(SCENARIO: of dualpipe-chunk, prefill-two-batch or decode-two-batch, whose phases stand in an overlap plan.
orders: which phase runs beside which. sms: of communication (--num-sms, else 8, 12, 16, 20 and 24). side: which weight
gradients use the side stream, of training. Every plan is simulated as `moeline simulate` does it, on one rank that stands for
all; the best one and the scenario's also with all ranks, where the scenario has them.
Before it is simulated each order is bounded: by the cycle of its phases that takes longest, each phase as fast as alone. An
order whose bound is no better than the scenario's plan (of very many orders: than the best so far) is ruled out. The bound of
all plans is the largest of the data's own cycles, of the kernels of either stream, and of what an SM or link has to do.
Up to 20,000 plans are all tried; of more a walk from the scenario's plan tries --most, the same ones for the same --seed.
-o writes the best plan, for `moeline simulate SCENARIO --set overlap=FILE`.)";

}  // namespace

void add_search(CLI::App& app, int& /*exit_code*/) {
  auto options = std::make_shared<Options>();
  options->request.workers = 0;
  CLI::App* command = app.add_subcommand("search", "the best order of a schedule's phases, and what none can beat");
  command->add_option("scenario", options->request.scenario, "scenario (.yaml)")->required();
  command->add_option("--set", options->request.assignments, "override, comm.num_sms=24")->allow_extra_args(false);
  command->add_option("--over", options->over, "orders, sms, side: what is searched (orders)")
      ->delimiter(',')
      ->transform(one_of({"orders", "sms", "side"}));
  command->add_option("--num-sms", options->num_sms, "of --over sms: 16,20,24")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  command->add_option("--most", options->request.most, "plans simulated where there are too many to try all (4000)")
      ->check(CLI::Range(1, 10'000'000));
  command->add_option("--seconds", options->request.seconds, "after which nothing more is begun (no limit)")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--seed", options->request.seed, "of the walk (1)")->check(CLI::Range(0, 1 << 30));
  command->add_option("--workers", options->request.workers, "threads (as many as there are cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("-o", options->output, "write the best plan")->check(not_empty());
  add_force(*command, options->force);
  command->add_option("--format", options->format)->transform(one_of({"table", "json"}));
  command->footer(kHelp);
  command->callback([options] { search_command(*options); });
}

}  // namespace moeline
