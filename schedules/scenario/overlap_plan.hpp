// Which phase sits beside which: the order of the streams within one layer, read from YAML.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "schedules/scenario/choices.hpp"

namespace moeline {

/// One phase of one micro-batch, written "[previous|next] [issue|receive] PHASE [MICRO-BATCH]".
struct PlanEntry {
  enum class Part { whole, issue, receive };
  std::string phase;
  int micro_batch = 0;
  int layer_offset = 0;  ///< -1: of the previous layer, 1: of the next
  Part part = Part::whole;
  int bracket = 0;  ///< entries of the same bracket take turns piece by piece; 0: it has all its pieces in a row
};

struct OverlapPlan {
  std::string file;
  std::vector<PlanEntry> compute;        ///< phases of the compute stream, in order
  std::vector<PlanEntry> communication;  ///< of the communication stream
  std::vector<std::string> side;         ///< phases whose independent GEMMs also use a side stream
  std::map<std::string, int> sms;        ///< of a phase's kernels, where they are not as usual
  int pieces = 1;                        ///< that phases which send tokens, and their experts, are cut into
  PiecesBy pieces_by = PiecesBy::token;
  double split = 0.5;  ///< what micro-batch 0 has of the requests, or of the tokens of prompts
  AttentionCut attention_cut = AttentionCut::before_core;

  /// On which a transfer's kernels run; `usual`: comm.num_sms.
  [[nodiscard]] int transfer_sms(const std::string& phase, int usual) const;
  /// The most of any transfer, which is what phases beside them leave, unless `sms` has them.
  [[nodiscard]] int most_transfer_sms(int usual) const;

  [[nodiscard]] bool core_first() const { return attention_cut == AttentionCut::behind_core; }
  /// One kernel receives all pieces of the phase: a token's sum needs all of its experts.
  [[nodiscard]] bool receives_once(const std::string& phase) const {
    return phase == "combine" && pieces > 1 && pieces_by == PiecesBy::expert;
  }
};

/// What a plan must place, each once.
struct PlanContents {
  std::vector<std::string> phases;
  std::vector<std::string> halved;  ///< phases placed as issue and receive
  std::vector<std::string> absent;  ///< phases that this model does not have; a plan may name them all the same
  std::vector<std::string> cut{};   ///< phases that pieces are of
  int micro_batches = 1;
};

/// Whether an entry goes in pieces: gradients of weights, which nobody waits for, only where they take turns with
/// others.
[[nodiscard]] bool is_cut(const PlanEntry& entry, const PlanContents& contents);

/// Entries that take turns, or one alone.
using Bracket = std::span<const PlanEntry>;
[[nodiscard]] std::vector<Bracket> brackets_of(const std::vector<PlanEntry>& entries);

/// As a file reads it. `head`: lines of comments.
[[nodiscard]] std::string plan_text(const OverlapPlan& plan, const PlanContents& contents, const std::string& head);

/// `overlap`: "default" for the plan that belongs to the schedule, or the path of another.
/// Throws SpecError unless everything stands exactly once.
[[nodiscard]] OverlapPlan load_overlap_plan(const std::string& schedule, const std::string& overlap,
                                            const PlanContents& contents);

}  // namespace moeline
