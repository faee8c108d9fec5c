// moeline init: a commented file to begin with.
#include <fmt/format.h>

#include <memory>

#include "base/file.hpp"
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
  study             many scenarios at once, from that of decode, which -o writes beside it where it is not there
What is written runs as it stands. Its layout is the one with the fewest GPUs (of 1, 2, 4, ...) that hold the model and its work, found by
simulating them in turn; all other numbers are to be changed.)";

// Unlike other files of ours this one is meant to be edited.
void check_absent(const std::string& file, bool force) {
  std::error_code failed;
  if (force || is_special(file) || !std::filesystem::exists(file, failed)) return;
  throw UsageError(fmt::format("-o {}: is there already; --force writes over it", file));
}

// The scenario of a study that is not there yet: beside the study, which runs with it.
void write_scenario(const InitOptions& options, const Console& console) {
  const std::filesystem::path scenario = std::filesystem::path(options.output).parent_path() / options.scenario;
  std::error_code failed;
  if (is_special(options.output) || std::filesystem::exists(scenario, failed)) return;
  write_text(scenario, starting_point("decode", options.model, options.hardware, options.scenario));
  console.note("its scenario is written beside it: " + scenario.string());
}

void run(const InitOptions& options, const Console& console) {
  check_absent(options.output, options.force);
  const std::string text = starting_point(options.purpose, options.model, options.hardware, options.scenario);
  if (options.output.empty()) return console.print(text);
  write_text(options.output, text);
  if (options.purpose == "study") write_scenario(options, console);
}

}  // namespace

Command make_init(Console& console) {
  auto options = std::make_shared<InitOptions>();
  return {.name = "init",
          .about = "a commented scenario, plan or study to begin with",
          .options = {required({"purpose", &options->purpose,
                                "decode, prefill, serve, train, plan, training-plan or study", purposes()}),
                      required({"model", &options->model, "a name of list models, or the path of a config.json"}),
                      required({"hardware", &options->hardware, "a name of list hardware, or a path"}),
                      {"-o,--output", &options->output, "write it to this file", NotEmpty{}},
                      {"--scenario", &options->scenario, "of a study: what its scenario is called", NotEmpty{}},
                      force_option(options->force)},
          .footer = kInitDefinitions,
          .run = [options, &console] { run(*options, console); }};
}

}  // namespace moeline
