#include "experiments/decide/outcome.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "base/spec.hpp"
#include "experiments/explain/explanation.hpp"
#include "experiments/explain/step_kernels.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/run/samples.hpp"
#include "experiments/serve/serve.hpp"
#include "schedules/scenario/read_scenario.hpp"

namespace moeline {
namespace {

// In a reader's words, of kernel_class_names() and of slots.
std::string title_of_class(const std::string& task_class) {
  static const std::map<std::string, std::string> kTitles = {
      {"gemm", "GEMMs"},          {"grouped_gemm", "experts' GEMMs"}, {"memory", "memory-bound kernels"},
      {"small", "small kernels"}, {"collective", "collectives"},      {"barrier", "barriers"},
      {"copy", "copies"},         {"other", "other kernels"},         {"host", "the host"}};
  const auto found = kTitles.find(task_class);
  return found == kTitles.end() ? task_class : found->second;
}

// Slots that are one task each are told apart by their phase.
std::string title_of_part(const Blame& blame, bool by_slot) {
  switch (blame.reason) {
    case PathReason::running:
      return by_slot && !blame.phase.empty() ? blame.phase : title_of_class(blame.task_class);
    case PathReason::slowed:
      return "being slowed by neighbours";
    case PathReason::sms:
      return "waiting for SMs";
    case PathReason::launch:
      return "launch gaps";
    case PathReason::stragglers:
      return "waiting for the slowest rank";
    case PathReason::unexplained:
      break;
  }
  return "unexplained";
}

std::vector<TimePart> parts_of(const Run& run) {
  const bool by_slot = run.has_given_slots() || is_by_slot(run);
  std::map<std::string, double> by_title;
  for (const Blame& blame : blame_of(run)) by_title[title_of_part(blame, by_slot)] += to_us(blame.time);
  std::vector<TimePart> parts;
  for (const auto& [what, us] : by_title) parts.push_back({what, us});
  return parts;
}

// Of a request, those that the measure follows from.
std::vector<TimePart> parts_of(const ServeResult& result, TimeOf of) {
  const WhereTimeWent& w = result.measures.where;
  std::vector<TimePart> parts;
  const auto add = [&](const char* what, double ms) {
    if (ms > 0) parts.push_back({what, 1e3 * ms});
  };
  if (of != TimeOf::next_tokens) {
    add("waiting in the queue", w.queue);
    add("prefill", w.prefill);
    add("waiting for a slot to decode", w.slot);
    add("the transfer of caches", w.transfer);
  }
  if (of != TimeOf::first_token) {
    add("decoding", w.decode);
    add("steps longer for others' prompts", w.beside);
    add("waiting without a cache", w.stalled);
  }
  return parts;
}

// So that they sum to what the value stands for; of a value that does not follow from their time they stay.
void scale_to(const Measure& by, double value, bool of_requests, std::vector<TimePart>& parts) {
  if (time_of(by, of_requests) == TimeOf::nothing) return;
  const double us = us_of(by, value);
  const double sum =
      std::accumulate(parts.begin(), parts.end(), 0.0, [](double all, const TimePart& part) { return all + part.us; });
  if (sum <= 0) return;
  for (TimePart& part : parts) part.us *= us / sum;
}

std::vector<std::string> extrapolated_of(const Run& run) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> names;
  const std::optional<StepKernels> step = step_kernels(run);
  if (!step) return names;
  for (const StepKernel& kernel : step->kernels) {
    if (kernel.price.provenance != Provenance::extrapolated || names.size() == kMost) continue;
    if (std::find(names.begin(), names.end(), kernel.name) == names.end()) names.push_back(kernel.name);
  }
  return names;
}

// The metrics that a limit names.
std::vector<std::string> names_in_limit(const Condition& limit) {
  const std::vector<std::string> known = measure_names();
  std::vector<std::string> names;
  std::string word;
  for (const char c : limit.text() + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word.push_back(c);
    } else if (!word.empty()) {
      if (std::ranges::find(known, word) != known.end()) names.push_back(word);
      word.clear();
    }
  }
  return names;
}

// "tpot_ms 55.1, and tpot_ms <= 50 is asked": of the first limit that does not hold; "" where all do. Throws SpecError
// for a limit of what the setting does not have.
template <class Result>
std::string beyond_limits(const std::vector<Condition>& limits, const Result& result) {
  for (const Condition& limit : limits) {
    std::map<std::string, std::string> values;
    std::vector<std::string> told;
    for (const std::string& name : names_in_limit(limit)) {
      const double value = value_of(name, result);
      if (std::isnan(value)) throw SpecError(fmt::format("--where: {} is asked, and it has no {}", limit.text(), name));
      values[name] = fmt::format("{}", value);
      told.push_back(fmt::format("{} {:.6g}", name, value));
    }
    if (!limit.holds(values)) return fmt::format("{}, and {} is asked", fmt::join(told, ", "), limit.text());
  }
  return "";
}

std::string no_value(const Measure& by, const char* what) { return fmt::format("{} has no {}", what, by.name); }

SettingOutcome of_requests(const Spec& scenario, const std::vector<std::string>& changes, const Terms& terms) {
  const ServeResult result = serve(scenario, changes);
  SettingOutcome outcome{.value = value_of(terms.by.name, result)};
  if (std::isnan(outcome.value)) return {.refused = no_value(terms.by, "a run of requests")};
  outcome.against = beyond_limits(terms.limits, result);
  outcome.of_requests = true;
  outcome.parts = parts_of(result, time_of(terms.by, true));
  outcome.known = result.answers.known;
  if (result.prompts) outcome.known.add(result.prompts->known);
  scale_to(terms.by, outcome.value, true, outcome.parts);
  return outcome;
}

SettingOutcome of_step(const Run& run, const Terms& terms) {
  SettingOutcome outcome{.value = value_of(terms.by.name, run)};
  if (std::isnan(outcome.value)) return {.refused = no_value(terms.by, "it")};
  if (knows_memory(run) && !fits_memory(run)) {
    outcome.against = fmt::format("does not fit memory: {:.1f} GiB", gib(memory_bytes(run)));
  } else {
    outcome.against = beyond_limits(terms.limits, run);
  }
  outcome.parts = parts_of(run);
  if (!run.has_given_slots()) outcome.known = known_time(run);
  if (outcome.known.share(0) > 0) outcome.extrapolated = extrapolated_of(run);
  scale_to(terms.by, outcome.value, false, outcome.parts);
  return outcome;
}

std::vector<std::string> together(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// The change that the setting has no use for, where that is all that is wrong.
std::optional<std::string> change_in_vain(const SpecError& error, const std::vector<std::string>& changes) {
  const std::string key = error.key() + "=";
  const auto found = std::ranges::find_if(changes, [&](const std::string& change) { return change.starts_with(key); });
  const bool in_vain = error.reason().find("does not apply") != std::string::npos && found != changes.end();
  return in_vain ? std::optional(*found) : std::nullopt;
}

std::vector<double> drawn_requests(const DecideSetting& setting, const std::vector<std::string>& changes,
                                   const Measure& by, int samples) {
  const Spec scenario = Spec::parse(setting.file, setting.content);
  std::vector<double> values(static_cast<std::size_t>(samples));
  const int first = serve(scenario, changes).answers.setup.scenario.seed;
  parallel_for(values.size(), cores(), [&](std::size_t i) {
    const std::string seed = fmt::format("seed={}", first + static_cast<int>(i));
    values[i] = value_of(by.name, serve(scenario, together(changes, {seed})));
  });
  return values;
}

std::vector<double> drawn_steps(const DecideSetting& setting, const std::vector<std::string>& changes,
                                const Measure& by, int samples) {
  const auto read = [&](const std::vector<std::string>& more) {
    return read_candidates(setting.file, setting.content, together(changes, more));
  };
  std::vector<std::string> more = {fmt::format("samples={}", samples)};
  if (const auto candidates = read({}); candidates.size() > 1) {
    more.push_back("schedule=" + best_run(candidates).setup.scenario.schedule);
  }
  const Setup setup = std::move(read(more).front().setup.value());
  std::vector<double> values(static_cast<std::size_t>(samples));
  for_each_sample(setup, [&](std::size_t i, const Run& run) { values[i] = value_of(by.name, run); });
  return values;
}

}  // namespace

Condition limit_of(const std::string& condition) {
  try {
    return {condition, measure_names(), "metric"};
  } catch (const SpecError& error) {
    throw SpecError(fmt::format("--where: {}", error.what()));
  }
}

std::string usual_measure(const DecideSetting& setting) {
  Spec spec = Spec::parse(setting.file, setting.content);
  if (serves(spec, setting.assignments)) return "output_tokens_per_s_per_gpu";
  (void)apply_changes(setting.assignments, spec);
  const bool given_slots = spec.has("slot_costs_ms");
  const bool some_layers = spec.has("layers") && !same_but_for_case(spec.text("layers"), "all");
  const Spec workload = spec.map_or_empty("workload");
  const bool trains = workload.has("phase") && same_but_for_case(workload.text("phase"), "train");
  const bool chunk = trains && !workload.has("global_batch_size");
  if (given_slots) return "step_ms";
  return some_layers || chunk ? kGpuUsPerToken : "tokens_per_s_per_gpu";
}

SettingOutcome outcome_of(const DecideSetting& setting, const std::vector<std::string>& changes, const Terms& terms) {
  const std::vector<std::string> all = together(setting.assignments, changes);
  try {
    const Spec scenario = Spec::parse(setting.file, setting.content);
    if (serves(scenario, all)) return of_requests(scenario, all, terms);
    return of_step(best_run(read_candidates(setting.file, setting.content, all)), terms);
  } catch (const SpecError& error) {
    const auto vain = change_in_vain(error, changes);
    if (!vain) return {.refused = error.reason()};
    std::vector<std::string> others = changes;
    std::erase(others, *vain);
    SettingOutcome outcome = outcome_of(setting, others, terms);
    outcome.in_vain.push_back(*vain);
    return outcome;
  }
}

std::vector<double> drawn_values(const DecideSetting& setting, const std::vector<std::string>& changes,
                                 const Measure& by, int samples) {
  const std::vector<std::string> all = together(setting.assignments, changes);
  try {
    const bool requests = serves(Spec::parse(setting.file, setting.content), all);
    return requests ? drawn_requests(setting, all, by, samples) : drawn_steps(setting, all, by, samples);
  } catch (const SpecError& error) {
    const auto vain = change_in_vain(error, changes);
    if (!vain) throw;
    std::vector<std::string> others = changes;
    std::erase(others, *vain);
    return drawn_values(setting, others, by, samples);
  }
}

}  // namespace moeline
