#include "schedules/pipeline/inference_pipeline.hpp"

#include <map>

#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/tensor_parallel.hpp"
#include "schedules/lowering/inference_step.hpp"
#include "schedules/pipeline/messages.hpp"
#include "schedules/pipeline/replicas.hpp"

namespace moeline {
namespace {

// Rounds before the steady one. In decode a pipeline is in its rhythm once its slowest stage has seen each micro-batch
// twice; prompts fill it until every stage has a chunk.
int rounds_to_fill(const Setup& setup) {
  constexpr int kOfDecode = 2;
  if (setup.scenario.phase() == WorkloadPhase::decode) return kOfDecode;
  const int chunks = passes(setup.scenario);
  return (setup.scenario.parallelism.pp + chunks - 1) / chunks;
}

// Those behind it keep the first stages busy while the last one ends the steady round.
int rounds_behind(const Setup& setup) {
  return setup.scenario.phase() == WorkloadPhase::decode ? 1 : rounds_to_fill(setup);
}

// Of prefill, chunks as long as a step's tokens.
double steps_of_round(const Setup& setup) {
  const PrefillWorkload* w = prefill_of(setup.scenario.workload);
  if (w == nullptr || steps_per_prompt(*w) == 1) return 1;
  return static_cast<double>(w->prompt_len - w->cached_len) / w->tokens;
}

class PipelineWriter {
 public:
  explicit PipelineWriter(const Setup& setup)
      : setup_(setup),
        passes_(passes(setup.scenario)),
        program_(setup, host_of(setup.scenario)),
        phases_(program_, {.micro_batches = passes_, .overlapped = false}),
        stages_(inference_stages(setup)) {}

  InferencePipeline write() && {
    const int fill = rounds_to_fill(setup_);
    rounds_.resize(static_cast<std::size_t>(fill + 1 + rounds_behind(setup_)), StageRound(stages_.size()));
    ranks_.reserve(stages_.size());
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) append_stage(stage);
    connect();
    std::vector<Meeting> meetings;
    for (const RankProgram& rank : ranks_)
      meetings.insert(meetings.end(), rank.meetings().begin(), rank.meetings().end());
    const double steps = static_cast<double>(rounds_.size()) * steps_of_round(setup_);
    return {std::move(program_).finish(static_cast<int>(ranks_.size()), std::move(meetings), steps), std::move(rounds_),
            static_cast<std::size_t>(fill)};
  }

 private:
  // In the order of the host's launches: what a pass needs is received before it, and its result sent after it.
  void append_stage(std::size_t stage) {
    RankProgram& rank = ranks_.emplace_back(program_, static_cast<int>(stage));
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      for (int i = 0; i < passes_; ++i) {
        const Message* in = message_to(stage, round, i);
        const Message* out = message_from(stage, round, i);
        const Place place{stages_[stage].front().layer, i};
        StagePass pass;
        if (in != nullptr) pass.received = append(rank, in->receive, place, StreamName::activations_from_previous);
        append_pass(rank, stage, i, pass);
        if (out != nullptr) pass.sent = append(rank, out->send, place, StreamName::activations_to_next);
        rounds_[round][stage].push_back(pass);
      }
    }
  }

  static TaskId append(RankProgram& rank, PreparedPhase& phase, Place place, StreamName stream) {
    place.stream = stream;
    return rank.append(phase, place).last;
  }

  void append_pass(RankProgram& rank, std::size_t stage, int micro_batch, StagePass& pass) {
    InferenceRank part(phases_, rank, {.blocks = stages_[stage], .micro_batch = micro_batch});
    if (stage > 0 && setup_.scenario.parallelism.tp > 1) {
      part.append_whole("stage_input", stages_[stage].front().layer);
    }
    append_in_turn(part, setup_, micro_batch);
    part.connect();
    pass.begins = part.first();
    pass.ends = rank.join_streams();
  }

  void connect() {
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
        for (std::size_t i = 0; i < rounds_[round][stage].size(); ++i) {
          const StagePass& pass = rounds_[round][stage][i];
          if (pass.sent == kNoTask) continue;
          const bool last = stage + 1 == stages_.size();
          const StagePass& next = last ? rounds_[round + 1][0][i] : rounds_[round][stage + 1][i];
          moeline::connect({pass.sent, next.received}, pass.ends, next.begins, program_.graph());
        }
      }
    }
  }

  // Null: it sends nothing.
  const Message* message_from(std::size_t stage, std::size_t round, int micro_batch) {
    if (stage + 1 < stages_.size()) return &activations(micro_batch);
    const bool goes_round = setup_.scenario.phase() == WorkloadPhase::decode && round + 1 < rounds_.size();
    return goes_round ? &new_tokens(micro_batch) : nullptr;
  }
  const Message* message_to(std::size_t stage, std::size_t round, int micro_batch) {
    if (stage > 0) return message_from(stage - 1, round, micro_batch);
    return round > 0 ? message_from(stages_.size() - 1, round - 1, micro_batch) : nullptr;
  }

  [[nodiscard]] InferenceWork work_of(int micro_batch) const { return setup_.inference_work({micro_batch, passes_}); }

  const Message& activations(int micro_batch) {
    return prepared("_activations", module_names::kSendActivations, stage_output_bytes(work_of(micro_batch)));
  }
  const Message& new_tokens(int micro_batch) {
    constexpr double kToken = 4;  // bytes
    return prepared("_tokens", module_names::kSendTokens, work_of(micro_batch).logit_rows() * kToken);
  }
  const Message& prepared(const char* suffix, const char* module, double bytes) {
    const auto known = messages_.find({suffix, bytes});
    if (known != messages_.end()) return known->second;
    const Message message = prepare_message(program_, suffix, module, stage_send(setup_, bytes));
    return messages_.emplace(std::pair<std::string, double>(suffix, bytes), message).first->second;
  }

  const Setup& setup_;
  int passes_;
  ProgramDraft program_;
  InferencePhases phases_;
  std::vector<StageBlocks> stages_;
  std::vector<RankProgram> ranks_;
  std::vector<StageRound> rounds_;
  std::map<std::pair<std::string, double>, Message> messages_;
};

}  // namespace

InferencePipeline inference_pipeline(const Setup& setup) { return PipelineWriter(setup).write(); }

}  // namespace moeline
