// Phases that ranks, layers and micro-batches have alike are priced once.
#pragma once

#include <map>
#include <string>

#include "architecture/blocks.hpp"
#include "schedules/lowering/program.hpp"
#include "schedules/scenario/overlap_plan.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// What decides the kernels of a phase and their prices. Whatever it does not depend on is 0.
struct PhaseIdentity {
  BlockKind kind = BlockKind::moe_layer;
  int alike = 0;  ///< of inference: the first layer that runs the same kernels
  int micro_batch = 0;
  int piece = 0;
  int layer = 0;
  int rank = 0;
  int seq_len = 0;      ///< of training: the micro-batch's
  double rows = 0;      ///< of the rank's experts
  int draw = 0;         ///< of what they get by chance
  std::string phase{};  ///< last: most are told apart before it is compared
  auto operator<=>(const PhaseIdentity&) const = default;
};

class PreparedPhases {
 public:
  /// `prepare` makes the phase when it is asked for first; it must stay where it is (ProgramDraft keeps it).
  template <class Prepare>
  PreparedPhase& get(PhaseIdentity identity, Prepare prepare) {
    const auto [found, is_new] = phases_.try_emplace(std::move(identity), nullptr);
    if (is_new) found->second = &prepare();
    return *found->second;
  }

 private:
  std::map<PhaseIdentity, PreparedPhase*> phases_;
};

// SMs of a phase, by its overlap plan.

/// Of a transfer those that its kernels run on; of another phase those that persistent kernels have, all that transfers
/// leave where the plan does not say. 0: it says nothing, and comm.num_sms holds. Throws SpecError where that is more
/// than the machine has.
[[nodiscard]] int phase_sms(const OverlapPlan& plan, const std::string& phase, const Setup& setup);

/// The most that any transfer holds.
[[nodiscard]] int transfer_sms(const Setup& setup);

}  // namespace moeline
