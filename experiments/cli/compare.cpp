// moeline compare: two timelines, phase by phase; either side may be a scenario or a trace.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/comparison.hpp"
#include "experiments/cli/json.hpp"
#include "experiments/cli/null_models.hpp"
#include "experiments/cli/run.hpp"
#include "timeline/trace.hpp"

namespace moeline {
namespace {

struct Options {
  std::string a, b;
  std::vector<std::string> assignments;
  std::vector<int> layers;
  std::string format = "table";
};

bool is_scenario(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

struct Side {
  std::optional<Setup> setup;  // of a scenario
  std::vector<PhaseTimes> phases;
  std::vector<std::string> warnings;
};

Side load_side(const std::string& path, const Options& options) {
  if (!is_scenario(path)) return {std::nullopt, phase_times(read_trace(path)), {}};
  const Setup setup = load_setup(path, options.assignments);
  if (setup.scenario.slot_costs) throw SpecError(path, 0, "is a whole pipeline; compare knows the phases of one rank");
  Run run = run_scenario(setup);
  return {std::move(run.setup), std::move(run.phases), std::move(run.warnings)};
}

// Phases of prefill and decode have the same names and nothing else in common.
void check_same_work(const Setup& a, const Setup& b) {
  const std::string& of_a = a.scenario.workload.phase;
  const std::string& of_b = b.scenario.workload.phase;
  if (of_a != of_b)
    throw SpecError(b.scenario.file, 0, fmt::format("is {}, and {} is {}", of_b, a.scenario.file, of_a));
}

// What a prediction must beat: the same scenario with free communication, and without overlap.
std::vector<Null> null_models(const Side& a, const Side& b, const std::vector<std::uint32_t>& layers) {
  std::vector<Null> nulls;
  if (a.setup) {
    for (const char* name : {kCommunicationFree, kEverythingSerial}) {
      nulls.push_back({name, score(run_scenario(null_model(name, *a.setup)).phases, b.phases, layers)});
    }
  }
  if (!b.setup) {
    nulls.push_back({kCopiedMean, score(copied_mean(b.phases, layers), b.phases, layers), false});
  }
  return nulls;
}

std::string to_json(const Score& result, const std::vector<Null>& nulls) {
  Json json;
  json.open();
  json.add("mean_abs_error", result.mean_abs_error, 5).add("worst_abs_error", result.worst_abs_error, 5);
  json.add("mean_error", result.mean_error, 5).add("span_error", result.span_error, 5);
  json.add("a_span_us", to_us(result.a_span)).add("b_span_us", to_us(result.b_span));
  json.flag("same_order", result.same_order);
  const auto open = [&](const PhasePair& pair, bool scored) {
    json.open().add("layer", pair.a.layer);
    if (result.by_micro_batch) json.add("micro_batch", pair.a.micro_batch);
    json.add("phase", pair.a.phase).flag("scored", scored);
  };
  json.open_list("phases");
  for (const PhasePair& pair : result.phases) {
    open(pair, true);
    json.add("a_us", to_us(pair.a.span())).add("b_us", to_us(pair.b.span())).add("error", pair.error(), 5).close();
  }
  for (const PhasePair& pair : result.communication) {
    open(pair, false);
    json.add("a_us", to_us(pair.a.transfer)).add("b_us", to_us(pair.b.transfer));
    json.add("error", ratio_error(pair.a.transfer, pair.b.transfer), 5);
    json.add("a_barrier_us", to_us(pair.a.barrier)).add("b_barrier_us", to_us(pair.b.barrier)).close();
  }
  json.close_list();
  json.open("nulls");
  for (const Null& null : nulls) {
    json.open(null.name).add("mean_abs_error", null.score.mean_abs_error, 5);
    json.add("worst_abs_error", null.score.worst_abs_error, 5);
    if (null.has_span) json.add("span_error", null.score.span_error, 5);
    json.close();
  }
  return json.close().close().text();
}

std::string score_row(const std::string& name, const Score& score, bool has_span = true) {
  const std::string span = has_span ? fmt::format("{:>+9.1f} %", 100 * score.span_error) : "        n/a";
  return fmt::format("{:<24} {:>9.1f} % {:>9.1f} % {:>+9.1f} % {}\n", name, 100 * score.mean_abs_error,
                     100 * score.worst_abs_error, 100 * score.mean_error, span);
}

std::string to_table(const Score& result, const std::vector<Null>& nulls, const Options& options) {
  // With micro-batches as an overlap plan writes it: "mlp 1".
  const auto phase = [&](const PhasePair& pair) {
    return result.by_micro_batch ? fmt::format("{} {}", pair.a.phase, pair.a.micro_batch) : pair.a.phase;
  };
  std::string text = fmt::format("a: {}\nb: {}\n\n", options.a, options.b);
  text += fmt::format("{:>5} {:<12} {:>10} {:>10} {:>9}\n", "layer", "phase", "a us", "b us", "error");
  for (const PhasePair& pair : result.phases) {
    text += fmt::format("{:>5} {:<12} {:>10.0f} {:>10.0f} {:>+8.1f}%\n", pair.a.layer, phase(pair),
                        to_us(pair.a.span()), to_us(pair.b.span()), 100 * pair.error());
  }
  text += "\nCommunication, not scored: barriers wait for ranks that are not simulated.\n";
  text += fmt::format("{:>5} {:<12} {:>10} {:>10} {:>9} {:>12} {:>12}\n", "layer", "phase", "a us", "b us", "transfer",
                      "a barrier us", "b barrier us");
  for (const PhasePair& pair : result.communication) {
    text +=
        fmt::format("{:>5} {:<12} {:>10.0f} {:>10.0f} {:>+8.1f}% {:>12.0f} {:>12.0f}\n", pair.a.layer, phase(pair),
                    to_us(pair.a.transfer), to_us(pair.b.transfer), 100 * ratio_error(pair.a.transfer, pair.b.transfer),
                    to_us(pair.a.barrier), to_us(pair.b.barrier));
  }
  text += fmt::format("\norder of phases on every stream: {}\n", result.same_order ? "the same" : "DIFFERENT");
  text += fmt::format("phases compared take: a {:.3f} ms, b {:.3f} ms, {:+.1f} %\n\n", to_us(result.a_span) / 1e3,
                      to_us(result.b_span) / 1e3, 100 * result.span_error);
  text += fmt::format("{:<24} {:>11} {:>11} {:>11} {:>11}\n", "phases of computation", "mean |e|", "worst |e|",
                      "mean e", "span e");
  text += score_row("a against b", result);
  for (const Null& null : nulls) text += score_row("null: " + null.name, null.score, null.has_span);
  return text;
}

void compare(const Options& options) {
  if (!options.assignments.empty() && !is_scenario(options.a) && !is_scenario(options.b)) {
    throw SpecError("--set", 0, "applies to scenarios, and both sides are traces");
  }
  const Side a = load_side(options.a, options);
  const Side b = load_side(options.b, options);
  if (a.setup && b.setup) check_same_work(*a.setup, *b.setup);
  const std::vector<std::uint32_t> layers = common_layers(a.phases, b.phases, options.layers);
  const Score result = score(a.phases, b.phases, layers);
  const std::vector<Null> nulls = null_models(a, b, layers);
  fmt::print("{}", options.format == "json" ? to_json(result, nulls) : to_table(result, nulls, options));
  for (const std::string& warning : a.warnings) fmt::print(stderr, "moeline: warning: a: {}\n", warning);
  for (const std::string& warning : b.warnings) fmt::print(stderr, "moeline: warning: b: {}\n", warning);
}

constexpr const char* kDefinitions =
    R"(error = a / b - 1, of a phase's span: start of its first kernel to end of its last;
of a phase of communication, of its transfer, with the barrier apart. Micro-batches are paired one by one, or, where the
two sides have different ones, their times are summed. The scores are over the phases of computation.
span e: of the time in which any of the phases compared runs, communication included.
Null models: communication free (transfers and barriers take no time, SMs or bandwidth), everything serial (no overlap),
copied mean (each phase of b takes the mean of its other layers: those not compared, or, if all are, all but itself).)";

}  // namespace

void add_compare(CLI::App& app, int& /*exit_code*/) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("compare", "hold a prediction against a measured trace, phase by phase");
  command->add_option("a", options->a, "scenario (.yaml) or trace (.json, .json.gz)")->required();
  command->add_option("b", options->b, "scenario or trace")->required();
  command->add_option("--layers", options->layers, "only these layers, by position in order of execution")
      ->delimiter(',');
  command->add_option("--set", options->assignments, "override in the scenarios")->allow_extra_args(false);
  command->add_option("--format", options->format)->check(CLI::IsMember({"table", "json"}));
  command->footer(kDefinitions);
  command->callback([options] { compare(*options); });
}

}  // namespace moeline
