#include "experiments/plan/points.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "architecture/parameters.hpp"
#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/run.hpp"
#include "experiments/serve/schedulers.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

int tokens_of(double mean) { return std::max(1, static_cast<int>(std::lround(mean))); }

std::string parallelism_of(const Parallelism& unit, const Architecture& model) {
  const std::string experts =
      model.n_routed_experts == 0 ? "" : fmt::format(", ep: {}, moe_tp: {}", unit.ep, unit.moe_tp);
  return fmt::format("parallelism: {{tp: {}, dp: {}{}}}\n", unit.tp, unit.dp, experts);
}

std::string routing_of(int redundant_experts) {
  return redundant_experts == 0 ? "" : fmt::format("routing: {{redundant_experts: {}}}\n", redundant_experts);
}

std::string keys_of(const PromptPart& part) {
  return fmt::format("tokens: {}, prompt_len: {}, cached_len: {}", part.tokens, part.length, part.cached);
}

std::string comm_of(int num_sms) { return num_sms > 0 ? fmt::format("comm: {{num_sms: {}}}\n", num_sms) : ""; }

template <class Choice>
std::string scenario_of(const Choice& choice, const Architecture& model, const std::string& workload,
                        const std::string& comm) {
  return fmt::format(
      "schedule: {}\n"
      "workload: {{{}}}\n"
      "{}{}{}ranks: folded\n",
      choice.schedule, workload, parallelism_of(choice.unit, model), comm, routing_of(choice.redundant_experts));
}

double own_us_of(const Run& run) {
  return run.setup.scenario.parallelism.attention_groups() == 1 ? to_us(run.metrics.span) : own_us(run);
}

}  // namespace

Points::Points(const Plan& plan, const PlanHardware& machine, KnownSteps& known)
    : plan_(plan),
      machine_(machine),
      known_(known),
      model_(load_architecture(plan.model, plan.file.string())),
      cached_(cached_tokens(plan.traffic.input, plan.traffic.output)),
      arrivals_(draw_arrivals(plan.traffic.input, plan.traffic.output)),
      gpus_per_node_(static_cast<int>(facts_of(plan, machine).gpus_per_node)) {}

Points::Question Points::of_machine(std::string scenario, std::vector<std::string> set) const {
  add_facts(machine_, set);
  if (plan_.memory_fraction) scenario += fmt::format("memory: {{fraction: {}}}\n", *plan_.memory_fraction);
  return {scenario_head(plan_.model, machine_) + scenario, set};
}

PromptPart Points::part(int tokens) const {
  int prompt = tokens_of(plan_.traffic.input.mean_of_tokens());
  int cached = std::min(prompt - 1, static_cast<int>(prompt * plan_.traffic.cache_hit_share));
  if (prompt - cached > tokens) {
    cached += (prompt - cached - tokens) / 2;
    prompt = cached + tokens;
  }
  return {tokens, prompt, cached};
}

std::string Points::answers(const DecodeChoice& choice) const {
  const std::string drafts =
      choice.mtp == 0 ? ""
                      : fmt::format(", query_len: {}, mtp_acceptance: {}", 1 + choice.mtp, plan_.decode.mtp_acceptance);
  return fmt::format("batch_size: {}, kv_len: {}, kv_len_spread: {:.0f}{}", choice.batch_size, tokens_of(cached_.mean),
                     cached_.deviation, drafts);
}

Points::Question Points::question(const PrefillChoice& choice, const PromptPart& part) const {
  return of_machine(scenario_of(choice, model_, "phase: prefill, " + keys_of(part), comm_of(choice.comm_sms)),
                    plan_.prefill.set);
}

Points::Question Points::question(const DecodeChoice& choice) const {
  return of_machine(scenario_of(choice, model_, "phase: decode, " + answers(choice), ""), plan_.decode.set);
}

Points::Question Points::question(const PrefillChoice& prefill, const DecodeChoice& decode,
                                  const PromptPart& part) const {
  const std::string workload = fmt::format("phase: mixed, {}, {}", answers(decode), keys_of(part));
  return of_machine(scenario_of(prefill, model_, workload, comm_of(prefill.comm_sms)), plan_.prefill.set);
}

std::optional<CommMode> Points::mode(PrefillChoice choice) const {
  choice.comm_sms = 0;
  return mode(question(choice, part(std::max(choice.tokens, micro_batches(choice.schedule)))));
}

std::optional<CommMode> Points::mode(DecodeChoice choice) const {
  choice.batch_size = micro_batches(choice.schedule);
  return mode(question(choice));
}

std::optional<CommMode> Points::mode(const Question& question) const {
  try {
    return setup_of(question).scenario.comm.mode;
  } catch (const SpecError&) {
    return std::nullopt;  // whoever asks for the step is told why
  }
}

Setup Points::setup_of(const Question& question) const {
  // Beside the plan, so that paths in `set` are relative to it; its lines are not the plan's.
  const std::filesystem::path file = plan_.file.parent_path() / ("a scenario of " + plan_.file.filename().string());
  Setup setup = read_setup(Spec::parse(file.string(), question.scenario), question.set);
  double& fraction = setup.scenario.memory.fraction;
  fraction = std::clamp(fraction - plan_.memory_less, 0.0, 1.0);
  return folded(setup);
}

StepPoint Points::simulated(const Question& question) const {
  StepPoint point = *known_.get(question.scenario + fmt::format("{}", fmt::join(question.set, "\n")), [&] {
    const Run run = run_scenario(setup_of(question));
    return StepPoint{.step_ms = to_us(run.metrics.span) / 1e3,
                     .own_ms = own_us_of(run) / 1e3,
                     .exposed_ms = to_us(run.metrics.exposed_comm) / 1e3,
                     .tokens_per_s = tokens_per_s(run),
                     .memory = gpu_memory(run.setup, run.inference()->memory),
                     .known = known_time(run)};
  });
  point.step_ms *= plan_.step_factor;
  point.own_ms *= plan_.step_factor;
  point.tokens_per_s /= plan_.step_factor;
  return point;
}

namespace {

// With room for the longest request, alone if need be.
GpuMemory of_longest(const Setup& setup, Memory memory, const RequestCache& cache, double tokens) {
  memory.kv_cache = std::max(memory.kv_cache, cache.bytes(tokens));
  return gpu_memory(setup, memory);
}

GpuMemory of_longest(const Setup& setup, const Memory& memory, double tokens) {
  return of_longest(setup, memory, RequestCache(setup), tokens);
}

}  // namespace

StepPoint Points::prefill(const PrefillChoice& choice, const PromptPart& part) const {
  const Question asked = question(choice, part);
  StepPoint point = simulated(asked);
  point.memory = of_longest(setup_of(asked), point.memory.held, plan_.traffic.input.longest());
  return point;
}

StepPoint Points::mixed(const PrefillChoice& prefill, const DecodeChoice& decode, const PromptPart& part) const {
  StepPoint point = simulated(question(prefill, decode, part));
  point.tokens_per_s = part.tokens / (point.step_ms / 1e3) / prefill.unit.tp;
  return point;
}

GpuMemory Points::memory(const PrefillChoice& choice) const {
  const Setup setup = setup_of(question(choice, part(choice.tokens)));
  return of_longest(setup, memory_of(setup), plan_.traffic.input.longest());
}

GpuMemory Points::memory(const PrefillChoice& prefill, const DecodeChoice& decode, bool mixed) const {
  const Setup answers = setup_of(question(decode));
  const Memory of_answers = memory_of(answers),
               of_prompts = memory_of(setup_of(question(prefill, part(prefill.tokens))));
  return of_longest(answers, of_both(of_answers, of_prompts, mixed), longest_request());
}

StepPoint Points::decode(const DecodeChoice& choice) const {
  const Question asked = question(choice);
  StepPoint point = simulated(asked);
  point.memory = of_longest(setup_of(asked), point.memory.held, longest_request());
  return point;
}

double Points::longest_request() const { return plan_.traffic.input.longest() + plan_.traffic.output.longest(); }

std::string Points::refusal(const Question& question) const {
  try {
    (void)setup_of(question);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

std::optional<std::string> Points::refused_changes(Question question) const {
  std::string text = refusal(question);
  question.set = of_machine("", {}).set;
  if (!text.empty() && !refusal(question).empty()) return std::nullopt;
  return text;
}

std::optional<std::string> Points::refused_changes(PrefillChoice choice) const {
  choice.comm_sms = 0;  // which only one mode takes
  return refused_changes(question(choice, part(choice.tokens)));
}

std::optional<std::string> Points::refused_changes(DecodeChoice choice) const {
  choice.batch_size = micro_batches(choice.schedule);
  return refused_changes(question(choice));
}

NumberFormats Points::formats(const DecodeChoice& choice) const {
  const Architecture model = setup_of(question(choice)).model;
  return {model.weights, model.expert_weights, model.kv_cache, model.n_routed_experts > 0};
}

bool Points::routes_in_turn(DecodeChoice choice) const {
  choice.batch_size = micro_batches(choice.schedule);
  return by_its_stack({}, setup_of(question(choice))).router == RouterRule::ranks_in_turn;
}

double Points::transfer_ms_per_token(const PrefillChoice& choice) const {
  const Setup setup = setup_of(question(choice, part(choice.tokens)));
  return RequestCache(setup).bytes_of_token() / 1e6 / setup.machine.facts.nic_GBps;  // MB over GB/s: ms
}

double Points::tokens_per_request(const DecodeChoice& choice) const {
  DecodeWorkload workload;
  workload.query_len = 1 + choice.mtp;
  workload.mtp_acceptance = {plan_.decode.mtp_acceptance};
  return moeline::tokens_per_request(workload);
}

// Tokens of a cache that the stack keeps free for each request that decodes, beside those that it has.
double Points::kept_free(const Setup& setup) const {
  ServeWorkload apart;
  apart.prefill.replicas = 1;
  const KvRoom room = by_its_stack(apart, setup).room;
  if (room == KvRoom::reserve) return kReserved;
  const Lengths& output = plan_.traffic.output;
  return room == KvRoom::whole ? output.mean_of_tokens() / 2 : 0;  // what those in flight will still write
}

int Points::most_requests(const DecodeChoice& choice) const {
  constexpr int kMost = 1 << 14;
  const int least = micro_batches(choice.schedule);  // one for each
  DecodeChoice fewest = choice;
  fewest.batch_size = least;
  Setup setup = setup_of(question(fewest));
  const RequestCache cache(setup);
  std::get<DecodeWorkload>(setup.scenario.workload).kv_len += static_cast<int>(kept_free(setup));
  const auto fits = [&](int requests) {
    std::get<DecodeWorkload>(setup.scenario.workload).batch_size = requests;
    return of_longest(setup, memory_of(setup), cache, longest_request()).fits();
  };
  const int most = largest_that_fits(least, kMost, fits);
  return most >= least ? most : 0;
}

}  // namespace moeline
