// moeline init: a commented file to begin with.
#include <fmt/format.h>

#include <memory>

#include "base/file.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/init/starting_point.hpp"

namespace moeline {
namespace {

struct InitOptions {
  std::string purpose, model, hardware, output;
  std::string scenario = "scenario.yaml";
  bool force = false;
};

constexpr const char* kInitDefinitions = R"(PURPOSE, one of:
  decode, prefill   a scenario: how long does a step take
  serve             a scenario: requests one by one, TTFT and TPOT as distributions
  train             a scenario: a step of training by Megatron-Core's kernels in BF16
  plan              how many GPUs serve a load within limits
  training-plan     which layout trains fastest
  study             many scenarios at once, from that of decode
What is written runs as it stands. Its layout is the one with the fewest GPUs (of 1, 2, 4, ...) that hold the model and its work, found by
simulating them in turn; all other numbers are to be changed.)";

// Unlike other files of ours this one is meant to be edited.
void check_absent(const std::string& file, bool force) {
  std::error_code failed;
  if (force || is_special(file) || !std::filesystem::exists(file, failed)) return;
  throw CLI::ValidationError(fmt::format("-o {}: is there already; --force writes over it", file));
}

void run(const InitOptions& options, const Console& console) {
  check_absent(options.output, options.force);
  const std::string text = starting_point(options.purpose, options.model, options.hardware, options.scenario);
  options.output.empty() ? console.print(text) : write_text(options.output, text);
}

}  // namespace

void add_init(CLI::App& app, Console& console) {
  auto options = std::make_shared<InitOptions>();
  CLI::App* command = app.add_subcommand("init", "a commented scenario, plan or study to begin with");
  command->add_option("purpose", options->purpose, "decode, prefill, serve, train, plan, training-plan or study")
      ->required()
      ->transform(one_of(purposes()));
  command->add_option("model", options->model, "a name of list models, or the path of a config.json")->required();
  command->add_option("hardware", options->hardware, "a name of list hardware, or a path")->required();
  command->add_option("-o,--output", options->output, "write it to this file")->check(not_empty());
  command->add_option("--scenario", options->scenario, "of a study: what its scenario is called")->check(not_empty());
  add_force(*command, options->force);
  command->footer(kInitDefinitions);
  command->callback([options, &console] { run(*options, console); });
}

}  // namespace moeline
