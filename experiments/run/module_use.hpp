// What the kernels of each module did in a simulated step.
#pragma once

#include <array>
#include <map>
#include <string>

#include "engine/timeline.hpp"
#include "schedules/lowering/program.hpp"

namespace moeline {

/// Sums over kernels, us and FLOPs. Kernels of one module that run beside each other count twice.
struct ModuleUse {
  std::array<double, kModelPasses> us{};     ///< from start to end, with whatever slowed them; by pass
  std::array<double, kBoundBys> bound_us{};  ///< the same by what they are bound by
  double alone_us = 0;
  double gap_us = 0;                             ///< launch gaps before them, which are in none of these
  double forward_flops = 0, backward_flops = 0;  ///< of the model
  double recomputed_flops = 0;

  /// A kernel that took so long. `repeats`: forward work once more, in the backward pass.
  void add_kernel(const KernelWork& work, bool repeats, double kernel_us, double share = 1);
  [[nodiscard]] double total_us() const;
  [[nodiscard]] double flops() const { return forward_flops + backward_flops; }
  void add(const ModuleUse& other, double times = 1);
};

/// Calls visit(id, execution, layer, times) for every task of a program that executes a kernel: a layer that stands for
/// folded ones counts as often.
template <class Visit>
void for_each_execution(const Program& program, Visit visit) {
  for (TaskId id = 0; id < program.executions.size(); ++id) {
    const Execution& execution = program.executions[id];
    if (execution.kernel == Execution::kNone) continue;
    const std::uint32_t layer = program.graph.phases()[program.graph.label(id).phase].layer;
    visit(id, execution, layer, static_cast<double>(program.fold.repeats(static_cast<int>(layer))));
  }
}

/// By module (moe/module_names.hpp); of layers of MTP modules under the names that in_mtp gives.
using ModuleUses = std::map<std::string, ModuleUse>;
void add(const ModuleUses& more, double times, ModuleUses& sum);

/// Of one GPU, on average over those that the program simulates. A layer that stands for folded ones counts as often.
/// `setup`: the program's.
[[nodiscard]] ModuleUses module_uses(const Setup& setup, const Program& program, const Timeline& timeline);

}  // namespace moeline
