#include "experiments/explain/step_kernels.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "experiments/explain/explanation.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/price_book.hpp"

namespace moeline {
namespace {

// What a step has of one entry of Program::kernels.
struct Use {
  TaskId first = kNoTask;
  double times = 0, us = 0;
};

std::vector<Use> uses_of(const Program& program) {
  std::vector<Use> uses(program.kernels.size());
  const double part = 1 / (program.ranks * program.steps);
  for_each_execution(program, [&](TaskId id, const Execution& execution, std::uint32_t /*layer*/, double times) {
    Use& use = uses[execution.kernel];
    if (use.first == kNoTask) use.first = id;
    use.times += part * times * execution.share;
    use.us += part * times * to_us(program.graph.task(id).solo);
  });
  return uses;
}

StepKernel kernel_of(const Run& run, const KernelWork& work, const Use& use, const Price& price) {
  const Setup& setup = run.setup;
  return {.name = std::string(run.program.graph.task_name(use.first)),
          .module = work.module,
          .flops = work.op.flops,
          .price = price,
          .op = op_text(work.op, work.conditions, price, setup.machine.facts, setup.kernels())};
}

}  // namespace

double StepKernels::all_us() const {
  return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                         [](double sum, const StepKernel& kernel) { return sum + kernel.us; });
}

double StepKernels::with_op_us() const {
  return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                         [](double sum, const StepKernel& kernel) { return kernel.op ? sum + kernel.us : sum; });
}

std::optional<StepKernels> step_kernels(const Run& run) {
  if (run.has_given_slots() || is_by_slot(run)) return std::nullopt;
  const std::vector<Use> uses = uses_of(run.program);
  StepKernels step;
  std::vector<StepKernel>& kernels = step.kernels;
  std::vector<std::shared_ptr<const Price>> prices;  // the book has one for equal kernels, as long as it is held
  std::unordered_map<const Price*, std::size_t> places;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].first == kNoTask) continue;
    const KernelWork& work = run.program.kernels[i];
    const auto& price = prices.emplace_back(run.setup.prices->price(work.op, work.conditions));
    const auto [place, is_new] = places.try_emplace(price.get(), kernels.size());
    if (is_new) kernels.push_back(kernel_of(run, work, uses[i], *price));
    kernels[place->second].times += uses[i].times;
    kernels[place->second].us += uses[i].times * work.solo_us;
    step.on_this_us += uses[i].us;
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const StepKernel& a, const StepKernel& b) { return a.us > b.us; });
  return step;
}

}  // namespace moeline
