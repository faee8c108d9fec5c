#include "schedules/scenario/candidates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/file.hpp"
#include "schedules/scenario/read_scenario.hpp"

namespace moeline {
namespace {

constexpr const char* kChunksKey = "virtual_pp";

// A scenario file with its changes: what a schedule is written into.
struct Question {
  Spec spec;
  std::vector<std::string> hardware_overrides;
};

// Chunks of the model on each rank; 1 where the scenario does not say.
int named_chunks(const Spec& spec) {
  constexpr int kMost = 1 << 10;
  return spec.map_or_empty("parallelism").integer_or(kChunksKey, 1, kMost, 1);
}

// Why the schedule's work is not that of the others; empty: it is.
std::string other_work(const Spec& spec, WorkloadPhase phase, const ScheduleKind& kind) {
  if (phase != WorkloadPhase::train) return "";
  const bool whole_step = spec.has("slot_costs_ms") || spec.map("workload").has("global_batch_size");
  if (!kind.pipeline) return whole_step ? "runs one chunk, and a whole step is asked for" : "";
  if (!whole_step) return "runs whole steps, which need global_batch_size";
  const int chunks = kind.pipeline->stages_per_rank;
  if (!spec.has("slot_costs_ms") || chunks == 0 || chunks == named_chunks(spec)) return "";
  return fmt::format("has {} chunks of the model on each rank, and slot_costs_ms is for {} (virtual_pp)", chunks,
                     named_chunks(spec));
}

Setup with_schedule(Question question, const ScheduleKind& kind) {
  Spec& spec = question.spec;
  spec.set("schedule=" + kind.name);
  const bool of_another = kind.pipeline && kind.pipeline->stages_per_rank > 0;
  if (of_another && spec.map_or_empty("parallelism").has(kChunksKey)) {
    spec.set(fmt::format("parallelism.{}=~", kChunksKey));
  }
  return read_scenario(spec, question.hardware_overrides);
}

// "gpipe, 1f1b: REASON; zb1p: REASON"
std::string reasons_of(const std::vector<Candidate>& candidates) {
  std::vector<std::pair<std::string, std::string>> by_reason;
  for (const Candidate& candidate : candidates) {
    const auto same = std::find_if(by_reason.begin(), by_reason.end(),
                                   [&](const auto& known) { return known.first == candidate.refused; });
    if (same == by_reason.end()) {
      by_reason.emplace_back(candidate.refused, candidate.schedule);
    } else {
      same->second += ", " + candidate.schedule;
    }
  }
  std::vector<std::string> texts;
  for (const auto& [reason, schedules] : by_reason) texts.push_back(schedules + ": " + reason);
  return fmt::format("{}", fmt::join(texts, "; "));
}

// `errors`: of those that were read. One mistake that all of them met is told with its place, as ever.
SpecError none_applies(const Spec& spec, const std::vector<Candidate>& candidates,
                       const std::vector<SpecError>& errors) {
  const auto is_first = [&](const SpecError& error) { return error.reason() == errors.front().reason(); };
  if (!errors.empty() && std::all_of(errors.begin(), errors.end(), is_first)) return errors.front();
  return spec.error("schedule", fmt::format("auto: no schedule applies: {}", reasons_of(candidates)));
}

std::vector<Candidate> candidates_of(const Question& question) {
  const Spec& spec = question.spec;
  check_keys(spec);
  const auto phase = choice_of<WorkloadPhase>(spec.map("workload").choice("phase", words_of<WorkloadPhase>()));
  std::vector<Candidate> candidates;
  std::vector<SpecError> errors;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (!kind.is_for(phase)) continue;
    Candidate& candidate = candidates.emplace_back(Candidate{kind.name, std::nullopt, ""});
    try {
      candidate.refused = other_work(spec, phase, kind);
      if (candidate.refused.empty()) candidate.setup = with_schedule(question, kind);
    } catch (const SpecError& error) {
      candidate.refused = errors.emplace_back(error).reason();
    }
  }
  const auto applies = [](const Candidate& each) { return each.setup.has_value(); };
  if (std::any_of(candidates.begin(), candidates.end(), applies)) return candidates;
  throw none_applies(spec, candidates, errors);
}

}  // namespace

std::vector<Candidate> load_candidates(const std::filesystem::path& path, const std::vector<std::string>& assignments) {
  return read_candidates(path.string(), read_text(path), assignments);
}

std::vector<Candidate> read_candidates(const std::string& file, const std::string& content,
                                       const std::vector<std::string>& assignments) {
  Question question{Spec::parse(file, content), {}};
  question.hardware_overrides = apply_changes(assignments, question.spec);
  if (leaves_schedule_open(question.spec)) return candidates_of(question);
  Setup named = read_scenario(question.spec, question.hardware_overrides);
  std::string schedule = named.scenario.schedule;
  return {Candidate{std::move(schedule), std::move(named), ""}};
}

}  // namespace moeline
