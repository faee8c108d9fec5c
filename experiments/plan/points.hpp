// What one choice of a plan costs: a simulated timeline of its step, and what it keeps in memory.
#pragma once

#include <optional>
#include <string>

#include "architecture/architecture.hpp"
#include "base/memo.hpp"
#include "experiments/plan/deployment.hpp"
#include "experiments/plan/plan.hpp"
#include "experiments/plan/prefill_queue.hpp"
#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// A full step, simulated.
struct StepPoint {
  double step_ms = 0;
  double own_ms = 0;        ///< what an attention group does for itself; with one group all of it
  double exposed_ms = 0;    ///< communication runs and no compute does
  double tokens_per_s = 0;  ///< per GPU; of decode those produced
  GpuMemory memory{};
  KnownTime known{};
};

/// What a step computes of prompts, of each attention group.
struct PromptPart {
  int tokens = 0;
  int length = 0;  ///< of its prompts, up to the last of these tokens
  int cached = 0;  ///< of each of them, before its first of these tokens

  /// Behind so many more tokens that are computed already.
  [[nodiscard]] PromptPart behind(int more) const { return {tokens, length + more, cached + more}; }
};

/// Steps by the scenario that they are: plans that differ in what they ask of them share them.
using KnownSteps = Memo<std::string, StepPoint>;

/// The choices of a plan on one machine. Thread-safe.
class Points {
 public:
  struct Question {
    std::string scenario;
    std::vector<std::string> set;
  };

  /// REQUIRES: all outlive it.
  Points(const Plan& plan, const PlanHardware& machine, KnownSteps& known);

  /// How tokens reach experts where the scenario does not say; none where it is refused.
  [[nodiscard]] std::optional<CommMode> mode(PrefillChoice choice) const;
  [[nodiscard]] std::optional<CommMode> mode(DecodeChoice choice) const;
  /// Prompts of a step: as long as those that an average token is in; of one that takes several steps, the step in its
  /// middle.
  [[nodiscard]] PromptPart part(int tokens) const;
  /// `part`: of tokens per attention group, at most those of the choice.
  [[nodiscard]] StepPoint prefill(const PrefillChoice& choice, const PromptPart& part) const;
  /// The same in a step in which full batches of decode get their tokens as well, with prefill's `set`; tokens_per_s
  /// are those of prompts.
  [[nodiscard]] StepPoint mixed(const PrefillChoice& prefill, const DecodeChoice& decode, const PromptPart& part) const;
  /// A step of full batches. Caches are as long as those of the requests that decode at one time; of the GPUs of a unit
  /// the one with the most keys is simulated, and what it holds is its memory.
  [[nodiscard]] StepPoint decode(const DecodeChoice& choice) const;
  /// Nothing is simulated. The KV cache is that of the step's prompts, or of the longest one, which takes many steps.
  [[nodiscard]] GpuMemory memory(const PrefillChoice& choice) const;
  /// Of both on the same GPUs, `mixed` in the same steps: the caches of a full batch and of a step's prompts, or of the
  /// longest request alone.
  [[nodiscard]] GpuMemory memory(const PrefillChoice& prefill, const DecodeChoice& decode, bool mixed) const;
  /// The most requests per attention group whose caches fit beside all else, with what the stack's scheduler keeps free
  /// for what they will write, and so does the longest one's. Nothing is simulated.
  [[nodiscard]] int most_requests(const DecodeChoice& choice) const;
  /// What is wrong with the plan's `set`; empty: nothing. None where the choice is no scenario without it either.
  [[nodiscard]] std::optional<std::string> refused_changes(PrefillChoice choice) const;
  [[nodiscard]] std::optional<std::string> refused_changes(DecodeChoice choice) const;
  /// The scenario of a full step.
  [[nodiscard]] Question question(const PrefillChoice& choice, const PromptPart& part) const;
  [[nodiscard]] Question question(const DecodeChoice& choice) const;
  /// Of steps that do both.
  [[nodiscard]] Question question(const PrefillChoice& prefill, const DecodeChoice& decode,
                                  const PromptPart& part) const;
  [[nodiscard]] const Arrivals& arrivals() const { return arrivals_; }
  [[nodiscard]] int gpus_per_node() const { return gpus_per_node_; }
  [[nodiscard]] NumberFormats formats(const DecodeChoice& choice) const;
  /// Whether the stack's scheduler sends requests to attention groups in turn.
  [[nodiscard]] bool routes_in_turn(DecodeChoice choice) const;
  /// Over each GPU's NIC at its peak, of a prompt's cache.
  [[nodiscard]] double transfer_ms_per_token(const PrefillChoice& choice) const;
  /// Tokens that a request gets from a step.
  [[nodiscard]] double tokens_per_request(const DecodeChoice& choice) const;

 private:
  [[nodiscard]] std::string answers(const DecodeChoice& choice) const;
  [[nodiscard]] Question of_machine(std::string scenario, std::vector<std::string> set) const;
  [[nodiscard]] std::string refusal(const Question& question) const;
  [[nodiscard]] std::optional<CommMode> mode(const Question& question) const;
  [[nodiscard]] Setup setup_of(const Question& question) const;
  [[nodiscard]] std::optional<std::string> refused_changes(Question question) const;
  [[nodiscard]] StepPoint simulated(const Question& question) const;
  [[nodiscard]] double longest_request() const;
  [[nodiscard]] double kept_free(const Setup& setup) const;

  const Plan& plan_;
  const PlanHardware& machine_;
  KnownSteps& known_;
  Architecture model_;
  CachedTokens cached_;
  Arrivals arrivals_;
  int gpus_per_node_;
};

}  // namespace moeline
