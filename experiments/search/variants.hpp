// What of a plan is searched beside its order: the schedule it is of, SMs of communication, pieces, and the phases of
// the side stream.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "schedules/scenario/scenario.hpp"

namespace moeline {

struct VariantRequest {
  std::filesystem::path scenario;
  std::vector<std::string> assignments;
  bool schedules = false;  ///< each that has a plan for the scenario's phase
  bool sms = false;        ///< of communication
  bool phase_sms = false;  ///< of dispatch and of combine apart, in the normal mode; others leave what runs beside them
  bool pieces = false;     ///< of plans that have one: by token, and by expert where that can be
  bool sides = false;      ///< every set of phases on the side stream, of training
  bool splits = false;     ///< of two micro-batches, what the larger has
  bool attention = false;  ///< of decode: cut before its core or behind it
  std::vector<int> num_sms = {}, piece_counts = {};  ///< that are searched; empty: the usual ones
};

/// One rank that stands for all, and layers that are alike once.
struct Variant {
  Setup setup;                       ///< with the plan
  std::vector<std::string> changes;  ///< of the scenario, beside the plan: "comm.num_sms=8"
};

/// What cannot be, by the reason: more pieces than experts.
struct RefusedVariants {
  std::string why;
  std::size_t count = 0;
};
void add_refused(const SpecError& error, std::vector<RefusedVariants>& refused);

struct Variants {
  std::vector<Variant> variants;
  std::vector<RefusedVariants> refused;
};

/// Throws SpecError: of the scenario, where nothing of it can be searched, or where none is left.
[[nodiscard]] Variants variants_of(const VariantRequest& request);

/// The scenario, on one rank that stands for all.
[[nodiscard]] Setup quick_setup(const VariantRequest& request, const std::vector<std::string>& changes = {});
[[nodiscard]] Setup with_plan(const Setup& setup, OverlapPlan plan);

}  // namespace moeline
