#include "experiments/run/module_use.hpp"

#include <numeric>

#include "moe/module_tree.hpp"

namespace moeline {
namespace {

template <std::size_t Size>
void add_all(const std::array<double, Size>& more, double times, std::array<double, Size>& sum) {
  for (std::size_t i = 0; i < Size; ++i) sum[i] += times * more[i];
}

ModuleUse use_of(const Program& program, const Timeline& timeline, TaskId id) {
  const Execution& execution = program.executions[id];
  ModuleUse use;
  use.add_kernel(program.kernels[execution.kernel], execution.repeats,
                 to_us(timeline.spans[id].end - timeline.spans[id].start), execution.share);
  use.alone_us = to_us(program.graph.task(id).solo);
  use.gap_us = to_us(program.graph.task(id).delay);
  return use;
}

// Layers of MTP modules stand behind the model's own.
std::uint32_t first_mtp_layer(const Setup& setup) {
  if (!setup.scenario.whole_model) return std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(setup.model.num_hidden_layers - setup.fold.left_out);
}

}  // namespace

void ModuleUse::add_kernel(const KernelWork& work, bool repeats, double kernel_us, double share) {
  const ModelPass pass = repeats ? ModelPass::recomputation : work.pass;
  us[static_cast<std::size_t>(pass)] += kernel_us;
  bound_us[static_cast<std::size_t>(work.bound_by)] += kernel_us;
  recomputed_flops += share * work.recomputed;
  double& flops_of_pass = pass == ModelPass::recomputation ? recomputed_flops
                          : pass == ModelPass::forward     ? forward_flops
                                                           : backward_flops;
  flops_of_pass += share * work.flops;
}

double ModuleUse::total_us() const { return std::accumulate(us.begin(), us.end(), 0.0); }

void ModuleUse::add(const ModuleUse& other, double times) {
  add_all(other.us, times, us);
  add_all(other.bound_us, times, bound_us);
  alone_us += times * other.alone_us;
  gap_us += times * other.gap_us;
  forward_flops += times * other.forward_flops;
  backward_flops += times * other.backward_flops;
  recomputed_flops += times * other.recomputed_flops;
}

void add(const ModuleUses& more, double times, ModuleUses& sum) {
  for (const auto& [module, use] : more) sum[module].add(use, times);
}

ModuleUses module_uses(const Setup& setup, const Program& program, const Timeline& timeline) {
  const std::uint32_t first_mtp = first_mtp_layer(setup);
  std::vector<std::array<ModuleUse, 2>> by_kernel(program.kernels.size());  // of the model's layers, and of MTP's
  for_each_execution(program, [&](TaskId id, const Execution& execution, std::uint32_t layer, double times) {
    by_kernel[execution.kernel][layer >= first_mtp ? 1 : 0].add(use_of(program, timeline, id), times);
  });
  const double part = 1 / (program.ranks * program.steps);
  ModuleUses uses;
  for (std::size_t kernel = 0; kernel < by_kernel.size(); ++kernel) {
    const std::string& module = program.kernels[kernel].module;
    const auto& [of_model, of_mtp] = by_kernel[kernel];
    if (of_model.total_us() > 0) uses[module].add(of_model, part);
    if (of_mtp.total_us() > 0) uses[in_mtp(module)].add(of_mtp, part);
  }
  return uses;
}

}  // namespace moeline
